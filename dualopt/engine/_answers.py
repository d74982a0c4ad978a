"""What answers must look like, whoever gives them: shapes, types, signs."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from dualopt.arrays._checks import is_number, require
from dualopt.arrays.tree import leaves
from dualopt.arrays.xp import array_namespace, silent, to_numpy
from dualopt.engine import _protocol as protocol
from dualopt.objectives._information import SUMS

__all__ = ["require_sound", "unsound", "usable_rows"]

ROUNDING = 1e-4  # how far L may be below mu by rounding, of mu


def require_sound(info: protocol.ClientInfo, host: Any) -> None:
    """Refuse what no clients can be like.

    A strong convexity constant of minus infinity is one that is not known, a smoothness constant of infinity one that
    there is not.

    Raises
    ------
    ValueError
        If something is of another shape, no number, or has the wrong sign; the sentence names it, and the host.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt import Quadratic
    >>> from dualopt.engine import Host
    >>> (info,) = Host(Quadratic(A=np.ones((1, 1, 1)), b=np.zeros((1, 1)))).answer([protocol.Describe()])
    >>> require_sound(info, "lyon")
    >>> require_sound(info._replace(mu_rounding=-info.mu), "lyon")
    Traceback (most recent call last):
    ValueError: mu_rounding of host lyon must be at least 0.
    """
    n, of = info.n_clients, f"of host {host}"
    require(n >= 1, f"n_clients {of} must be at least 1", n)
    for name in ("mu", "mu_rounding", "L"):
        fault = _misshapen(getattr(info, name), (n,))
        require(fault is None, f"{name} {of} must be an array of {n} real numbers, one for each client")
    mu, rounding, L = info.mu, info.mu_rounding, info.L
    xp = array_namespace(mu)
    require(bool(xp.all(mu < math.inf)), f"mu {of} must be finite, or minus infinity where it is not known")
    require(bool(xp.all(rounding >= 0.0)), f"mu_rounding {of} must be at least 0")
    finite = (rounding < math.inf) | (mu == -math.inf)
    require(bool(xp.all(finite)), f"mu_rounding {of} must be finite where mu is")
    enough = (L >= 0.0) & ((1.0 - ROUNDING) * mu <= L)
    require(bool(xp.all(enough)), f"L {of} must be at least 0, and at least mu")
    weights = info.weights
    good = weights is None or (len(weights) == n and all(is_number(w) and 0.0 < w < math.inf for w in weights))
    require(good, f"weights {of} must be {n} positive finite numbers, one for each client")
    zero = array_namespace(info.zero)
    require(
        zero.isdtype(info.zero.dtype, "real floating") and not bool(zero.any(info.zero != 0.0)),
        f"the zero model {of} must be an array of zeros",
    )
    require(0.0 < info.gradient_cost < math.inf, f"gradient_cost {of} must be a positive finite number")
    weight, ridge = info.usual_weight, info.linear_ridge
    require(weight is None or 0.0 < weight < math.inf, f"usual_weight {of} must be a positive finite number")
    require(ridge is None or 0.0 <= ridge < math.inf, f"linear_ridge {of} must be a finite number, at least 0")
    sizes = info.sizes
    require(sizes is None or (len(sizes) == n and min(sizes) >= 1), f"sizes {of} must be {n} numbers, at least 1")
    largest, features = info.max_rows, info.n_features
    widest = max(sizes or (1,))
    require(largest is None or largest >= widest, f"max_rows {of} must be at least the {widest} of its largest client")
    require(features is None or features >= 1, f"n_features {of} must be at least 1")
    try:
        labels = json.loads(info.classes or "[]")
    except (ValueError, RecursionError):
        labels = None
    require(isinstance(labels, list), f"classes {of} must be a list in JSON")


def unsound(request: Any, answer: Any, n: int, shape: tuple[int, ...]) -> str | None:
    """Say what is wrong with an answer of a host that has ``n`` clients; None if nothing is.

    Examples
    --------
    >>> import numpy as np
    >>> unsound(protocol.Value("run", 0, np.zeros(3)), protocol.Valued(np.zeros(2)), 1, (3,))
    'its value has the shape (2,), not (1,)'
    """
    shapes: dict[str, tuple[int, ...]] = {}
    if isinstance(request, protocol.Evaluate) and isinstance(answer, protocol.PartialSums) != request.partial_sums:
        return "it returns sums in place of rows, or rows in place of sums"
    if isinstance(answer, protocol.Valued):
        shapes = {"value": (n,)}
    elif isinstance(answer, protocol.Model):
        shapes = {"theta": shape}
    elif isinstance(answer, protocol.Evaluated):
        shapes = {"value": (n,), "gradient": (n, *shape), "value_error": (n,), "gradient_error": (n,)}
        of_dual = {"dual": (n, *shape), "conjugate": (n,), "dual_error": (n,)}
        shapes |= of_dual if any(getattr(answer, name) is not None for name in of_dual) else {}
    elif isinstance(answer, protocol.PartialSums):
        shapes = {"gradient": shape, **({} if answer.dual is None else {"dual": shape})}
        shapes["columns"] = (5,) if answer.dual is None else (9,)
    elif isinstance(answer, protocol.InformationFound):
        D = math.prod(shape)
        shapes = {"gradient": (n, *shape), "hessian": (D, D), "penalty": shape, "sums": (n, len(SUMS))}
    elif isinstance(answer, protocol.Uploaded):
        if answer.gradients is not None and not _are_counts(answer.gradients):
            return "it counts gradients in numbers that cannot be"
        if answer.upload is not None and answer.vectors not in range(len(leaves(answer.upload)) + 1):
            return "it says of more vectors than it uploads that they were compressed"
    elif isinstance(answer, protocol.Started) and answer.rounds < 0:
        return "it has done a negative number of rounds"
    elif isinstance(answer, protocol.Aligned) and answer.max_rows != request.max_rows:
        return "it agrees to something else"
    for name, expected in shapes.items():
        if fault := _misshapen(getattr(answer, name), expected):
            return f"its {name} {fault}"
    for name in shapes:
        if name.endswith("_error"):
            bound = getattr(answer, name)
            if bool(array_namespace(bound).any(bound < 0.0)):
                return f"its {name} is a bound below 0"
    if isinstance(answer, protocol.PartialSums) and any(x < 0.0 for x in (*answer.columns[1:5], *answer.columns[6:])):
        return "it returns a sum of sizes that is below 0"
    return None


def usable_rows(upload: Any, n: int, shape: tuple[int, ...]) -> np.ndarray:
    """Tell of each of ``n`` clients whether its part of an upload can be averaged: whether all of it is finite.

    One number of a client, such as an energy or a conjugate, may be plus infinity: methods say so that a point is
    outside of a domain, or that nothing is known of it.

    Examples
    --------
    >>> usable_rows((np.array([[0.0, 1.0], [np.inf, 0.0]]), np.array([np.inf, 1.0])), 2, (2,)).tolist()
    [True, False]
    >>> usable_rows(np.array([np.inf, 1.0]), 2, ()).tolist()
    [False, True]
    """
    right = np.ones(n, dtype=bool)
    with silent():
        for x in leaves(upload):
            xp = array_namespace(x)
            if not bool(xp.isfinite(xp.sum(x))):  # quicker, and seldom true
                good = xp.isfinite(x)
                if shape and x.ndim == 1:
                    good = good | (x == math.inf)
                right &= to_numpy(xp.all(xp.reshape(good, (n, -1)), axis=1))
    return right


def _are_counts(x: Any) -> bool:
    listed = isinstance(x, tuple) or getattr(x, "ndim", 0) == 1
    return listed and all(is_number(count) and 0.0 <= count < math.inf for count in x)


def _misshapen(x: Any, shape: tuple[int, ...]) -> str | None:
    if x is None:
        return "is missing"
    if tuple(x.shape) != shape:
        return f"has the shape {tuple(x.shape)}, not {shape}"
    return None if array_namespace(x).isdtype(x.dtype, "real floating") else f"has the type {x.dtype}"
