"""What makes a module of PyTorch an objective: its outputs are a function of its parameters and of one row each."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

from dualopt.arrays._extras import optional

__all__ = ["PRECISIONS", "check_module", "require_outputs", "require_precision", "takes_channels_last"]

PRECISIONS = ("full", "mixed")


def check_module(module: Any, frozen: bool) -> Any:
    """Return the type of the parameters of a module, or refuse one that is no function of them and of one row.

    Raises
    ------
    ValueError
        If there are no trainable parameters, they are of several types, or a layer normalises by other rows or draws
        what it leaves out, unless ``frozen``.
    """
    torch = optional("torch", "a module as an objective")
    lazy = [name for name, part in module.named_parameters() if torch.nn.parameter.is_lazy(part)]
    if lazy:
        raise ValueError(f"module must know its sizes: call it once, for {lazy[0]!r} is still to be filled in.")
    types = {part.dtype for part in module.parameters() if part.requires_grad}
    if not types:
        raise ValueError("module must have trainable parameters.")
    if len(types) > 1 or not types <= {torch.float32, torch.float64}:
        listed = ", ".join(sorted(map(str, types)))
        raise ValueError(f"module must have parameters of float32 or of float64, not of {listed}.")
    for name, reason in () if frozen else _unfit(module, torch.nn):
        raise ValueError(f"module must not have {name}, {reason}.")
    return next(iter(types))


def _unfit(module: Any, nn: Any) -> Iterator[tuple[str, str]]:
    """Yield the layers that are no function of a row, and why."""
    for name, layer in module.named_modules():
        words = f"the layer {name!r} ({type(layer).__name__})"
        normalises = isinstance(layer, nn.modules.batchnorm._BatchNorm)  # also per image, with tracked statistics
        if normalises or (isinstance(layer, nn.modules.instancenorm._InstanceNorm) and layer.track_running_stats):
            yield (
                words,
                "whose statistics are of all rows of a batch and are no parameters: take nn.GroupNorm, or frozen=True, "
                "with which they stay as they are",
            )
        elif isinstance(layer, nn.modules.dropout._DropoutNd) or hasattr(layer, "dropout"):
            share = layer.p if isinstance(layer, nn.modules.dropout._DropoutNd) else layer.dropout
            if isinstance(share, float | int) and share > 0:
                yield words, "which draws what it leaves out: take weight decay, or frozen=True, with which all is kept"


def require_precision(precision: str, own: Any) -> None:
    """Refuse a precision that there is not, or that a module with parameters of this type cannot have.

    Raises
    ------
    ValueError
        With one sentence.
    """
    if precision not in PRECISIONS:
        raise ValueError(f"precision must be one of {', '.join(PRECISIONS)}, not {precision!r}.")
    if precision == "mixed" and own != optional("torch", "a module as an objective").float32:
        raise ValueError(f"precision mixed needs a module with parameters of float32, not of {own}.")


def require_outputs(module: Any, X: Any, shape: tuple[int, ...], outputs: int) -> None:
    """Refuse a module that is no function of one row with the outputs of the loss.

    It must take rows of this form, draw no random numbers, and look at no other row.

    Parameters
    ----------
    module : torch.nn.Module
        In the mode in which it will be called.
    X : tensor, shape (m, d)
        Rows, the first two of which are tried.
    shape : tuple of int
        The form of a row.
    outputs : int
        Outputs of the loss.

    Raises
    ------
    ValueError
        With one sentence.
    """
    torch = optional("torch", "a module as an objective")
    if X.ndim != 2 or prod(shape) != X.shape[1]:
        raise ValueError(f"X must have rows of {prod(shape)} features, for input_shape {shape}, not {tuple(X.shape)}.")
    rows = X[:2].reshape(-1, *shape)
    try:
        with torch.no_grad():
            found, again, first = module(rows), module(rows), module(rows[:1])
    except Exception as error:
        said = str(error).partition("\n")[0]
        raise ValueError(f"module cannot be called with rows of shape {shape}: {said}") from error
    wanted = [(len(rows), outputs)] + [(len(rows),)] * (outputs == 1)
    if not torch.is_tensor(found) or tuple(found.shape) not in wanted:
        given = f"shape {tuple(found.shape)}" if torch.is_tensor(found) else f"a {type(found).__name__}"
        raise ValueError(f"module must return a tensor of shape {wanted[0]} for {len(rows)} rows, not {given}.")
    if found.dtype != X.dtype:
        raise ValueError(f"module must return {X.dtype}, the type of its parameters, not {found.dtype}.")
    if not torch.equal(found, again):
        raise ValueError("module must return the same when it is called again, but it draws random numbers.")
    if not torch.allclose(found[:1], first, rtol=_room(X), atol=_room(X)):
        raise ValueError("module must return for a row what it returns for this row alone, but it looks at other rows.")


def takes_channels_last(module: Any, X: Any, shape: tuple[int, ...]) -> bool:
    """Tell whether a module takes images whose channels lie side by side in memory, and says the same of them.

    Convolutions of PyTorch are faster on these on a CPU. A module that looks at how its input lies, as by
    ``x.view(len(x), -1)`` after a convolution, does not take them.

    Parameters
    ----------
    module, X, shape
        As of :func:`require_outputs`.
    """
    torch = optional("torch", "a module as an objective")
    if len(shape) != 3:
        return False
    rows = X[:2].reshape(-1, *shape)
    try:
        with torch.no_grad():
            found, other = module(rows), module(rows.contiguous(memory_format=torch.channels_last))
    except RuntimeError:
        return False
    return bool(torch.allclose(found, other, rtol=_room(X), atol=_room(X)))


def _room(X: Any) -> float:
    """Return by how much outputs may differ that are computed in another order."""
    return optional("torch", "a module as an objective").finfo(X.dtype).eps ** 0.5
