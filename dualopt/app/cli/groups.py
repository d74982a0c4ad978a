"""The groups in which ``--help`` and ``--help-all`` show the options of the commands, and the pages that explain them.

An option is in one group, whatever command it belongs to, but where a group of that command alone has it.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["GROUPS", "OTHERS", "Group", "group_of"]


@dataclass(frozen=True)
class Group:
    """Options that belong together.

    Parameters
    ----------
    title : str
        What they are about.
    page : str
        Where they are explained.
    main : tuple of str
        The parameters that ``--help`` shows.
    more : tuple of str
        Those that ``--help-all`` shows behind them.
    commands : tuple of str
        The commands that it is for, such as ``prove``; all if empty.
    """

    title: str
    page: str
    main: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()


OTHERS = Group("Other options", "docs/command_line.md")

GROUPS = (
    Group(
        "Method",
        "docs/methods.md",
        main=("algorithm", "param", "grid"),
        more=(
            "solver",
            "solver_param",
            "stop",
            "scales",
            "compressor",
            "downlink",
            "start",
            "coordinates",
            "check_assumptions",
        ),
    ),
    Group(
        "Model and rows",
        "docs/use_the_model.md",
        main=("model", "data", "data_home", "loss", "out", "overwrite"),
        more=("network", "without_offset", "split", "data_param"),
        commands=("predict",),
    ),
    Group(
        "What is claimed",
        "docs/site/guide/rates.md",
        main=("rate", "claim", "participation", "rounds"),
        more=("instance", "attack", "seeds", "confidence", "reference"),
        commands=("verify",),
    ),
    Group(
        "What is proved",
        "docs/proofs.md",
        main=("kappa", "mu", "clients", "participation", "regulariser", "rounds", "exact", "check"),
        more=("inexact", "compressor", "dimension"),
        commands=("prove",),
    ),
    Group("Search", "docs/site/guide/tuning.md", main=("metric", "target", "jobs")),
    Group(
        "Data",
        "docs/your_data.md",
        main=("data", "data_home", "label", "client"),
        more=(
            "sample_weight",
            "offset",
            "exposure",
            "drop",
            "missing",
            "categories",
            "scale",
            "data_param",
            "split",
            "rows",
            "dtype",
            "precision",
            "storage",
            "device",
        ),
    ),
    Group(
        "Sites and server",
        "docs/federation.md",
        main=("site", "like", "features", "classes", "secure", "host", "port", "project", "admin"),
        more=("name", "least_rows", "secure_range", "inference", "deadline", "state", "questions", "patience"),
    ),
    Group(
        "Clients",
        "docs/site/guide/participation.md",
        main=("clients", "partition", "participation"),
        more=("alpha", "sigma", "brightness", "client_weights"),
    ),
    Group(
        "Loss and penalty",
        "docs/site/guide/problems.md",
        main=("loss", "mu", "regulariser", "intercept"),
        more=("loss_param", "class_weight", "penalty", "model"),
    ),
    Group(
        "Rounds and accuracy",
        "docs/site/guide/certificates.md",
        main=("rounds", "tol", "seed"),
        more=("atol", "certify_every", "measure_every", "reference", "test_accuracy"),
    ),
    Group("What to keep small", "docs/which_method.md", main=("minimise", "link")),
    Group(
        "Results",
        "docs/resuming.md",
        main=("out", "overwrite", "resume", "fresh", "plot", "summary"),
        more=("width", "checkpoint_every", "keep_stale", "from_record"),
    ),
    Group("Processes and threads", "docs/engines.md", more=("engine", "reduce", "threads")),
)


def group_of(name: str, command: str) -> Group:
    """Return the group of a parameter of a command; the last of all where none has it.

    Examples
    --------
    >>> group_of("mu", "run").title, group_of("mu", "prove").title, group_of("unheard_of", "run").title
    ('Loss and penalty', 'What is proved', 'Other options')
    """
    found = [group for group in GROUPS if name in (*group.main, *group.more)]
    own = [group for group in found if command in group.commands]
    return next(iter([*own, *(group for group in found if not group.commands)]), OTHERS)
