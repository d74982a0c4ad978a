"""Imports run one way, ``dualopt <- theory <- figures``, and array libraries stay behind ``dualopt.arrays.xp``.

Inside ``dualopt`` a room imports what is below it, and no modules import one another in a circle. Imports in functions
count, and those for types alone, too; a name that a package loads when it is asked for is an import of the module that
its stub names. What is looked up by name, the modules of `dualopt.spec._kinds.KINDS` and the data sets, is not an
import: it is known only when somebody asks.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

from dualopt.arrays import _extras

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
FORBIDDEN = {"dualopt": {"theory", "figures", "tests"}, "theory": {"figures", "tests"}, "figures": {"tests"}}
ARRAYS = {"numpy", "cupy", "array_api_compat", "array_api_strict"}
HOST_MODULES = {
    "arrays/xp.py",
    "arrays/codec.py",  # writes arrays to files and reads them
    "arrays/client_states.py",  # positions of clients are host integers, here and in the next one
    "arrays/tree.py",
    "engine",  # what travels between server and hosts, or into a file, is in host memory
    "arrays/streams.py",
    "runs/_data_hash.py",  # of bytes in host memory
    "runs/trace.py",
    "runs/reference.py",
    "runs/plotting",
    "lab",
    "problem/inputs",  # data as people have them, before they are arrays of any library
    "problem/data",
    "problem/preprocessing",
    "problem/models",  # files, and rows that come later
    "app/estimators",  # for scikit-learn, whose arrays are NumPy's
    "federation",  # reads the data of a site, which are files
}

# From the lowest to the highest: what is in a room imports rooms before its own. Certificates and traces are below the
# engine, whose hosts make them; a ``__main__`` is a program, which nobody imports.
ROOMS = (
    ("arrays",),
    ("spec",),
    ("losses", "regularisers"),
    ("problem.inputs",),
    ("objectives",),
    ("solvers",),
    ("methods",),
    ("runs._imports", "runs.cuts"),
    ("runs.certificates", "runs.trace", "runs._sources"),
    ("engine",),
    ("runs",),
    ("problem",),
    ("lab", "federation"),
    ("app",),
)
HEIGHTS = {f"dualopt.{room}": height for height, rooms in enumerate(ROOMS) for room in rooms}


def imported(source: str) -> set[str]:
    """Top-level names of everything that a source imports, anywhere in it."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.add(node.module.split(".")[0])
    return names


def may_use_numpy(path: Path) -> bool:
    relative = path.relative_to("dualopt")
    return any(relative.is_relative_to(name) for name in HOST_MODULES)


FILES = [path.relative_to(ROOT) for package in FORBIDDEN for path in sorted((ROOT / package).rglob("*.py"))]


@cache
def imported_by(path: Path) -> set[str]:
    """Return what a file imports, by its path from the root."""
    return imported((ROOT / path).read_text())


def offenders(forbidden: dict[Path, set[str]]) -> dict[str, set[str]]:
    """Return the files that import what they must not, and what that is."""
    return {str(path): found for path, names in forbidden.items() if (found := imported_by(path) & names)}


def test_every_package_is_read() -> None:
    assert {path.parts[0] for path in FILES} == set(FORBIDDEN)
    assert {"dualopt", "theory"} < imported_by(Path("figures/table1.py"))


def test_imports_run_one_way() -> None:
    assert offenders({path: FORBIDDEN[path.parts[0]] for path in FILES}) == {}


def test_only_named_modules_know_numpy() -> None:
    numerical = [path for path in FILES if path.parts[0] == "dualopt" and not may_use_numpy(path)]
    assert offenders(dict.fromkeys(numerical, ARRAYS)) == {}


def test_only_the_strategies_need_hypothesis() -> None:
    assert set(offenders({path: {"hypothesis"} for path in FILES})) == {"dualopt/lab/testing.py"}


EXTRAS = [  # what is run, what is missing, how that ends, and the last words
    *(
        (f"import dualopt.{module}", package, 1, f"ModuleNotFoundError: dualopt.{needs} needs {words}.")
        for module, package, needs, words in (
            ("lab.testing", "hypothesis", "lab.testing", 'Hypothesis: pip install "dualopt[testing]"'),
            ("lab.attack", "scipy", "lab.attack", 'SciPy: pip install "dualopt[sparse]"'),
            ("lab.verification.pictures", "matplotlib", "runs.plotting", 'matplotlib: pip install "dualopt[app]"'),
            ("runs.plotting", "matplotlib", "runs.plotting", 'matplotlib: pip install "dualopt[app]"'),
            ("app.estimators", "sklearn", "app.estimators", 'scikit-learn: pip install "dualopt[app]"'),
        )
    ),
    *(
        (
            f"import runpy; runpy.run_module({name!r}, run_name='__main__')",
            *("rich", 2, f'{name}: package rich is missing: pip install "dualopt[app]".'),
        )
        for name in ("theory", "figures")
    ),
    (
        "from dualopt.app.cli import main; main(['list'])",
        *("typer", 2, 'dualopt: package typer is missing: pip install "dualopt[app]".'),
    ),
]


@pytest.mark.parametrize(("code", "package", "status", "sentence"), EXTRAS)
def test_what_lacks_its_extra_names_it(code: str, package: str, status: int, sentence: str) -> None:
    code = f"import sys; sys.modules[{package!r}] = None\n{code}"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr.splitlines()[-1]) == (status, "", sentence)
    assert status == 1 or done.stderr == f"{sentence}\n"


def module_name(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def targets(source: str, module: str, is_package: bool) -> Iterator[tuple[str, str]]:
    """Yield what a module imports of this package: modules, and names in them ("" for all)."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            up = module.split(".")[: len(module.split(".")) + is_package - node.level] if node.level else []
            place = ".".join([*up, *([node.module] if node.module else [])])
            yield from ((place, alias.name) for alias in node.names)


SOURCES = {module_name(path): path for path in FILES if path.parts[0] == "dualopt"}
STUBS = {
    (module_name(path.relative_to(ROOT)), name): place
    for path in (ROOT / "dualopt").rglob("__init__.pyi")
    for place, name in targets(path.read_text(), module_name(path.relative_to(ROOT)), is_package=True)
}


def graph() -> dict[str, set[str]]:
    """Return which modules of this package each of them imports, anywhere in it."""
    found: dict[str, set[str]] = {}
    for module, path in SOURCES.items():
        own = found[module] = set()
        for place, name in targets((ROOT / path).read_text(), module, path.name == "__init__.py"):
            while (place, name) in STUBS and f"{place}.{name}" not in SOURCES:
                place = STUBS[place, name]
            own.add(f"{place}.{name}" if f"{place}.{name}" in SOURCES else place)
        found[module] = own & SOURCES.keys() - {module}
    return found


def circle(modules: dict[str, set[str]]) -> list[str]:
    """Return modules that import one another, each the next one; none if there is no circle."""
    try:
        TopologicalSorter(modules).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def height(module: str) -> int:
    """Return that of the room a module is in."""
    if module in ("dualopt", "dualopt.__main__") or module.endswith(".__main__"):
        return len(ROOMS)
    while module not in HEIGHTS:
        module = module.rpartition(".")[0]
    return HEIGHTS[module]


def upwards(modules: dict[str, set[str]]) -> set[tuple[str, str]]:
    """Return the imports of what is not below."""

    def room(module: str) -> str:
        return max((name for name in HEIGHTS if f"{module}.".startswith(f"{name}.")), key=len, default=module)

    return {
        (one, other)
        for one, others in modules.items()
        for other in others
        if height(other) >= height(one) and room(one) != room(other)
    }


def test_no_modules_import_one_another_in_a_circle() -> None:
    modules = graph()
    assert circle(modules) == []
    assert "dualopt.engine.mpi" in modules["dualopt.app.cli.engine"]  # in a function, and by a stub
    assert set(circle(modules | {"dualopt.arrays.xp": {"dualopt.methods.dualfl"}})) >= {"dualopt.methods.dualfl"}


def test_rooms_import_what_is_below_them() -> None:
    modules = graph()
    assert upwards(modules) == set()
    assert upwards(modules | {"dualopt.solvers.lbfgs": {"dualopt.methods.dualfl"}}) != set()


def test_every_room_says_what_it_imports() -> None:
    """The sentence of a docstring on imports names all rooms whose modules its own import, and only rooms below."""
    rooms = {path.parent.name: path for path in (ROOT / "dualopt").glob("*/__init__.py")}
    assert set(rooms) == {name.split(".")[1] for name in HEIGHTS}
    modules = {one: others for one, others in graph().items() if not one.endswith(".__main__")}
    for room, path in rooms.items():
        text = " ".join((ast.get_docstring(ast.parse(path.read_text())) or "").split())
        said = re.search(r"It (?:may )?imports? ([^.]*(?:\.\w[^.]*)*)\.", text)
        assert said is not None, f"{room} does not say what it imports"
        named = rooms.keys() & set(re.findall(r"\w+", "".join(re.findall(r"``.*?``", said[1]))))
        if "everything" in said[1]:
            named = rooms.keys() - named
        own = [others for one, others in modules.items() if f"{one}.".startswith(f"dualopt.{room}.")]
        used = {other.split(".")[1] for other in set().union(*own) - {"dualopt"}}
        assert used - {room} <= named, room
        if "everything" not in said[1]:
            lowest = {name.split(".")[1]: h for name, h in reversed(HEIGHTS.items())}
            assert all(lowest[name] < height(f"dualopt.{room}") for name in named), room


def loaded(code: str) -> set[str]:
    """Return the modules of this package that a program has loaded at its end."""
    code += "\nimport sys; print(*(m for m in sys.modules if m.partition('.')[0] == 'dualopt'))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    ("code", "most"),
    [
        ("import dualopt", 1),
        ("import dualopt; dualopt.run, dualopt.DualFL, dualopt.linear_model", 132),
        (
            "from contextlib import redirect_stdout, suppress; import io, tempfile\n"
            "from dualopt.app.cli import main\n"
            "with tempfile.TemporaryDirectory() as out, redirect_stdout(io.StringIO()), suppress(SystemExit):\n"
            "    main(['run', '--data', 'digits', '--clients', '3', '--rounds', '1', '--out', out])",
            209,
        ),
    ],
)
def test_a_run_loads_what_it_uses(code: str, most: int) -> None:
    """No engine over a wire, no MPI and no federation is among it, and of all the methods only the one that runs."""
    found = loaded(code)
    assert len(found) <= most
    elsewhere = {
        m for m in found if ".mpi" in m or "_mpi" in m or m.endswith(".wire") or m.startswith("dualopt.federation")
    }
    assert elsewhere == set()
    methods = {m for m in found if m.startswith("dualopt.methods.") and m.count(".") == 2 and "._" not in m}
    shared = {f"dualopt.methods.{name}" for name in ("compressors", "oracle", "participation", "preparation")}
    assert methods - shared <= {"dualopt.methods.dualfl"}


PROGRAM = """
from contextlib import redirect_stdout, suppress; import io, sys, tempfile
with tempfile.TemporaryDirectory() as out, redirect_stdout(io.StringIO()), suppress(SystemExit):
    from {module} import main
    main([x.replace("OUT", out) for x in {words}])
print(*sorted({{"numpy", "pydantic", "array_api_compat.numpy", "numpy.f2py", "scipy", "sklearn", "pandas", "pyarrow",
                "cvxpy", "matplotlib", "dualopt.methods", "dualopt.problem", "figures.fig1c_rho"}} & set(sys.modules)))
"""
METHODS = ["dualopt.methods", "dualopt.problem", "numpy", "pydantic"]  # what options are made from, and what reads them


@pytest.mark.parametrize(
    ("module", "words", "loaded"),
    [
        ("dualopt.app.cli", ["--help"], []),
        ("dualopt.app.cli", ["run", "--help"], METHODS),
        ("dualopt.app.cli", ["prove", "--help"], METHODS),
        ("dualopt.app.cli", ["verify", "--help"], METHODS),
        (
            "dualopt.app.cli",
            ["run", "--data", "digits", "--clients", "3", "--rounds", "1", "--out", "OUT"],
            [*METHODS, "matplotlib"],  # which draws the run
        ),
        ("figures._program", ["--list"], ["numpy", "pydantic"]),
    ],
)
def test_a_program_loads_no_library_that_it_does_not_use(module: str, words: list[str], loaded: list[str]) -> None:
    """Importing these takes longer than help and lists, and longer than a run of digits."""
    code = PROGRAM.format(module=module, words=words)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == sorted(loaded)


def test_the_check_sees_hidden_imports() -> None:
    assert imported("def f():\n    import theory.attack\n") == {"theory"}
    assert imported("from figures.fig1 import draw") == {"figures"}


def test_no_module_is_hidden_by_something_of_its_own_name() -> None:
    """``import package.name as m`` gives the module: a function of that name in the package would be given instead."""
    hidden = []
    for package in pkgutil.walk_packages([str(ROOT / "dualopt")], "dualopt."):
        if package.name.startswith("dualopt.federation.flare.") and find_spec("nvflare") is None:
            continue  # what another program starts, and needs that program
        parent, _, name = package.name.rpartition(".")
        importlib.import_module(package.name)
        if not isinstance(getattr(importlib.import_module(parent), name), ModuleType):
            hidden.append(package.name)
    assert hidden == []


def test_every_folder_of_modules_is_a_package() -> None:
    for package in FORBIDDEN:
        modules = list((ROOT / package).rglob("*.py"))
        assert {path.parent for path in modules} == {path.parent for path in modules if path.name == "__init__.py"}


def requirements(extra: str) -> set[str]:
    """Return the packages that an extra names, and those of the extras that it names."""
    found: set[str] = set()
    for line in PYPROJECT["project"]["optional-dependencies"][extra]:
        name, of, *_ = re.match(r"([\w-]+)(?:\[([\w,]+)\])?", line).groups()  # pyright: ignore[reportOptionalMemberAccess]
        found |= {name} if of is None else set().union(*map(requirements, of.split(",")))
    return found


def test_every_package_that_a_sentence_names_is_in_its_extra() -> None:
    for package, extra in _extras.EXTRAS.values():
        assert package.lower() in requirements(extra), (package, extra)
    with pytest.raises(KeyError):
        requirements("theories")
