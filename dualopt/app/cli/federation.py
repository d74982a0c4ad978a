"""The commands of a federation: what its parties agree on, what a site sets up, and the run."""

from __future__ import annotations

import json
import logging
import shutil
import tempfile
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option, Typer

from dualopt.app.cli import output
from dualopt.app.cli.federation_options import ProjectOptions, RunOptions, ServerOptions, described_project
from dualopt.app.cli.models import save_model
from dualopt.app.cli.options import MethodOptions, option_groups
from dualopt.app.cli.progress import run_progress
from dualopt.app.cli.summary import show_summary
from dualopt.app.cli.usage import GroupedHelp, WidthOption
from dualopt.arrays._checks import require
from dualopt.arrays._files import write_atomically
from dualopt.federation import Project, SiteSettings
from dualopt.federation.job import write_job
from dualopt.federation.model import model_of
from dualopt.federation.preparing import Prepared, Preparing
from dualopt.federation.provision import provision_text, write_provision
from dualopt.federation.questions import QUESTIONS
from dualopt.federation.settings import prepared_objective, site_name, site_rows
from dualopt.federation.submission import PREPARED, SUMMARY, JobResult, Session, submit_until_whole
from dualopt.runs import plotting
from dualopt.runs.trace import Trace

__all__ = ["check", "commands", "new", "run", "site"]

SCRATCH = ".federation-"  # begins the name of a folder that is removed at the end
WORTH = "worth what the sites are: one that lies about its function without contradicting itself is not found out"
MISSING = 'package nvflare is missing: pip install "dualopt[federation]".'


def commands() -> Typer:
    """Return the commands, to be put below ``dualopt``."""
    found = Typer(no_args_is_help=True)
    found.callback()(federation)
    for command in (new, check, site, run):
        found.command(name=command.__name__, cls=GroupedHelp)(command)
    return found


def federation() -> None:
    """Run a real federation: sites keep their data, a server has the model."""


@option_groups
def new(
    *,
    folder: Annotated[Path, Argument(help="Folder for project.toml and provision.yml.")],
    problem: ProjectOptions,
    loop: RunOptions,
    method: MethodOptions,
    server: ServerOptions,
) -> None:
    """Write what all parties agree on, project.toml, and what certificates are made from, provision.yml."""
    require(problem.site, "site must be given: --site NAME, once for each site")
    project = described_project(folder, problem, loop, method)
    for name in ("project.toml", "provision.yml"):
        require(not (folder / name).exists(), f"folder {str(folder)!r} has a {name} already: its sites may rely on it")
    provision_text(project, server.host, server.port)  # refuses what is wrong before anything is written
    output.prepare_folder(folder)
    project.write(folder / "project.toml")
    write_provision(project, folder / "provision.yml", server.host, server.port)
    lines = {
        "sites": ", ".join(project.sites),
        "method": f"{project.algorithm}, at most {project.rounds} rounds",
        "problem": f"{project.loss}, mu = {project.mu:g}, {project.features} columns of features",
        "client weights": project.client_weights,
        "fingerprint": project.fingerprint[:12],
        "files": f"{folder}: project.toml (for every site), provision.yml (for the certificates)",
        "next": f"nvflare provision -p {folder / 'provision.yml'} -w {folder / 'kits'}",
    }
    output.show_pairs(output.make_console(), f"dualopt federation new: {project.name}", lines)


@option_groups
def check(
    *,
    project: Annotated[Path, Argument(help="The file project.toml.")],
    site: Annotated[str, Argument(help="Name of the site.")],
    data: Annotated[Path, Argument(help="Its data: LIBSVM, csv, tsv, parquet or npz.")],
    label: Annotated[str | None, Option(help="Column of the labels of a table.")] = None,
) -> None:
    """Compare the data of a site with what the sites agreed on; nothing is sent."""
    agreed = Project.read(project)
    lines = _described(agreed, site, data, label)
    output.show_pairs(output.make_console(), f"dualopt federation check: {site} of {agreed.name}", lines)


@option_groups
def site(
    *,
    kit: Annotated[Path, Argument(help="The folder of the site, made by nvflare provision.")],
    project: Annotated[Path, Option(help="The file project.toml.")],
    data: Annotated[Path, Option(help="The data of the site: LIBSVM, csv, tsv, parquet or npz.")],
    label: Annotated[str | None, Option(help="Column of the labels of a table.")] = None,
    state: Annotated[Path | None, Option(help="Folder for the state of the client; default: state in KIT.")] = None,
    questions: Annotated[
        int, Option(help="Models at most at which the server may ask the site in a round.")
    ] = QUESTIONS,
) -> None:
    """Set up a site: compare its data with the project, and write local/dualopt.toml into its folder."""
    agreed, name = Project.read(project), site_name(kit)
    lines = _described(agreed, name, data, label)
    where = kit / "state" if state is None else state
    settings = SiteSettings(
        project=str(project.resolve()),
        data=str(data.resolve()),
        state=str(where.resolve()),
        label=label,
        questions=questions,
    )
    file = settings.write(kit)
    lines |= {"settings": str(file), "next": f"{kit / 'startup' / 'start.sh'}"}
    output.show_pairs(output.make_console(), f"dualopt federation site: {name} of {agreed.name}", lines)


@option_groups
def run(
    *,
    project: Annotated[Path, Argument(help="The file project.toml.")],
    admin: Annotated[Path, Option(help="The folder of the administrator, made by nvflare provision.")],
    out: Annotated[Path, Option(help="Folder for the results.")] = Path("out"),
    patience: Annotated[float, Option(help="Seconds without the server, or without a first answer of a job.")] = 600.0,
    width: WidthOption = "page",
) -> None:
    """Run the method at the sites to its end, whatever falls; write what dualopt run writes, the model too."""
    agreed = Project.read(project)
    require((admin / "startup" / "fed_admin.json").is_file(), f"admin {str(admin)!r} is not an administrator's folder")
    connect = _connection(admin)
    output.prepare_folder(out)
    console = output.make_console()
    for left in out.glob(f"{SCRATCH}*"):  # of a program that was killed
        shutil.rmtree(left, ignore_errors=True)
    with (
        tempfile.TemporaryDirectory(prefix=SCRATCH, dir=out.resolve()) as scratch,
        run_progress(console, agreed.name, agreed.rounds, tol=agreed.tol) as progress,
    ):
        job = write_job(agreed, scratch)
        outcome = submit_until_whole(
            connect,
            job,
            Path(scratch, "results"),
            sites=agreed.sites,
            show=lambda row: progress.advance(None, row),
            say=progress.say,
            patience=patience,
        )
        trace = Trace.from_npz(outcome.folder / "trace.npz")
        file = outcome.folder / SUMMARY
        summary = file.read_text() if file.exists() else None
        prepared = _prepared(agreed, outcome.folder / PREPARED)
    trace.to_npz(out / "trace.npz")
    model, reason = save_model(out, "", lambda: model_of(agreed, trace, prepared))
    trace.to_csv(out / "trace.csv")
    output.write_json(out / "run.json", _record(agreed, outcome, trace))
    title = f"{plotting.proper_name(agreed.algorithm)} at {', '.join(agreed.sites)}"
    figure = plotting.single_run(trace, x="communications", title=output.shortened(title), width=width)
    pictures = plotting.save_for_print(figure, out / "convergence")
    lines = _results(agreed, outcome) | output.outcome(trace, None) | {"certificates": WORTH}
    files = [*pictures, "trace.csv", "trace.npz", "run.json", *model]
    if summary is not None:
        files.append(SUMMARY)
        write_atomically(out / SUMMARY, lambda file: file.write(summary))
    lines |= reason | {"files": f"{out}: {', '.join(files)}"}
    output.show_pairs(console, f"dualopt federation run: {agreed.name}", lines)
    if summary is not None:
        show_summary(console, summary)


def _described(project: Project, site: str, data: Path, label: str | None) -> dict[str, str]:
    """Load the site's data, build its cost where this needs no other site, and say what it is."""
    rows = site_rows(project, site, data, label=label)
    told = {"prepared": f"in the run, by numbers of all sites: {_preparation(project)}"}
    if not project.is_prepared:
        f = prepared_objective(project, site, rows)
        told = {"L of this site": f"{float(f.L[0]):.6g} (told to the server, with the number of rows)"}
    return {
        "data": f"{rows.size} rows, {project.features} columns of features, fit the project: {data}",
        "loss": f"{project.loss}, mu = {project.mu:g}, client weights = {project.client_weights}",
        **told,
        "fingerprint": f"{project.fingerprint[:12]} (the same at every site)",
    }


def _preparation(project: Project) -> str:
    """Say what is found in the rows of all sites."""
    rules = {"scale": project.scale, "missing": project.missing, "categories": project.categories}
    chosen = [f"{name} = {rule}" for name, rule in rules.items() if rule not in ("none", "refuse")]
    return ", ".join([*chosen, f"of at least {project.least_rows} rows of each"])


def _prepared(project: Project, file: Path) -> Prepared | None:
    """Return what was found in the rows of all sites."""
    return Preparing.from_text(project, file.read_text()).found if file.exists() else None


def _connection(admin: Path) -> Any:
    """Return what opens a session; refuse in one sentence where the package is missing."""
    try:
        from dualopt.federation.flare.session import FlareSession
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "nvflare":
            raise
        raise ValueError(MISSING) from None

    logging.getLogger().addHandler(logging.NullHandler())  # FLARE tells of lost connections, and so does the pursuit

    def connect() -> Session:
        return FlareSession(admin.resolve())

    return connect


def _results(project: Project, outcome: JobResult) -> dict[str, str]:
    said = outcome.said
    resubmitted = "" if outcome.jobs == 1 else f", submitted {outcome.jobs} times"
    return {
        "sites": f"{', '.join(project.sites)}{resubmitted}",
        "loss": f"{project.loss}, mu = {project.mu:g}, client weights = {project.client_weights}",
        **{name: str(said[name]) for name in ("method", "theory") if name in said},
        **({"standard errors": f"none: {said['no_summary']}"} if "no_summary" in said else {}),
        **({"bytes sent": f"{said['bytes_up']:,} up, {said['bytes_down']:,} down"} if "bytes_up" in said else {}),
    }


def _record(project: Project, outcome: JobResult, trace: Trace) -> dict[str, Any]:
    described = {f.name: getattr(project, f.name) for f in fields(project)}
    said = json.loads(json.dumps(dict(outcome.said)))
    return {
        "command": "federation run",
        "project": described | {"fingerprint": project.fingerprint},
        "jobs": outcome.jobs,
        "outcome": said,
        "parameters": dict(trace.parameters),
        "status": trace.status,
        "final": trace.last,
    }
