"""The networks that ``--model`` names: fully connected ones of this package, and modules of PyTorch."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, make_dataclass
from functools import partial
from typing import Any, get_type_hints

from dualopt.arrays._extras import optional
from dualopt.arrays.xp import is_sparse, uploader
from dualopt.objectives import MLP, TorchModule, mlp, torch_module
from dualopt.objectives.torch_networks import TORCH_NETWORKS
from dualopt.spec import Spec
from dualopt.spec.plugins import entry_points, find, is_module, is_spelled

__all__ = ["Layers", "Module", "network_of"]

MOST_WIDTH = 10**6  # units of a layer: beyond, no memory holds the weights
FILLED_IN = ("features", "outputs")  # parameters of a function or class, which the data decide
OF_OBJECTIVE: dict[str, Any] = {
    "augment": str,
    "frozen": bool,
    "input_shape": tuple[int, ...],
    "precision": str,
}
"""Options of `torch_module` that stand beside the parameters of the module itself, with their types."""


@dataclass(frozen=True)
class Layers:
    """A fully connected network, ``mlp=200,100``.

    Attributes
    ----------
    widths : tuple of int
        Widths of the hidden layers.
    """

    widths: tuple[int, ...]

    name = "mlp"
    dtype = "float64"
    """The type of the features where a user names none."""

    @property
    def losses(self) -> tuple[str, ...]:
        """The losses that it can have; without any, all."""
        return ("multinomial",)

    def uploader(self, device: str) -> Callable[[Any], Any]:
        """Return what brings arrays of NumPy to a device."""
        return uploader(device)

    def words(self, network: Any) -> str:
        """Return how the built network is called."""
        return f"network {'-'.join(map(str, self.widths))}"

    def build(self, X: Any, y: Any, *, loss: Any, **options: Any) -> MLP:
        """Return the objective; options are those that `mlp` and `torch_module` share."""
        return mlp(X, y, layers=self.widths, classes=loss.outputs, **options)


@dataclass(frozen=True)
class Module:
    """A module of PyTorch, and what it is made with.

    Attributes
    ----------
    name : str
        As the user typed it.
    function : callable
        The class, or a function that returns a module.
    arguments : dict
        Its arguments, but for the numbers of features and outputs.
    options : dict
        Arguments of `torch_module`.
    """

    name: str
    function: Callable[..., Any]
    arguments: Mapping[str, Any]
    options: Mapping[str, Any]

    dtype = "float32"

    @property
    def losses(self) -> tuple[str, ...]:
        """All losses, for as many outputs as each has."""
        return ()

    def uploader(self, device: str) -> Callable[[Any], Any]:
        """Return what makes tensors on a device of arrays of NumPy."""
        torch = optional("torch", f"model {self.name}")
        if device not in ("cpu", "cuda"):
            raise ValueError(f"device must be cpu or cuda, not {device!r}.")
        if device == "cuda" and not torch.cuda.is_available():
            raise ValueError("device cuda needs a GPU that PyTorch can use.")
        return lambda x: x if is_sparse(x) else torch.as_tensor(x, device=device)

    def words(self, network: Any) -> str:
        """Return how the built network is called."""
        return f"network {self.name} of {network.shape[0]} parameters"

    def build(self, X: Any, y: Any, *, loss: Any, **options: Any) -> TorchModule:
        """Return the objective."""
        known = inspect.signature(self.function).parameters
        of_data = {"features": X.shape[1], "outputs": loss.outputs}
        given = {name: number for name, number in of_data.items() if name in known} | dict(self.arguments)
        try:
            return torch_module(partial(self.function, **given), X, y, loss=loss, **options, **self.options)
        except TypeError as error:
            raise ValueError(f"model {self.name!r} cannot be made: {error}.") from error


def network_of(text: str) -> Layers | Module | None:
    """Return the network that a model is, which is not the linear one; None for an objective of linear clients.

    Raises
    ------
    ValueError
        If the text names no model, or arguments do not fit.

    Examples
    --------
    >>> network_of("mlp=200,100").widths
    (200, 100)
    >>> network_of("cnn: filters=8, augment=crop-flip").options
    {'augment': 'crop-flip'}
    """
    if text.startswith("mlp"):
        return _layers(text)
    spec = Spec.parse(text, "model")
    place = spec.name if is_spelled(spec.name) else ""
    if spec.name in TORCH_NETWORKS:
        return _module(spec, TORCH_NETWORKS[spec.name])
    if (place and is_module(place, "model")) or spec.name in entry_points("networks"):
        return _module(spec, find("networks", spec.name, "model"))
    if place or spec.name in entry_points("objectives"):
        return None
    raise ValueError(
        f"model must be linear, mlp=WIDTH,WIDTH,... such as mlp=200,100, {', '.join(TORCH_NETWORKS)}, or FILE.py:NAME; "
        f"not {text!r}."
    )


def _layers(text: str) -> Layers:
    kind, _, widths = text.partition("=")
    try:
        found = tuple(int(width) for width in widths.split(","))
    except ValueError:
        found = ()
    if kind != "mlp" or not found or min(found) < 1:
        raise ValueError(f"model must be of the form mlp=WIDTH,WIDTH,... such as mlp=200,100, not {text!r}.")
    if max(found) > MOST_WIDTH:
        raise ValueError(f"model must have layers of at most {MOST_WIDTH} units, not {max(found)}.")
    return Layers(found)


def _module(spec: Spec, function: Callable[..., Any]) -> Module:
    """Return a module with its arguments, of the types that the annotations of the class or function say."""
    known = inspect.signature(function).parameters.values()
    hints = _hints(function)
    form: list[tuple[str, Any, Any]] = []
    for one in known:
        if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY):
            given = None if one.name in FILLED_IN else MISSING if one.default is one.empty else one.default
            form.append((one.name, hints.get(one.name, Any), field(default=given)))
    form += [
        (name, kind, field(default=None)) for name, kind in OF_OBJECTIVE.items() if name not in {f[0] for f in form}
    ]
    arguments = spec.made(make_dataclass("Arguments", form, kw_only=True), f"model {spec.name}")
    given = {name: x for name in (f[0] for f in form) if (x := getattr(arguments, name)) is not None}
    options = {name: x for name, x in given.items() if name in OF_OBJECTIVE and name not in {p.name for p in known}}
    return Module(spec.name, function, {name: x for name, x in given.items() if name not in options}, options)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations; none where a name in them is not known."""
    try:
        return get_type_hints(function.__init__ if inspect.isclass(function) else function)
    except (NameError, TypeError):
        return {}
