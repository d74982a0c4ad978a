"""Calling the programs in this process: what they print, how they end, and the one sentence with which they refuse.

And what the deep checks have in common that draw a case from each seed.
"""

from __future__ import annotations

import argparse
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

__all__ = ["called", "check_cases", "ended", "refusal"]

Main = Callable[[Sequence[str]], Any]
Capture = pytest.CaptureFixture[str]


def ended(main: Main, *words: Any) -> int:
    """Call a program; return its exit code."""
    with pytest.raises(SystemExit) as end:
        main([str(word) for word in words])
    return int(str(end.value.code or 0))


def called(capsys: Capture, main: Main, *words: Any) -> tuple[int, str, str]:
    """Call a program; return exit code, standard output and standard error."""
    code, (out, err) = ended(main, *words), capsys.readouterr()
    return code, out, err


def refusal(capsys: Capture, main: Main, *words: Any) -> str:
    """Call a program that must refuse; return its one sentence, without the name of the program."""
    capsys.readouterr()  # what was printed before
    code, out, err = called(capsys, main, *words)
    assert (code, out) == (2, ""), (out, err)
    assert re.fullmatch(r"[\w -]+: [^\n]+[.?]\n", err), err
    return err.partition(": ")[2].rstrip("\n")


def check_cases(
    module: str,
    about: str | None,
    check: Callable[[int], tuple[str, str]],
    arguments: Sequence[str] | None,
    *,
    cases: int,
) -> int:
    """Check the cases of many seeds, print those that fail, and return the exit code.

    ``check`` returns how the case of a seed ends, in a word or two, and what is wrong with it, empty if nothing is.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=(about or "").partition("\n")[0])
    parser.add_argument("--cases", type=int, default=cases, help="number of cases")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first case; the others follow")
    options = parser.parse_args(arguments)
    ends, failed, start = Counter[str](), 0, time.perf_counter()
    for seed in range(options.seed, options.seed + options.cases):
        end, failure = check(seed)
        ends[end] += 1
        if failure:
            failed += 1
            print(f"{failure}\n  python -m {module} --cases 1 --seed {seed}", flush=True)
    shares = ", ".join(f"{count} {end}" for end, count in sorted(ends.items()))
    print(f"{options.cases} cases ({shares}), {failed} failed, {time.perf_counter() - start:.0f} s")
    return 1 if failed else 0
