"""From names to the algorithm: a method with its parameters, local solver and stopping rule, as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import dualopt.methods
import dualopt.solvers
from dualopt.arrays.xp import array_namespace
from dualopt.engine.rounds import informed
from dualopt.methods import Algorithm
from dualopt.methods.compressors import parse_compressor
from dualopt.methods.participation import Participation, parse_participation
from dualopt.objectives import Objective
from dualopt.solvers.stopping import Stop, parse_stop
from dualopt.spec._text import convert, pairs
from dualopt.spec.discover import discover, lookup
from dualopt.spec.plugins import split

__all__ = ["MethodOptions", "Variant", "parse_variant"]


@dataclass(frozen=True, kw_only=True)
class MethodOptions:
    """How clients solve their local problems, and what they send.

    Parameters
    ----------
    solver : str, optional
        Local solver (see: dualopt list solvers); default: the algorithm's.
    solver_param : list of str
        Parameter of the local solver, such as history=20; repeatable.
    stop : str, optional
        When a local solver stops, such as reduction=0.05 (see: dualopt list stopping).
    compressor : str, optional
        What uploads go through, such as natural or rand-k=10 (see: dualopt list compressors).

    Examples
    --------
    >>> MethodOptions(solver="lbfgs", solver_param=["history=20"], stop="reduction=0.05").stop
    'reduction=0.05'
    """

    solver: str | None = None
    solver_param: list[str] = field(default_factory=list)
    stop: str | None = None
    compressor: str | None = None


@dataclass(frozen=True, kw_only=True)
class Variant:
    """An algorithm as the user named it, still without a problem.

    Parameters
    ----------
    label : str
        What it is called in tables and legends.
    algorithm : str
        Name of the algorithm, as ``dualopt list algorithms`` has it, or a plug-in such as ``my_method.py:Damped``.
    parameters : dict of str to str
        Parameters of the algorithm; those that are not here, or ``suggested``, are left open.
    solver : str, optional
        Name of the local solver; the algorithm's own when not given.
    solver_parameters : dict of str to str
        Parameters of the local solver.
    stop : str, optional
        The stopping rule of the local solver, as :func:`dualopt.solvers.stopping.parse_stop` reads it.
    compressor : str, optional
        What uploads go through, as :func:`dualopt.methods.compressors.parse_compressor` reads it.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import Quadratic
    >>> variant = Variant(label="plain", algorithm="dualfl", parameters={"rho": "0"}, solver="exact")
    >>> variant.template.rho, variant.template.nu
    (0.0, None)
    >>> variant.build(Quadratic(A=2 * np.eye(2)[None], b=np.ones((1, 2)))).nu
    2.0
    """

    label: str
    algorithm: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    solver: str | None = None
    solver_parameters: Mapping[str, str] = field(default_factory=dict)
    stop: str | None = None
    compressor: str | None = None

    @classmethod
    def from_point(
        cls, algorithm: str, point: Mapping[str, str], defaults: MethodOptions | None = None, *, label: str = ""
    ) -> Variant:
        """Return the variant of an algorithm at a point of a grid.

        Parameters
        ----------
        algorithm : str
            Name of the algorithm.
        point : dict of str to str
            Parameters of the algorithm, ``solver``, ``stop``, ``compressor``, and ``solver.NAME`` for the parameters of
            the local solver.
        defaults : MethodOptions, optional
            Solver, stopping rule and compressor where the point names none.
        label : str, optional
            The name of the algorithm when not given.

        Examples
        --------
        >>> variant = Variant.from_point("fedpd", {"eta": "0.1", "solver": "lbfgs", "solver.history": "5"})
        >>> variant.parameters, variant.solver, variant.solver_parameters
        ({'eta': '0.1'}, 'lbfgs', {'history': '5'})
        """
        defaults = MethodOptions() if defaults is None else defaults
        parameters = dict(point)
        solver = parameters.pop("solver", None)
        stop, compressor = parameters.pop("stop", None), parameters.pop("compressor", None)
        own = {n.removeprefix("solver."): parameters.pop(n) for n in list(parameters) if n.startswith("solver.")}
        # Parameters of the default solver would be wrong for another one.
        common = {} if solver is not None else pairs(defaults.solver_param, "solver_param")
        return cls(
            label=label or algorithm,
            algorithm=algorithm,
            parameters=parameters,
            solver=solver or defaults.solver,
            solver_parameters=common | own,
            stop=stop or defaults.stop,
            compressor=compressor or defaults.compressor,
        )

    @cached_property
    def template(self) -> Algorithm:
        """The algorithm with the parameters and the solver that were given; all else, and the stop, is left open.

        Raises
        ------
        ValueError
            If a name is unknown, or a value is out of range; also if the stopping rule is wrong.
        """
        kind, owner = self._kind, f"algorithm {self.algorithm}"
        slots = set(dualopt.methods.parameters(kind))
        present = {kind.former_names.get(name, name): text for name, text in self.parameters.items()}
        given = convert(kind, present, "param", owner)
        if self.solver is not None or self.solver_parameters:
            _require_slot("solver", slots, owner)
            given["solver"] = self._solver()
        if self.compressor is not None:
            self._require_support({"compression"}, f"compressor {self.compressor}")
            given["compressor"] = parse_compressor(self.compressor)
        algorithm = kind(**given)
        if self.stop is not None:
            _require_slot("stop", slots, owner)
            _stop(self.stop, nu=1.0, rho=0.0)  # the rule itself may need parameters that are still open
        return algorithm

    def build(self, objective: Objective, participation: Participation | None = None) -> Algorithm:
        """Return the algorithm for an objective and who takes part: nothing is left open any more.

        Raises
        ------
        ValueError
            If a name is unknown, a value is out of range, or nothing can be suggested.
        """
        algorithm: Any = informed(self.template, objective, participation).suggested(objective)
        if self.stop is None:
            return algorithm
        smallest = float(array_namespace(objective.mu).min(objective.mu))
        nu, rho = getattr(algorithm, "nu", smallest), getattr(algorithm, "rho", 0.0)
        return replace(algorithm, stop=_stop(self.stop, nu=nu, rho=rho))

    def check(self, *, participation: str = "full", regulariser: bool = False) -> None:
        """Refuse what is wrong before there is an objective.

        Parameters
        ----------
        participation : str, default "full"
            Who takes part, as :func:`dualopt.methods.participation.parse_participation` reads it.
        regulariser : bool, default False
            Whether the objective will have a regulariser.

        Raises
        ------
        ValueError
            If a name is unknown, a value is out of range, or the algorithm does not support what is asked of it; then
            the sentence names those that do.

        Examples
        --------
        >>> Variant(label="", algorithm="dualfl").check(participation="subset=2")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ValueError: algorithm dualfl does not support participation subset=2; a-fedpd, ... do.
        """
        _ = self.template
        self._require_support(parse_participation(participation).needs(), f"participation {participation}")
        if regulariser:
            self._require_support({"regulariser"}, "a regulariser")

    def _require_support(self, needs: Iterable[str], what: str) -> None:
        if not set(needs) <= self._kind.supports:
            everything: dict[str, Any] = dict(discover(dualopt.methods))
            able = [name for name, other in everything.items() if set(needs) <= other.supports]
            raise ValueError(f"algorithm {self.algorithm} does not support {what}; {', '.join(able)} do.")

    @property
    def _kind(self) -> Any:
        return lookup(dualopt.methods, self.algorithm, "algorithm")

    def _solver(self) -> Any:
        """Return the solver that was named with the parameters that were given."""
        if self.solver is None:
            raise ValueError("solver_param needs solver: without a name the objective decides which solver is used.")
        kind: Any = lookup(dualopt.solvers, self.solver, "solver")
        given = convert(kind, self.solver_parameters, "solver_param", f"solver {self.solver}")
        for f in fields(kind):
            if f.name not in given and f.default is MISSING and f.default_factory is MISSING:
                raise ValueError(f"solver_param {f.name} must be given for solver {self.solver}.")
        return kind(**given)


def parse_variant(text: str, defaults: MethodOptions | None = None) -> Variant:
    """Read ``"label@algorithm:name=value,..."``, where label and values may be left out.

    The algorithm may be a plug-in, ``label@my_method.py:Damped:name=value``.

    Parameters
    ----------
    text : str
        The names are those of a point, as :meth:`Variant.from_point` takes them.
    defaults : MethodOptions, optional
        Solver and stopping rule where the text names none.

    Raises
    ------
    ValueError
        If the text is not of this form.

    Examples
    --------
    >>> v = parse_variant("plain@dualfl:rho=0,stop=gradient=1e-8")
    >>> v.label, v.algorithm, v.parameters, v.stop
    ('plain', 'dualfl', {'rho': '0'}, 'gradient=1e-8')
    """
    label, at, rest = text.rpartition("@")
    head, colon, listed = rest.partition(":")
    # a name of the package ends at the first colon, that of a plug-in holds one itself
    algorithm, tail = (head, colon + listed) if head in discover(dualopt.methods) else split(rest)
    if (at and not label) or not algorithm or tail == ":":
        raise ValueError(f"algorithm must be of the form LABEL@NAME:name=value,name=value; not {text!r}.")
    point = pairs(tail[1:].split(","), "algorithm") if tail else {}
    return Variant.from_point(algorithm, point, defaults, label=label or rest)


def _stop(text: str, *, nu: float, rho: float) -> Stop:
    try:
        return parse_stop(text, nu=nu, rho=rho)
    except ValueError as error:
        reason = str(error)
        raise ValueError(reason if reason.startswith("stop ") else f"stop {text!r}: {reason}") from None


def _require_slot(name: str, slots: set[str], owner: str) -> None:
    if name not in slots:
        raise ValueError(f"{name} cannot be given because {owner} has none.")
