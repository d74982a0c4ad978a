"""Names and styles of methods: a method has the same colour, marker and dashes in every picture."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

from dualopt.spec._kinds import names

__all__ = ["COLOURS", "STYLES", "Style", "numbered", "proper_name", "style", "styles"]

# Two halves, the first by Okabe and Ito (2008), the second with three colours of Tol's muted scheme. Within a half no
# two are alike for people who see no green or no red; colours that are meet in different halves, which share neither
# markers nor dashes.
COLOURS = (
    *("#0072B2", "#D55E00", "#009E73", "#E69F00", "#56B4E9", "#000000"),
    *("#CC79A7", "#882255", "#999933", "#332288", "#AA4499", "#661100"),
)
HALF = len(COLOURS) // 2
MARKERS = (("o", "s", "^", "D", "v", "P"), ("X", "p", "<", "*", ">", "h"))
DASHES: tuple[tuple[Any, ...], ...] = (
    ("-", (0, (6, 2)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5))),
    ((0, (11, 2)), (0, (3, 1.2)), (0, (6, 1.2, 1, 1.2, 1, 1.2)), (0, (2, 3))),
)
TURNS = len(DASHES[0])
STYLES = TURNS * len(COLOURS)

# How papers write the methods, in the order of their styles: those that are drawn together in the documentation are
# not twelve places apart, and so differ in colour. No method needs to be added: it gets a free style of its own.
METHODS = {
    "dualfl": "DualFL",
    "optimized-dualfl": "OptimizedDualFL",
    "feddyn": "FedDyn",
    "fedsplit": "FedSplit",
    "scaffnew": "Scaffnew",
    "fedavg": "FedAvg",
    "fedadmm": "FedADMM",
    "fedprox": "FedProx",
    "scaffold": "SCAFFOLD",
    "feddr": "FedDR",
    "fedpd": "FedPD",
    "anderson-fedsplit": "AndersonFedSplit",
    "sampled-dualfl": "SampledDualFL",
    "giant": "GIANT",
    "adaptive-acc-s-dane": "adaptive Acc-S-DANE",
    "distributed-newton-cg": "Newton-CG at the server",
    "a-fedpd": "A-FedPD",
    "feddualavg": "FedDualAvg",
    "apda-inexact": "APDA-Inexact",
    "fivegcs": "5GCS",
    "distributed-lbfgs": "L-BFGS at the server",
    "anderson-dane": "AndersonDANE",
    "gradient-descent": "gradient descent",
    "dual-ascent": "dual ascent",
    "acc-s-dane": "Acc-S-DANE",
    "dual-lbfgs": "L-BFGS on the dual",
    "restarted-dualfl": "RestartedDualFL",
    "restarted-optimized-dualfl": "RestartedOptimizedDualFL",
    "gap-restarted-dualfl": "GapRestartedDualFL",
    "adaptive-dualfl": "AdaptiveDualFL",
    "corrected-dualfl": "CorrectedDualFL",
    "corrected-optimized-dualfl": "CorrectedOptimizedDualFL",
    "growing-feddyn": "GrowingFedDyn",
    "a-fedpdsam": "A-FedPDSAM",
    "feddynsam": "FedDynSAM",
    "fedspeed": "FedSpeed",
    "fedsam": "FedSAM",
    "fedcm": "FedCM",
    "scaffold-i": "SCAFFOLD, option I",
    "old-dual-fedpd": "OldDualFedPD",
    "consensus-fedsplit": "ConsensusFedSplit",
}


class Style(NamedTuple):
    """How a line looks, in the words of Matplotlib: ``axes.plot(x, y, **style("fedsplit")._asdict())``."""

    color: str
    marker: str
    linestyle: Any


def proper_name(label: str) -> str:
    """Return how papers write a method, with the parameters that follow it; another label as it is.

    Examples
    --------
    >>> proper_name("fedsplit"), proper_name("dualfl:rho=0,nu=1e-3"), proper_name("a label")
    ('FedSplit', 'DualFL, rho = 0, nu = 1e-3', 'a label')
    """
    name, _, parameters = label.partition(":")
    if name not in _numbers():
        return label
    words = METHODS.get(name) or names("algorithm")[name].__name__
    return ", ".join([words, *(part.replace("=", " = ") for part in parameters.split(",") if part)])


def style(name: str) -> Style:
    """Return the style of a method, which depends on nothing but its name, written either way.

    Raises
    ------
    ValueError
        If no method has this name, whatever parameters follow after a colon.

    Examples
    --------
    >>> style("feddyn") == style("FedDyn") == style("feddyn:alpha=0.1") != style("fedadmm")
    True
    """
    number = _number(name)
    if number is None:
        raise ValueError(f"name must be that of a method, not {name!r}.")
    return numbered(number)


def styles(names: Iterable[str], methods: Mapping[str, str] | None = None) -> dict[str, Style]:
    """Return the styles of names that share a picture, all different up to 48.

    A method has its own style. A second name of the same method, and every name that is none, gets a free one: of a
    colour that is free too, as long as there are any of the twelve, in their order.

    Parameters
    ----------
    names : iterable of str
        What is drawn.
    methods : dict of str to str, optional
        The methods of names that are none themselves.

    Examples
    --------
    >>> found = styles(["plain", "dualfl:rho=0", "dualfl", "fedavg"])
    >>> found["dualfl"] == style("dualfl"), found["fedavg"] == style("fedavg"), len(set(found.values()))
    (True, True, 4)
    """
    names, methods = list(dict.fromkeys(names)), methods or {}
    chosen: dict[str, Style] = {}
    # A method as it is comes before what only names it.
    for name in sorted(names, key=lambda name: (_number(name) is None, ":" in name)):
        number = _number(name) if _number(name) is not None else _number(methods.get(name, ""))
        if number is not None and (own := numbered(number)) not in chosen.values():
            chosen[name] = own
    for name in names:
        if name not in chosen:
            used = {found.color for found in chosen.values()}
            free = [found for found in map(numbered, range(STYLES)) if found not in chosen.values()]
            chosen[name] = min(free, key=lambda found: found.color in used, default=numbered(0))  # the first of these
    return {name: chosen[name] for name in names}


def numbered(number: int) -> Style:
    """Return a style by its number, less than 48.

    That is a colour and a turn, which shifts the markers of the colour's half and gives the dashes.
    """
    turn, colour = divmod(number, len(COLOURS))
    half, place = divmod(colour, HALF)
    return Style(COLOURS[colour], MARKERS[half][(place + turn) % HALF], DASHES[half][turn])


def _number(name: str) -> int | None:
    """Return the number of the style of a method, by its name in either form; None for other names."""
    return _numbers().get(_slug(name))


def _slug(name: str) -> str:
    """Return the name under which the package knows a method, if it is one, without its parameters."""
    own = name.partition(":")[0]
    return _slugs().get(name) or (_slugs().get(_letters(own), own) if own.isidentifier() else own)


@cache
def _slugs() -> dict[str, str]:
    """Return the names of methods, by that of their class and by how papers write them."""
    return {_letters(name): name for name in names("algorithm")} | {words: name for name, words in METHODS.items()}


def _letters(name: str) -> str:
    """Return the letters by which the name of a class is that of its method; so no class is imported.

    >>> _letters("AFedPD") == _letters("a-fedpd")
    True
    """
    return "".join(filter(str.isalnum, name)).lower()


@cache
def _numbers() -> dict[str, int]:
    """Return the numbers of the styles of all methods: the written one, or the first free one from a hash on."""
    numbers = {name: number for number, name in enumerate(METHODS)}
    for name in names("algorithm"):
        if name not in numbers:
            start, taken = zlib.crc32(name.encode()), set(numbers.values())
            numbers[name] = next(
                (k % STYLES for k in range(start, start + STYLES) if k % STYLES not in taken), start % STYLES
            )
    return numbers
