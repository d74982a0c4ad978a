"""Damaged records of a search."""

from __future__ import annotations

import functools

from tests.fuzz_inputs._case import Case, typed
from tests.fuzz_inputs._rows import Rng, one, write

__all__ = ["tune_record"]


def tune_record(rng: Rng) -> Case:
    """The record of an earlier search that is damaged: refused, or of no consequence."""
    base = {"grid": ["rho=0,0.1"]}
    good = (
        b'{"command": "tune", "search": {}, "points": [{"parameters": {"rho": "0"}, "status": "converged", '
        b'"costs": [1], "errors": [0], "seconds": 0}]}'
    )
    content = one(
        rng,
        [
            b"",
            b"{}",
            b"[]",
            b"null",
            b"1",
            good,
            good[:-1],
            b"\xff\xfe",
            b"[" * 100_000,
            b"{" * 5000,
            b'{"search": 1, "points": 2}',
            b'{"search": {}, "points": [1]}',
            b'{"search": {}, "points": [{"parameters": 1}]}',
            good.replace(b'"search": {}', b'"search": {"rounds": ' + b"9" * 5000 + b"}"),
            b"9" * 5000,
            b'{"points": []}',
            b"NaN",
        ],
    )
    return Case(
        what=f"tune.json with {content[:30]!r}",
        words=typed("tune", base),
        naming=("out", "file"),
        arrange=functools.partial(write, {"out/tune.json": content}),
    )
