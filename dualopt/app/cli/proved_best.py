"""The word ``proved-best`` among the parameters of a method, and the numbers that it stands for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dualopt.arrays._checks import require
from dualopt.methods import Algorithm
from dualopt.methods.compressors import Compressor, Identity
from dualopt.methods.participation import Participation
from dualopt.objectives import Objective
from dualopt.spec import Spec, pairs

if TYPE_CHECKING:
    from dualopt.lab.proofs import ProvedBest

__all__ = ["WORD", "chosen", "given", "split"]

WORD = "proved-best"


def given(spec: Spec, param: Sequence[str]) -> Spec:
    """Return a method with the parameters of ``--param``, of which one may be the word.

    >>> print(given(Spec.parse("feddyn"), ["proved-best", "stop=steps=3"]))
    feddyn: proved-best, stop=(steps: 3)
    """
    words = {"": WORD} if WORD in param else {}
    return spec.given(words | pairs([text for text in param if text != WORD], "param"), "param")


def split(spec: Spec) -> tuple[Spec, bool]:
    """Return a method without the word, and whether it was there.

    >>> spec, best = split(Spec.parse("feddyn:proved-best"))
    >>> print(spec, best)
    feddyn True
    """
    spec = spec.expanded("algorithm")
    alone = spec.arguments.get("")
    words = alone if isinstance(alone, list) else [alone]
    if WORD not in words:
        return spec, False
    rest = [x for x in words if x != WORD]
    others = {name: x for name, x in spec.arguments.items() if name}
    return Spec(spec.name, {"": rest[0] if len(rest) == 1 else rest, **others} if rest else others), True


def chosen(
    method: Algorithm,
    objective: Objective,
    participation: Participation,
    compressor: Compressor,
    earlier: Mapping[str, Any] | None,
) -> tuple[Algorithm, Mapping[str, Any]]:
    """Return a method with the proved best parameters, and what a record says of them.

    Those of an ``earlier`` record, whose command is continued or repeated, are taken as they are there.
    """
    from dualopt.lab.proofs import class_of, proved_best, with_numbers  # of the extra "theory"

    if earlier is not None:
        return with_numbers(method, earlier["parameters"]), earlier
    require(isinstance(compressor, Identity), f"compressor must be identity with {WORD}: nothing is proved of others")
    found: ProvedBest = proved_best(method, **class_of(objective), participation=participation)
    return found.algorithm, found.to_json()
