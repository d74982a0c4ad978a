"""Packages that not every use needs, and the extras of this package that bring them."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

__all__ = ["EXTRAS", "optional", "require_installed"]

EXTRAS = {  # by the module: the name of the package, and the extra
    "cryptography": ("cryptography", "federation"),
    "cvxpy": ("CVXPY", "theory"),
    "hypothesis": ("Hypothesis", "testing"),
    "matplotlib": ("matplotlib", "app"),
    "mpi4py": ("mpi4py", "mpi"),
    "narwhals": ("narwhals", "frames"),
    "numba": ("Numba", "fast"),
    "nvflare": ("nvflare", "federation"),
    "pyarrow": ("pyarrow", "frames"),
    "rich": ("rich", "app"),
    "scipy": ("SciPy", "sparse"),
    "sklearn": ("scikit-learn", "app"),
    "torch": ("torch", "torch"),
    "typer": ("typer", "app"),
}


def optional(module: str, what: str) -> Any:
    """Import a module of a package that may be missing.

    Parameters
    ----------
    module : str
        The module; its package is one of ``EXTRAS``.
    what : str
        What needs it, with which the sentence begins.

    Raises
    ------
    ModuleNotFoundError
        If it is missing; the sentence names the extra that brings it.

    Examples
    --------
    >>> import sys
    >>> sys.modules["mpi4py"] = None  # as if it were missing
    >>> optional("mpi4py.MPI", "engine mpi")
    Traceback (most recent call last):
    ModuleNotFoundError: engine mpi needs mpi4py: pip install "dualopt[mpi]".
    >>> del sys.modules["mpi4py"]
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise _missing(module, what) from error


def require_installed(module: str, what: str) -> None:
    """Refuse that a package is missing, without importing it: before anything is computed that would need it.

    Parameters
    ----------
    module, what : str
        As for `optional`.

    Raises
    ------
    ModuleNotFoundError
        As from `optional`.

    Examples
    --------
    >>> require_installed("matplotlib", "a picture")
    """
    if find_spec(module.partition(".")[0]) is None:
        raise _missing(module, what)


def _missing(module: str, what: str) -> ModuleNotFoundError:
    package, extra = EXTRAS[module.partition(".")[0]]
    return ModuleNotFoundError(f'{what} needs {package}: pip install "dualopt[{extra}]".')
