"""Odd options: wrong types, ends of the ranges, names that do not exist, things given twice or not at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

import dualopt.losses
import dualopt.methods
import dualopt.solvers
from dualopt.arrays._checks import _plain
from dualopt.spec.discover import discover
from tests.fuzz_inputs._case import Case, Expected, typed

__all__ = ["FAMILIES"]

Rng = np.random.Generator

# The lowest number that an option takes, and what a sentence may call it.
INTEGERS: dict[str, tuple[int, tuple[str, ...]]] = {
    "rounds": (0, ("rounds",)),
    "certify-every": (0, ("certify_every",)),
    "measure-every": (1, ("measure_every",)),
    "threads": (1, ("threads",)),
    "clients": (1, ("clients",)),
    "rows": (1, ("rows",)),
    "seed": (0, ("seed",)),
}
FLOATS: dict[str, tuple[str, ...]] = {
    "tol": ("tol",),
    "atol": ("atol",),
    "mu": ("mu",),
    "penalty": ("penalty", "lam"),
    "alpha": ("alpha",),
    "sigma": ("sigma",),
}
NEEDED: dict[str, dict[str, Any]] = {  # options without which an option has no say
    "alpha": {"partition": "dirichlet"},
    "sigma": {"partition": "lognormal"},
    "penalty": {"algorithm": "fedpd", "check-assumptions": False},
}
WORDS = [
    "algorithm",
    "data",
    "data-home",
    "split",
    "scale",
    "dtype",
    "storage",
    "device",
    "partition",
    "client-weights",
    "scales",
    "loss",
    "model",
    "regulariser",
    "participation",
    "solver",
    "stop",
    "start",
    "coordinates",
]
LISTS = ("param", "data-param", "loss-param", "solver-param")
FLAGS = ("reference", "test-accuracy", "check-assumptions", "intercept")
NO_NUMBER = [
    "",
    " ",
    "abc",
    "nan",
    "NaN",
    "1,5",
    "1.2.3",
    "--",
    "0x10",
    "1e",
    "½",
    "一",
    "\udcff",
    "\n",
    "1\n2",
    "None",
]
NO_INTEGER = [*NO_NUMBER, "inf", "-inf", "1.5", "1e3x", "1/2", "9" * 5000, "-" + "9" * 5000, "1e400"]
NO_FLOAT = [*NO_NUMBER, "-1", "-1e-300", "-inf", "1e400", "-" + "9" * 5000]
ODD_WORDS = [
    "",
    " ",
    "é",
    "\n",
    "\udcff",
    "../..",
    "a" * 5000,
    "*",
    "$x$",
    "[red]",
    "%s",
    "{0}",
    "a=b",
    "=",
    "-",
    "__init__",
]


def integer_option(rng: Rng) -> Case:
    """A text that is no integer, or one below the range."""
    name = _one(rng, list(INTEGERS))
    lowest, naming = INTEGERS[name]
    text = _one(rng, [*NO_INTEGER, str(lowest - 1), str(-(10**30))])
    return Case(what=f"--{name} {text[:40]!r}", words=typed("run", {name: text}), naming=naming)


def spelled_integer(rng: Rng) -> Case:
    """An integer written in an unusual way: the number itself, or a refusal."""
    name = _one(rng, ["rounds", "certify-every", "measure-every", "clients", "rows", "seed"])
    number = int(rng.integers(3, 5))
    text = _one(rng, [f"+{number}", f"00{number}", f" {number} ", f"{number}.0", chr(0xFF10 + number), f"0_{number}"])
    clean = Case(what="clean", words=typed("run", {name: str(number)}))
    words = typed("run", {name: text})
    return Case(what=f"--{name} {text!r}", words=words, expected=Expected.EITHER, clean=clean, naming=INTEGERS[name][1])


def large_integer(rng: Rng) -> Case:
    """A large integer: refused where it names a size, taken where it only has to be compared."""
    name, refused = _one(
        rng, [("threads", True), ("clients", True), ("rows", True), ("seed", False), ("certify-every", False)]
    )
    text = "1" * int(rng.integers(19, 60))
    expected = Expected.REFUSED if refused else Expected.EITHER
    words = typed("run", {name: text})
    return Case(what=f"--{name} {text}", words=words, expected=expected, naming=INTEGERS[name][1])


def float_option(rng: Rng) -> Case:
    """A text that is no number of the range."""
    name = _one(rng, list(FLOATS))
    words = typed("run", {**NEEDED.get(name, {}), name: (text := _one(rng, NO_FLOAT))})
    return Case(what=f"--{name} {text[:40]!r}", words=words, naming=FLOATS[name])


def extreme_float(rng: Rng) -> Case:
    """A number at the ends of the arithmetic."""
    name = _one(rng, list(FLOATS))
    text = _one(rng, ["5e-324", "1e-300", "1e-160", "1e160", "1e308", "0", "-0.0", "0.0000000001", "9" * 300])
    words = typed("run", {**NEEDED.get(name, {}), name: text})
    return Case(what=f"--{name} {text[:40]}", words=words, expected=Expected.EITHER, naming=FLOATS[name])


def infinite_float(rng: Rng) -> Case:
    """Infinity, which no option takes."""
    name = _one(rng, list(FLOATS))
    words = typed("run", {**NEEDED.get(name, {}), name: (text := _one(rng, ["inf", "Infinity", "1e999"]))})
    return Case(what=f"--{name} {text}", words=words, naming=FLOATS[name])


def word_option(rng: Rng) -> Case:
    """A name that does not exist."""
    name, text = _one(rng, WORDS), _one(rng, ODD_WORDS)
    command = _one(rng, ["run", "compare", "tune"])
    options: dict[str, Any] = {name: text}
    if command == "tune":
        options["grid"] = ["rho=0,0.1"]
    if command == "compare":
        options.setdefault("algorithm", "dualfl")
    naming = (name,)
    return Case(what=f"{command} --{name} {text[:40]!r}", words=typed(command, options), naming=naming)


def twice(rng: Rng) -> Case:
    """An option given twice, of which one would be lost."""
    name = _one(rng, [*INTEGERS, *FLOATS, *WORDS, *FLAGS, "out"])
    one = {"out": "a", **dict.fromkeys(INTEGERS, "3"), **dict.fromkeys(FLOATS, "0.5")}.get(name, "x")
    words = typed("run", {})
    if name in FLAGS:
        first, second = (f"--{name}",) * 2
        if name in ("check-assumptions", "intercept"):
            second = f"--no-{name}"
        extra = (first, second)
    else:
        extra = (f"--{name}", one, f"--{name}", one)
    return Case(what=f"--{name} twice", words=words[:1] + extra + _without(words[1:], name), naming=(name,))


def malformed(rng: Rng) -> Case:
    """A command line that is none."""
    words, naming = _one(
        rng,
        [
            (("run", "--bogus", "1"), ("--bogus",)),
            (("run", "--rounds"), ("--rounds",)),
            (("run", "--Rounds", "1"), ("--Rounds",)),
            (("run", "--round", "1"), ("--round",)),
            (("run", "\N{EN DASH}rounds", "1"), ("\N{EN DASH}rounds", "argument")),
            (("run", "extra"), ("extra",)),
            (("run", "--", "--rounds"), ("--rounds",)),
            (("run", "-z"), ("-z",)),
            (("run", "-p"), ("-p",)),
            (("run", "--reference=yes"), ("--reference",)),
            (("run", "--no-reference"), ("--no-reference",)),
            (("rum",), ("rum",)),
            (("",), ("command",)),
            (("compare",), ("algorithm",)),
            (("compare", "--plot", "energy"), ("algorithm",)),
            (("tune",), ("grid",)),
            (("list", "a", "b"), ("b",)),
            (("list", ""), ("kind",)),
            (("list", "\udcff"), ("kind",)),
            (("list", "--x"), ("--x",)),
            (("--rounds", "1"), ("--rounds",)),
        ],
    )
    return Case(what=f"dualopt {' '.join(words)!r}", words=words, naming=naming)


def asks(rng: Rng) -> Case:
    """What a user asks the programs first."""
    program, words = _one(
        rng,
        [
            ("dualopt", ("--help",)),
            ("dualopt", ("--version",)),
            ("dualopt", ("run", "--help")),
            ("dualopt", ("compare", "--help")),
            ("dualopt", ("tune", "--help")),
            ("dualopt", ("list",)),
            ("dualopt", ("list", "losses")),
            ("figures", ("--help",)),
            ("figures", ("--version",)),
            ("figures", ("--list",)),
            ("theory", ("--help",)),
            ("theory", ("--version",)),
            ("theory", ("--list",)),
        ],
    )
    return Case(what=f"{program} {' '.join(words)}", program=program, words=words, expected=Expected.HELP)


def pair(rng: Rng) -> Case:
    """A parameter in another form than name=value, or without a meaning."""
    name = _one(rng, LISTS)
    text = _one(
        rng, ["", " ", "x", "=", "=1", "x=", "x=1", "é=1", "\udcff=1", "a" * 5000 + "=1", "x y=1", "\n=1", "None=None"]
    )
    needed = {"solver-param": {"solver": "lbfgs"}, "loss-param": {"loss": "huber"}}.get(name, {})
    words = typed("run", {**needed, name: [text]})
    naming = (name, "option" if name == "data-param" else "parameter of")  # of solver lbfgs
    return Case(what=f"--{name} {text[:40]!r}", words=words, naming=naming)


def data_parameter(rng: Rng) -> Case:
    """An option of a data set, with a value of another kind or beyond its range."""
    values = ["abc", "nan", "-1", "1.5", "inf", "-inf", "é", "1e400", "9" * 5000, "-" + "9" * 30]
    name = _one(rng, ["m", "d"])
    text = _one(rng, [*values, "0", "1e3", "9" * 30])
    options = {"data": _one(rng, ["synthetic-logistic", "synthetic-regression"]), "data-param": [f"{name}={text}"]}
    return Case(what=f"--data-param {name}={text[:40]}", words=typed("run", options), naming=(name, "memory"))


def file_parameter(rng: Rng) -> Case:
    """An option of a LIBSVM file with a wrong value."""
    name, texts = _one(
        rng,
        [
            ("max_bytes", ["abc", "nan", "-1", "0", "1", "inf.", "9e"]),
            ("n_features", ["abc", "nan", "-1", "0", "1", "1.5", "inf", "9" * 5000, "9" * 25]),
            ("storage", ["abc", "1", "nan"]),
            ("split", ["abc", "1", "nan", "test"]),
        ],
    )
    text = _one(rng, texts)
    options = {"data": "rows.svm", "data-param": [f"{name}={text}"]}
    naming = (name, "memory", "data_param")
    words = typed("run", options)
    return Case(what=f"--data-param {name}={text[:40]}", words=words, naming=naming, arrange=_small_file)


def method_parameter(rng: Rng) -> Case:
    """A parameter of a method or a solver that is no number, or one at the ends of the arithmetic."""
    kind, owner, name, type = _one(rng, _parameters())
    bad = {int: NO_INTEGER, float: [*NO_NUMBER], bool: ["", "1", "yes", "nan"], str: ["", "x", "\udcff"]}[type]
    options: dict[str, Any] = {"algorithm": owner} if kind == "param" else {"algorithm": "dualfl", "solver": owner}
    refused = bool(rng.random() < 0.5)
    text = _one(rng, bad) if refused or type not in (int, float) else _one(rng, ENDS[type])
    options[kind] = [f"{name}={text}"]
    return Case(
        what=f"{owner} {name}={text[:40]!r}",
        words=typed("run", options),
        expected=Expected.REFUSED if text in bad else Expected.EITHER,
        # One that is well may be missing another parameter, or be of no use to the problem.
        naming=(name, kind) if text in bad else (),
    )


def model(rng: Rng) -> Case:
    """Forms of options that hold a number inside: widths, weights, sizes of subsets."""
    name, texts = _one(
        rng,
        [
            (
                "model",
                [
                    "mlp=",
                    "mlp",
                    "mlp=0",
                    "mlp=-1",
                    "mlp=1.5",
                    "mlp=2,",
                    "mlp=a",
                    "mlp=" + "9" * 30,
                    "mlp=" + "9" * 5000,
                ],
            ),
            ("regulariser", ["l1", "l1=", "l1=-1", "l1=nan", "l1=inf", "l1=1e400", "l1=" + "9" * 5000, "l3=1"]),
            (
                "participation",
                [
                    "subset",
                    "subset=0",
                    "subset=1.5",
                    "subset=nan",
                    "subset=inf",
                    "subset=4",
                    "subset=" + "9" * 30,
                    "bernoulli=0",
                    "bernoulli=1.5",
                    "bernoulli=nan",
                    "communicate=-1",
                    "full=1",
                    "subset=" + "9" * 5000,
                ],
            ),
            ("stop", ["steps=0", "steps=1.5", "steps=nan", "steps=inf", "gradient=0", "gradient=-1", "reduction=1"]),
            ("stop", ["gap=0", "gap=-1", "gap=inf", "energy=nan", "steps", "steps=", "steps=" + "9" * 5000]),
            (
                "coordinates",
                ["sketch=0", "sketch=-1", "sketch=", "sketch=x", "plain=1", "sketch=²", "sketch=" + "9" * 5000],
            ),
            ("scale", ["0", "-1", "nan", "inf", "1e400", "9" * 5000]),
            ("split", ["validation", "TRAIN", "0"]),
        ],
    )
    text = _one(rng, texts)
    options = {"algorithm": "fedavg" if name == "participation" else "fedpd", name: text}
    naming = (name, text.partition("=")[0] or name, "size", "weight", "probability", "steps", "rank", "tol", "factor")
    return Case(what=f"--{name} {text[:40]!r}", words=typed("run", options), naming=naming)


def comparison(rng: Rng) -> Case:
    """Labels of a comparison, which become names of files and words in a picture."""
    clean = Case(what="clean", words=typed("compare", {"algorithm": ["dualfl"]}))
    label = _one(
        rng,
        [
            "../x",
            "x/y",
            ".",
            "..",
            "\n",
            "a\tb",
            "$x$",
            "$",
            "\\frac{",
            "a" * 200,
            "é",
            "日本",
            "%",
            "[red]x",
            "_",
            "#",
            "a,b",
            " ",
            "compare.json",
            "-p",
            "~",
            "\u202e",
            "a" * 5000,
            "�",
            "\x1b[31m",
            "CON",
            "{",
            "<b>",
        ],
    )
    words = typed("compare", {"algorithm": [f"{label}@dualfl"]})
    return Case(
        what=f"compare {label[:40]!r}@dualfl", words=words, expected=Expected.EITHER, clean=clean, naming=("algorithm",)
    )


def variants(rng: Rng) -> Case:
    """Variants of a comparison that are none."""
    texts = ["", "@", "a@", "@dualfl", "dualfl:", "dualfl:rho", "dualfl:rho=", "dualfl:=1", "dualfl:rho=1,rho=0", "x:y"]
    texts += [
        "dualfl:rho=nan",
        "dualfl:solver=",
        "dualfl:solver=x",
        "dualfl:stop=x",
        "dualfl:solver.history=3",
        "DualFL",
    ]
    chosen = [_one(rng, texts)] if rng.random() < 0.8 else ["dualfl", "dualfl"]
    words = typed("compare", {"algorithm": chosen})
    return Case(what=f"compare {chosen!r}", words=words, naming=("algorithm", "param", "solver", "stop"))


def plotted(rng: Rng) -> Case:
    """A column to draw that is not there."""
    text = _one(rng, ["", "seconds!", "error", "test_accuracy", "round", "é", "\udcff"])
    return Case(
        what=f"--plot {text!r}", words=typed("compare", {"algorithm": ["dualfl"], "plot": text}), naming=("plot",)
    )


def search(rng: Rng) -> Case:
    """Options of a search."""
    name, text, naming = _one(
        rng,
        [
            *(("grid", text, ("grid", "param", "stop", "participation", "solver", "rho")) for text in GRIDS),
            *(("target", text, ("target",)) for text in ["0", "-1", "nan", "inf", "abc", "", "1e400"]),
            *(("metric", text, ("metric",)) for text in ["energy", "", "seconds", "é"]),
            *(("jobs", text, ("jobs",)) for text in ["0", "-1", "abc", "1.5", "", "9" * 30]),
            *(("rounds", text, ("rounds",)) for text in ["-1", "abc", "1.5", "", "9" * 5000]),
        ],
    )
    options: dict[str, Any] = {"grid": ["rho=0,0.1"], name: [text] if name == "grid" else text}
    return Case(what=f"tune --{name} {text[:40]!r}", words=typed("tune", options), naming=naming)


def figure(rng: Rng) -> Case:
    """Options of the program that draws."""
    words, naming = _one(
        rng,
        [
            (("nosuch",), ("figure",)),
            (("",), ("figure",)),
            (("fig1c_rho", "--rounds", "0"), ("rounds",)),
            (("fig1c_rho", "--rounds", "x"), ("rounds",)),
            (("fig1c_rho", "--data", ""), ("data",)),
            (("fig1c_rho", "--data", "nosuch"), ("data",)),
            (("fig1c_rho", "--threads", "0"), ("threads",)),
            (("fig1c_rho", "--threads", "9" * 30), ("threads",)),
            (("fig1c_rho", "--threads", "9" * 5000), ("threads",)),
            (("fig1c_rho", "--rows", "0"), ("rows",)),
            (("fig1c_rho", "--rows", "9" * 30), ("rows",)),
            (("fig1c_rho", "--out", ""), ("out",)),
            (("fig1c_rho", "--redraw", "--data", "digits", "--rows", "50"), ("redraw",)),
            (("fig1c_rho", "--quick", "--quick"), ("quick",)),
            (("fig1c_rho", "--bogus"), ("--bogus",)),
            (("fig1c_rho", "--jobs", "0"), ("jobs",)),
        ],
    )
    return Case(
        what=f"figures {' '.join(words)[:60]!r}", program="figures", words=words, naming=naming, out="figures-out"
    )


def theorem(rng: Rng) -> Case:
    """Options of the program that checks theorems."""
    words, naming = _one(
        rng,
        [
            (("nosuch",), ("claim",)),
            (("",), ("claim",)),
            (("--jobs", "0"), ("jobs",)),
            (("--jobs", "x"), ("jobs",)),
            (("--jobs", "9" * 30), ("jobs",)),
            (("--json", "no/such/file.json"), ("json",)),
            (("--json", ""), ("json",)),
            (("--json", "."), ("json",)),
            (("--report", "no/such/file.md"), ("report",)),
            (("--report", "."), ("report",)),
            (("--bogus",), ("--bogus",)),
            (("--quick", "--quick"), ("quick",)),
        ],
    )
    return Case(what=f"theory {' '.join(words)[:60]!r}", program="theory", words=words, naming=naming)


ENDS: dict[type, list[str]] = {
    int: ["0", "-1", "1", "2", "9" * 30],
    float: ["0", "-1", "1", "inf", "-inf", "1e-320", "1e-200", "1e200", "1e308", "0.5", "1e999"],
}
GRIDS = [
    "",
    "rho",
    "rho=",
    "rho=0,0",
    "rho=,1",
    "=1",
    "foo=1",
    "participation=x",
    "solver=x",
    "stop=x",
    "rho=nan",
    "rho=2",
]
GRIDS += ["solver.history=3", "rho=abc", "\udcff=1", "rho=" + "9" * 5000]

FAMILIES: tuple[Callable[[Rng], Case], ...] = (
    integer_option,
    spelled_integer,
    large_integer,
    float_option,
    extreme_float,
    infinite_float,
    word_option,
    word_option,
    twice,
    malformed,
    asks,
    pair,
    data_parameter,
    file_parameter,
    method_parameter,
    method_parameter,
    method_parameter,
    model,
    comparison,
    variants,
    plotted,
    search,
    figure,
    theorem,
)


def _one(rng: Rng, of: Sequence[Any]) -> Any:
    return of[int(rng.integers(len(of)))]


def _without(words: tuple[str, ...], name: str) -> tuple[str, ...]:
    """Leave out an option and its value."""
    kept, skip = [], False
    for word in words:
        if skip:
            skip = False
        elif word == f"--{name}":
            skip = name not in FLAGS
        else:
            kept.append(word)
    return tuple(kept)


def _small_file(folder: Any) -> None:
    (folder / "rows.svm").write_text("".join(f"{(-1) ** i} 1:{i} 2:{i % 3} 3:1\n" for i in range(12)))


@cache
def _parameters() -> list[tuple[str, str, str, type]]:
    """Return option, owner, name and type of all parameters that can be typed."""
    found: list[tuple[str, str, str, type]] = []
    for kind, package in (("param", dualopt.methods), ("solver-param", dualopt.solvers)):
        for owner, cls in discover(package).items():
            found += [(kind, owner, name, type) for name, type in _plain(cls).items()]
    return found
