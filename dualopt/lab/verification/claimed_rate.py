"""A claimed rate of convergence, as a user types it."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from dualopt.arrays._checks import require

__all__ = ["ClaimedRate", "Speed", "parse_rate"]

NAMES = {
    "n": "the round",
    "kappa": "L/mu",
    "mu": "the least strong convexity of a client",
    "L": "the largest smoothness of a client",
    "N": "the number of clients",
    "P": "the expected number of active clients",
    "C": "any constant",
}
FAR = 2.0**20  # a round in which only the law of the rate is left
LONGEST = 200  # characters; Python's own parser has limits of depth


@dataclass(frozen=True)
class Speed:
    """The law of a rate: ``q^n`` (linear, a factor per round) or ``n^-p`` (sublinear, an order).

    Attributes
    ----------
    law : str
        ``linear`` or ``sublinear``.
    value : float
        ``q`` or ``p``.
    """

    law: Literal["linear", "sublinear"]
    value: float


@dataclass(frozen=True)
class ClaimedRate:
    r"""A rate :math:`r(n)`, claimed as :math:`e_n \le C\,r(n)` with a constant that is not said.

    Examples
    --------
    >>> rate = parse_rate("(1 - 1/sqrt(kappa))^n")
    >>> rate.speed({"kappa": 4.0})
    Speed(law='linear', value=0.5)
    >>> round(rate.log(3, {"kappa": 4.0}) / math.log(0.5), 12)
    3.0
    """

    text: str
    tree: ast.expr

    def log(self, n: float, values: Mapping[str, float]) -> float:
        r"""Return :math:`\log r(n)`, which neither overflows nor underflows where products and powers are large.

        Parameters
        ----------
        n : float
            The round.
        values : dict of str to float
            The other names that the rate uses.

        Raises
        ------
        ValueError
            If the rate is not a positive number there.
        """
        try:
            found = _log(self.tree, {"C": 1.0, **values, "n": float(n)})
        except (ArithmeticError, ValueError):
            found = math.nan
        if math.isnan(found):
            raise ValueError(f"rate {self.text!r} is no positive number at n = {n:g}{_given(values)}.")
        return found

    def speed(self, values: Mapping[str, float]) -> Speed:
        r"""Return the law of the rate, read off :math:`r(n)/r(2n)` for large ``n``.

        Raises
        ------
        ValueError
            If the rate does not fall, or is neither like ``q^n`` nor like ``n^-p``.
        """
        logs = [self.log(n, values) for n in (FAR, 2.0 * FAR, 4.0 * FAR)]
        first, second = logs[0] - logs[1], logs[1] - logs[2]
        require(first > 1e-9, f"rate {self.text!r} must fall with n{_given(values)}", first)
        if abs(second / first - 2.0) < 0.1:
            return Speed("linear", math.exp(-first / FAR))
        if abs(second / first - 1.0) < 0.1:
            return Speed("sublinear", first / math.log(2.0))
        raise ValueError(f"rate {self.text!r} must be like q^n or n^-p for large n{_given(values)}.")

    def is_linear(self) -> bool:
        """Tell which law the rate has where ``kappa`` is 100, so that instances can be chosen before there is one."""
        usual = {"kappa": 100.0, "mu": 1.0, "L": 100.0, "N": 4.0, "P": 2.0}
        return self.speed(usual).law == "linear"


def parse_rate(text: str) -> ClaimedRate:
    r"""Read a rate such as ``1/n^2``, ``4*L/(n+1)^2``, ``exp(-n/sqrt(kappa))`` or ``(1-1/sqrt(kappa))^n``.

    It may use numbers, the names of ``NAMES``, ``+ - * / ^ **``, ``sqrt``, ``exp``, ``log``, ``min`` and ``max``.
    Nothing else is evaluated. Constants in front change nothing: a rate is claimed up to a constant.

    Raises
    ------
    ValueError
        If it holds anything else, or does not fall with ``n``.

    Examples
    --------
    >>> round(parse_rate("4*L/(n + 1)^2").speed({"L": 10.0}).value, 5)
    2.0
    >>> parse_rate("1/__import__('os')")
    Traceback (most recent call last):
    ValueError: rate may use n, kappa, mu, L, N, P, C, sqrt, exp, log, min and max, not "__import__('os')".
    """
    require(0 < len(text) <= LONGEST, f"rate must have 1 to {LONGEST} characters", len(text))
    try:
        tree = ast.parse(text.replace("^", "**").strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(f"rate must be a formula such as 1/n^2 or (1-1/sqrt(kappa))^n, not {text!r}.") from None
    _check(tree)
    rate = ClaimedRate(text, tree)
    rate.is_linear()
    return rate


def _power(base: float, exponent: float) -> float:
    found = base**exponent
    if isinstance(found, complex):
        raise ValueError
    return found


OPERATIONS: dict[type, Callable[[float, float], float]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.Pow: _power,
}
FUNCTIONS: dict[str, Callable[..., float]] = {
    "sqrt": math.sqrt,
    "exp": math.exp,
    "log": math.log,
    "min": min,
    "max": max,
}
ARGUMENTS = {"sqrt": (1, 1), "exp": (1, 1), "log": (1, 1), "min": (2, 9), "max": (2, 9)}


def _check(node: ast.expr) -> None:
    """Refuse whatever is not in the list."""
    match node:
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATIONS:
            _check(left)
            _check(right)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            _check(operand)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
            least, most = ARGUMENTS[name]
            require(least <= len(args) <= most, f"rate gives {name} a wrong number of arguments", len(args))
            for argument in args:
                _check(argument)
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            pass
        case ast.Name(id=name) if name in NAMES:
            pass
        case _:
            known = ", ".join([*NAMES, *FUNCTIONS][:-1])
            raise ValueError(f'rate may use {known} and {list(FUNCTIONS)[-1]}, not "{ast.unparse(node)}".')


def _value(node: ast.expr, values: Mapping[str, float]) -> float:
    match node:
        case ast.BinOp(left=left, op=op, right=right):
            return OPERATIONS[type(op)](_value(left, values), _value(right, values))
        case ast.UnaryOp(operand=operand):
            return -_value(operand, values)
        case ast.Call(func=ast.Name(id=name), args=args):
            return FUNCTIONS[name](*(_value(argument, values) for argument in args))
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.Name(id=name):
            return values[name]
    raise AssertionError(ast.dump(node))


def _log(node: ast.expr, values: Mapping[str, float]) -> float:
    """Return the logarithm of a node: products, quotients, powers and exponentials without their value."""
    match node:
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _log(left, values) + _log(right, values)
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return _log(left, values) - _log(right, values)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _value(right, values) * _log(left, values)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            low, high = sorted((_log(left, values), _log(right, values)))
            return high if high == -math.inf else high + math.log1p(math.exp(low - high))
        case ast.Call(func=ast.Name(id="sqrt"), args=[argument]):
            return 0.5 * _log(argument, values)
        case ast.Call(func=ast.Name(id="exp"), args=[argument]):
            return _value(argument, values)
        case ast.Call(func=ast.Name(id=("min" | "max") as name), args=args):
            return FUNCTIONS[name](*(_log(argument, values) for argument in args))
    return math.log(_value(node, values))


def _given(values: Mapping[str, float]) -> str:
    return "".join(f", {name} = {value:.4g}" for name, value in values.items())
