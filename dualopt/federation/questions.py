"""How many models a server may ask a site at in each round, whoever runs it and however often it begins anew.

Each answer tells a little more of the data: the gradients at many models of the server's choice can tell all of them. A
run that nothing disturbs needs three models in a round: one to start from, one that the round ended with, and one that
is certified. With a free intercept the certificate needs two models more, or one for each output (`dualopt.runs.cuts`),
which `of_intercept` counts three times, too. Asking once more at the same model tells nothing new and does not count,
so that a run that is begun again or goes on from a checkpoint asks nothing more, as long as the same sites take part.
Where others are absent the second time its models are others. Hessians may be asked for at one model of a run,
whatever the round.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from dualopt.arrays.tree import leaves
from dualopt.engine import RefusedError
from dualopt.engine import _protocol as protocol
from dualopt.engine.secure_sums import _messages as sums
from dualopt.federation.project import Project

__all__ = ["NEEDED", "QUESTIONS", "Questions", "of_intercept"]

NEEDED = 3  # models in a round, by a run that nothing disturbs
QUESTIONS = 3 * NEEDED  # of a run that was begun anew twice, each time with other sites absent
HESSIAN = "hessian"  # in place of the round, in the file


def of_intercept(project: Project) -> int:
    """Return how many models more the server may ask at in a round where the intercept is free."""
    outputs = project.loss_object.outputs
    return 3 * (outputs if outputs > 1 else 2) if project.intercept == "free" else 0


class Questions:
    """Counts the models that a site was asked at, by round; the counts are in a file.

    Parameters
    ----------
    file : Path
        A line for each model: the round, and a hash of the model.
    allowed : int
        Models in a round.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     asked = Questions(Path(folder, "asked"), 1)
    ...     asked.require_few([protocol.Value("run", 3, np.ones(2)), protocol.Value("run", 4, np.zeros(2))])
    ...     Questions(Path(folder, "asked"), 1).require_few([protocol.Value("run", 3, np.zeros(2))])
    Traceback (most recent call last):
    dualopt.engine._errors.RefusedError: it is asked at more than 1 models in round 3
    """

    def __init__(self, file: Path, allowed: int) -> None:
        self._file, self._allowed = file, allowed
        self._known: dict[int, set[str]] = {}
        self._of_hessians: set[str] = set()  # models at which they were asked for
        lines = file.read_text().splitlines() if file.exists() else []
        for n, _, model in (line.partition(" ") for line in lines):
            if n.isdecimal():  # not where the disk was full
                self._known.setdefault(int(n), set()).add(model)
            elif n == HESSIAN:
                self._of_hessians.add(model)

    def require_few(self, requests: Sequence[Any]) -> None:
        """Note the models of some requests; refuse these if there are too many in a round.

        Raises
        ------
        RefusedError
            If there are.
        OSError
            If the file cannot be written.
        """
        for request in requests:
            if (asked := _asked(request)) is None:
                continue
            n, model = asked
            if isinstance(request, protocol.Information):
                sentence = "it is asked for Hessians at more than one model"
                self._note(HESSIAN, model, self._of_hessians, 1, sentence)
            sentence = f"it is asked at more than {self._allowed} models in round {n}"
            self._note(str(n), model, self._known.setdefault(n, set()), self._allowed, sentence)

    def _note(self, key: str, model: str, known: set[str], allowed: int, sentence: str) -> None:
        """Note a model among those that are known, unless there are enough."""
        if model in known:
            return
        if len(known) >= allowed:
            raise RefusedError(sentence, code="questions")
        with self._file.open("a") as file:
            file.write(f"{key} {model}\n")
        known.add(model)


def _asked(request: Any) -> tuple[int, str] | None:
    """Return the round of a request and a hash of the model that comes with it, if one does."""
    if isinstance(request, sums.Add):
        return _asked(request.request)
    if isinstance(request, protocol.Value | protocol.Evaluate | protocol.Information):
        n, tree = request.n, request.theta
    elif isinstance(request, protocol.Start):
        n, tree = 0, request.theta0
    elif isinstance(request, protocol.Propose | protocol.Commit):
        n, tree = request.n, request.message
    else:
        return None
    if tree is None:
        return None
    model = sha256()
    for x in leaves(tree):
        array = np.ascontiguousarray(x)
        model.update(f"{array.dtype} {array.shape} ".encode() + array.tobytes())
    return n, model.hexdigest()
