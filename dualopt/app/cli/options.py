"""The options that commands share, and how dataclasses become options."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from typer import Context, Exit, Option

from dualopt.app.cli.reporting import INTERRUPTED
from dualopt.app.cli.resume import repeated
from dualopt.app.cli.usage import HelpAll
from dualopt.methods.preparation import Preparation, SketchedMetric
from dualopt.spec import Spec, built, pairs

__all__ = ["LoopOptions", "MethodOptions", "PreparationOptions", "default_of", "option_groups"]


@dataclass(frozen=True, kw_only=True)
class LoopOptions:
    """How long to run, what to measure, and where to write it.

    Parameters
    ----------
    rounds : int
        Largest number of communication rounds.
    participation : str
        Who takes part: full, subset=10, importance=10 (drawn with the weights of the clients), bernoulli=0.3; or
        communicate=0.5, everybody half the time.
    scales : str
        One scale for each client: none, suggested (as suits the method), or numbers such as 1,5,2.
    compressor : str
        What uploads go through: identity, natural, rounding=8, rand-k=10 (see: dualopt list compressors).
    downlink : str
        What the messages of the server go through, where everybody takes part in every round: the same.
    tol : float
        Stop at this certified relative error; 0 runs all rounds.
    atol : float
        Stop at this certified E - E*, for E* = 0, where the relative error is undefined; 0: only tol counts.
    certify_every : int
        Certify every so many rounds (0: as tol and atol need).
    measure_every : int
        Measure energy, certificate, test accuracy every so many rounds: more than the method costs where few take part.
    threads : int, optional
        Threads of the linear algebra.
    check_assumptions : bool
        Refuse parameters that break an assumption of the method; the line "theory" tells which theorem covers a run.
    reference : bool
        Solve to high accuracy first; record true errors.
    test_accuracy : bool
        Measure the accuracy on the test part of the data in every round.
    out : Path
        Folder for the results.
    """

    rounds: int = 100
    participation: str = "full"
    scales: str = "none"
    compressor: str = "identity"
    downlink: str = "identity"
    tol: float = 1e-6
    atol: float = 0.0
    certify_every: int = 1
    measure_every: int = 1
    threads: int | None = None
    check_assumptions: bool = True
    reference: bool = False
    test_accuracy: bool = False
    out: Path = Path("out")

    @property
    def numbers(self) -> dict[str, Any]:
        """The numbers that :func:`dualopt.run` and its check take, by name."""
        names = ("rounds", "tol", "atol", "certify_every", "measure_every", "threads")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, kw_only=True)
class MethodOptions:
    """How clients solve their local problems.

    Parameters
    ----------
    solver : str, optional
        Local solver, such as lbfgs:history=20 (see: dualopt list solvers); default: the algorithm's.
    solver_param : list of str
        Parameter of the local solver, such as history=20; repeatable.
    stop : str, optional
        When a local solver stops, such as reduction=0.05 (see: dualopt list stopping).
    """

    solver: str | None = None
    solver_param: list[str] = field(default_factory=list)
    stop: str | None = None

    def given_to(self, spec: Spec) -> Spec:
        """Return the method with solver and stopping rule where it names none.

        Examples
        --------
        >>> options = MethodOptions(solver="lbfgs", solver_param=["history=3"], stop="steps=2")
        >>> print(options.given_to(Spec.parse("fedpd: eta=0.1")))
        fedpd: solver=(lbfgs: history=3), stop=(steps: 2), eta=0.1
        >>> print(options.given_to(Spec.parse("fedpd: solver=newton, stop=gradient=1e-8")))
        fedpd: solver=newton, stop=(gradient: 1e-8)
        """
        own = spec.arguments
        nested = own.get("solver")
        named = nested is not None and not (isinstance(nested, Spec) and not nested.name)
        found = Spec(spec.name)
        for name, text in (("solver", self.solver), ("stop", self.stop)):
            if text is not None and not (named if name == "solver" else name in own):
                found = found.given({name: text}, name)
        if not named:  # parameters of this solver would be wrong for another one
            inner = pairs(self.solver_param, "solver_param")
            found = found.given({f"solver.{name}": text for name, text in inner.items()}, "solver_param")
        if isinstance(nested, Spec) and not named:
            own = {k: x for k, x in own.items() if k != "solver"}
            own |= {f"solver.{name}": x for name, x in nested.arguments.items()}
        return found.given(own)


@dataclass(frozen=True, kw_only=True)
class PreparationOptions:
    """What happens before the first round.

    Parameters
    ----------
    start : str
        The first model: zero, one-shot (the mean of the clients' own minimisers) or jackknife (the same, corrected).
    coordinates : str
        plain, or of a metric from the features: sketch[=RANK], common and random, or own-sketches[=RANK] of clients.

    Examples
    --------
    >>> PreparationOptions(start="one-shot", coordinates="sketch=10").steps()  # doctest: +ELLIPSIS
    [SketchedMetric(rank=10, common=True, seed=0), OneShotAverage(jackknife=False, solver=None, ..., seed=0)]
    >>> PreparationOptions().steps()
    []
    """

    start: str = "zero"
    coordinates: str = "plain"

    def named(self) -> dict[str, str]:
        """Return the preparations as they were typed, by option, in their order.

        >>> PreparationOptions(start="jackknife").named()
        {'start': 'jackknife'}
        """
        options = (("coordinates", self.coordinates, "plain"), ("start", self.start, "zero"))
        return {option: text for option, text, nothing in options if text != nothing}

    def metric(self) -> SketchedMetric | None:
        """Return the change of coordinates, if there is one."""
        return next((step for step in self.steps() if isinstance(step, SketchedMetric)), None)

    def steps(self, seed: int = 0) -> list[Preparation]:
        """Return the preparations in their order, with the seed of everything random.

        Raises
        ------
        ValueError
            If a name is unknown, or a parameter is out of range.
        """
        found = []
        for option, text in self.named().items():
            try:
                found.append(built(text, "preparation"))
            except ValueError as error:
                raise ValueError(str(error).replace("preparation", option, 1)) from None
        return [replace(step, seed=seed) if getattr(step, "seed", None) == 0 else step for step in found]

    def changed(self, objective: Any, seed: int = 0) -> Any:
        """Return the objective in the coordinates in which methods will work: what their parameters are suggested for.

        Raises
        ------
        ValueError
            If the preparations do not fit the objective.
        """
        for step in self.steps(seed):
            step.check(objective)
            if isinstance(step, SketchedMetric):
                objective = step.prepare(objective, objective.zeros()).objective
        return objective


def option_groups(function: Callable[..., None]) -> Callable[..., None]:
    """Turn parameters annotated with a dataclass into one command line option per field.

    The help of an option is what the docstring of its class says of the field; `groups` says where it is shown. A flag
    that is off by default has no ``--no-`` form. Parameters of other types stay what they are, so that commands share
    options without repeating them. ``--help-all`` is added. Ctrl-C ends the command with exit code 130.
    """
    contexts: list[Context] = []  # of the call, if one of the options asks for it
    hints = get_type_hints(function, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if isinstance(hint, type) and is_dataclass(hint)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name in groups:
            parameters += _parameters(groups[name], contexts)
        else:
            parameters.append(parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY))
    parameters.append(inspect.Parameter("help_all", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=HelpAll))

    @wraps(function)
    def command(*, help_all: bool, **values: Any) -> None:  # it has been shown, if it was asked for
        if values.get("from_record") is not None:
            source = contexts[-1].get_parameter_source
            typed = [name for name in values if getattr(source(name), "name", None) == "COMMANDLINE"]
            values = repeated(function.__name__, values, typed)
        grouped = {name: group(**{f.name: values.pop(f.name) for f in fields(group)}) for name, group in groups.items()}
        try:
            function(**grouped, **values)
        except KeyboardInterrupt:  # older versions of Typer would end with exit code 1
            raise Exit(INTERRUPTED) from None

    command.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportAttributeAccessIssue]
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    return command


def default_of(field: Field) -> Any:
    """Return the default of a field of a dataclass."""
    return field.default if field.default_factory is MISSING else field.default_factory()


def _parameters(group: type, contexts: list[Any]) -> Iterable[inspect.Parameter]:
    """Return one parameter per field; a field whose metadata name an option appends the context to the list."""

    def remember(context: Context, value: Any) -> Any:
        contexts.append(context)
        return value

    hints, texts = get_type_hints(group), _documented(group)
    for f in fields(group):
        default = default_of(f)
        names = [f"--{f.name.replace('_', '-')}"] if default is False else []
        options: dict[str, Any] = {"help": texts.get(f.name)}
        if "option" in f.metadata:  # a name that is a word of Python's
            names, options = [f.metadata["option"]], options | {"callback": remember}
        option = Option(*names, **options)
        annotation = Annotated[hints[f.name], option]
        yield inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _documented(group: type) -> dict[str, str]:
    """Return what the docstring of a class says of every field."""
    text = inspect.getdoc(group) or ""
    entries = re.findall(r"^(\w+) : .*\n((?:    .*\n?)+)", text, flags=re.MULTILINE)
    return {name: " ".join(words.split()) for name, words in entries}
