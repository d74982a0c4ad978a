"""Modules of PyTorch in models: how each is made again, and its numbers. A file holds no code."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np

from dualopt.arrays._extras import optional
from dualopt.objectives import TorchModule
from dualopt.objectives.torch_networks import TORCH_NETWORKS
from dualopt.problem.models._file import Head, is_count, is_object

__all__ = ["Recipe", "TrainedModule", "recipe"]

DEEPEST = 8  # dimensions of a tensor
SCALARS = (bool, int, float, str)


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainedModule:
    """A module of PyTorch with the parameters of a run.

    Attributes
    ----------
    name : str
        The name of the function or class that makes it.
    arguments : dict
        What that is called with: numbers, words, and lists of these.
    input_shape : tuple of int
        The form in which the module takes a row.
    module : torch.nn.Module
        The module itself.
    """

    name: str
    arguments: Mapping[str, Any]
    input_shape: tuple[int, ...]
    module: Any

    @classmethod
    def of(cls, objective: TorchModule, theta: np.ndarray) -> Self:
        """Return the module of an objective at a model ``theta``, shape ``(p,)``.

        Raises
        ------
        ValueError
            If the objective has one module, and nothing that makes another, or it is made with what no file can hold.
        """
        make = objective.make
        if make is None:
            raise ValueError(
                "objective must be built with the class of its module, or a function that makes it, for a model: a "
                "module alone cannot be made again; torch.save(objective.module_at(theta).state_dict(), ...) keeps it."
            )
        function, arguments = (make.func, make.keywords) if isinstance(make, partial) else (make, {})
        known = next((name for name, own in TORCH_NETWORKS.items() if own is function), None)
        arguments = {name: list(x) if isinstance(x, tuple) else x for name, x in arguments.items()}
        if (isinstance(make, partial) and make.args) or not all(map(_is_plain, arguments.values())):
            raise ValueError("objective must be built with a module whose arguments have names and are plain, or none.")
        name = known or getattr(function, "__name__", type(function).__name__)
        point = optional("torch", "a model").as_tensor(np.array(theta))
        shape = objective.input_shape
        return cls(name=name, arguments=arguments, input_shape=shape, module=objective.module_at(point).cpu())

    @property
    def n_features(self) -> int:
        """Numbers of a row."""
        return math.prod(self.input_shape)

    @property
    def fields(self) -> dict[str, Any]:
        """What a description says of it."""
        sizes = {name: list(tensor.shape) for name, tensor in _tensors(self.module).items()}
        own = {"name": self.name, "arguments": dict(self.arguments), "input_shape": list(self.input_shape)}
        return own | {"tensors": sizes}

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """Its floating-point tensors."""
        return {_array(name): tensor.detach().numpy() for name, tensor in _tensors(self.module).items()}

    def predictors(self, X: np.ndarray) -> np.ndarray:
        """Return the outputs of scaled rows ``(m, d)``, shape ``(k, m)``."""
        torch = optional("torch", "a model of PyTorch")
        with torch.no_grad():
            found = self.module(torch.as_tensor(np.ascontiguousarray(X)).reshape(-1, *self.input_shape))
        return found.reshape(len(X), -1).numpy().T


class Recipe(NamedTuple):
    """What a description says of a module, checked: how it is made, and of which tensors it consists."""

    head: Head
    name: str
    arguments: Mapping[str, Any]
    input_shape: tuple[int, ...]
    sizes: Mapping[str, tuple[int, ...]]
    make: Callable[[], Any]

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The arrays beside the description, by their names there."""
        return {_array(name): size for name, size in self.sizes.items()}

    def filled(self, arrays: Mapping[str, np.ndarray]) -> TrainedModule:
        """Return the module with these numbers."""
        torch, module = optional("torch", "a model of PyTorch"), self.make().eval()
        state = {name: torch.as_tensor(arrays[_array(name)]) for name in self.sizes}
        module.load_state_dict(state, strict=False)  # what is no floating-point number is not in files
        return TrainedModule(name=self.name, arguments=self.arguments, input_shape=self.input_shape, module=module)


def recipe(head: Head, functions: Iterable[Callable[..., Any]], features: int) -> Recipe:
    """Return how the module is made that a description is of.

    Only functions of this package and those that are handed in are called.

    Raises
    ------
    ValueError
        If its function is not known here, or makes a module of other tensors than the file holds.
    """
    part = head.part("module")
    name, arguments = part.text("name"), part.get("arguments", "an object of plain values", _is_arguments)
    shape = tuple(part.get("input_shape", f"a list of numbers whose product is {features}", _is_shape))
    sizes = part.get("tensors", "an object of lists of numbers", _is_sizes)
    sizes = {key: tuple(size) for key, size in sizes.items()}
    if math.prod(shape) != features:
        head.refuse(f"its entry module.input_shape must be of {features} numbers")
    known = TORCH_NETWORKS | {function.__name__: function for function in functions}
    if name not in known:
        raise ValueError(
            f"model {str(head.path)!r} is of a module {name!r}, which is not known here: files hold no code, so give "
            f"its class or function, as types=[{name}] or --network FILE.py:{name}."
        )
    torch, make = optional("torch", f"model {str(head.path)!r}"), partial(known[name], **arguments)
    try:
        with torch.device("meta"):  # its sizes, before it takes memory
            found = {key: tuple(tensor.shape) for key, tensor in _tensors(make()).items()}
    except Exception as error:
        said = str(error).partition("\n")[0]
        raise ValueError(f"model {str(head.path)!r} cannot be made by {name}: {said}") from error
    if found != sizes:
        head.refuse(f"{name} makes a module of other tensors than it holds")
    return Recipe(head, name, arguments, shape, sizes, make)


def _tensors(module: Any) -> dict[str, Any]:
    """Return the parameters and buffers of a module that are floating-point numbers, by name."""
    return {name: tensor for name, tensor in module.state_dict().items() if tensor.is_floating_point()}


def _array(name: str) -> str:
    """Return the name of an array: none that an archive takes for a folder."""
    return f"tensor {name}"


def _is_plain(x: Any) -> bool:
    return x is None or isinstance(x, SCALARS) or (isinstance(x, list) and all(isinstance(y, SCALARS) for y in x))


def _is_arguments(x: Any) -> bool:
    return is_object(x) and all(map(_is_plain, x.values()))


def _is_shape(x: Any) -> bool:
    return isinstance(x, list) and 0 < len(x) <= DEEPEST and all(map(is_count, x))


def _is_sizes(x: Any) -> bool:
    def is_size(y: Any) -> bool:
        return isinstance(y, list) and len(y) <= DEEPEST and all(map(is_count, y))

    return is_object(x) and all(map(is_size, x.values()))
