"""A few mutants that every run of the tests judges, each by the tests that are meant to notice it.

They are lopsided changes, of the kinds that were once not noticed: the greatest constant for the least or the mean, all
clients for the active ones, the state of before for that of after, a sign, a factor, a round.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.mutate.mapping import ROOT, Judges, Selected

__all__ = ["FIXED", "Fixed"]

UNEQUAL = "tests/test_unequal_clients.py"
BOXES = "tests/methods/test_identities.py"
GUARANTEES = "tests/methods/test_guarantees.py"
PRINTED = "tests/methods/test_dualfl.py"


class Fixed(NamedTuple):
    """A change of a file, and what must notice it."""

    name: str
    file: str
    old: str  # occurs once
    new: str
    judges: Judges

    def source(self) -> str:
        """Return the changed source.

        Raises
        ------
        ValueError
            If the text to be changed does not occur exactly once.
        """
        source = (ROOT / self.file).read_text()
        places = source.count(self.old)
        if places != 1:
            raise ValueError(f"{self.name!r} of tests/mutate/fixed.py must fit once in {self.file}, not {places}x.")
        return source.replace(self.old, self.new)


def _fixed(name: str, file: str, old: str, new: str, path: str, pattern: str) -> Fixed:
    return Fixed(name, f"dualopt/{file}", old, new, Judges((Selected(path, pattern),)))


FIXED = [
    _fixed(
        "certificates with the greatest mu_j for the mean",
        "objectives/objective.py",
        "return float(self.mean(mu)) - room",
        "return float(array_namespace(mu).max(mu)) - room",
        UNEQUAL,
        "gradient_form_is_sharp",
    ),
    _fixed(
        "conjugates with the greatest mu_j",
        "runs/certificates.py",
        "mu = xp.where(known, proven,",
        "mu = xp.where(known, proven * 0 + xp.max(proven),",
        UNEQUAL,
        "each_clients_own_mu",
    ),
    _fixed(
        "smallest returns the largest",
        "methods/_parameters.py",
        "array_namespace(numbers).min(numbers)",
        "array_namespace(numbers).max(numbers)",
        GUARANTEES,
        r"suggestions.*\[dualfl",
    ),
    _fixed(
        "DualFL with nu = max mu_j",
        "methods/_dual_parameters.py",
        "nu = smallest(objective.mu) if",
        "nu = largest(objective.mu) if",
        GUARANTEES,
        r"suggestions.*\[dualfl",
    ),
    _fixed(
        "DualFL with rho = nu/min L_j",
        "methods/_dual_theorems.py",
        'RHO = at_most("rho", "nu/L", lambda m, k: m.nu / k.L)',
        'RHO = at_most("rho", "nu/L", lambda m, k: m.nu / float(k.objective.L.min()))',
        GUARANTEES,
        r"guarantees_change.*\[dualfl",
    ),
    _fixed(
        "FedPD with the old dual in skipped rounds",
        "methods/fedpd.py",
        "(c.dual if self.old_dual else dual)",
        "(c.dual if self.old_dual or not round.communicate else dual)",
        BOXES,
        r"boxes\[FedPD",
    ),
    _fixed(
        "DualFL with a sign of (3.3)",
        "methods/dualfl.py",
        "v += message.theta",
        "v -= message.theta",
        PRINTED,
        "printed_box",
    ),
    _fixed(
        "DualFL extrapolates from the first bracket for ever",
        "methods/dualfl.py",
        "c._replace(zeta=zeta, v=v, averages=averages)",
        "c._replace(zeta=zeta, averages=averages)",
        PRINTED,
        "printed_box",
    ),
    _fixed(
        "FedDyn with the sum over the active clients for 1/N of it",
        "methods/feddyn.py",
        "self._memory(x, round) * round.fraction * moved",
        "self._memory(x, round) * moved",
        BOXES,
        r"boxes\[FedDyn",
    ),
    _fixed(
        "A-FedPD with the mean dual of before the round",
        "methods/a_fedpd.py",
        "theta = mean + dual / self.rho",
        "theta = mean + server.dual / self.rho",
        BOXES,
        r"boxes\[A-FedPD",
    ),
    _fixed(
        "FedADMM keeps its duals",
        "methods/fedadmm.py",
        "return Client(theta, dual),",
        "return Client(theta, c.dual),",
        BOXES,
        r"boxes\[FedADMM\]",
    ),
    _fixed(
        "FedDR with half of the relaxation",
        "methods/feddr.py",
        "c.y + self.relaxation *",
        "c.y + 0.5 * self.relaxation *",
        BOXES,
        r"boxes\[FedDR\]",
    ),
    _fixed(
        "5GCS with all clients for the active ones",
        "methods/fivegcs.py",
        "server.dual + round.n_clients * round.fraction * mean",
        "server.dual + round.n_clients * mean",
        "tests/methods/test_contract.py",
        r"partial_participation_reaches.*\[fivegcs",
    ),
    _fixed(
        "SCAFFOLD forgets that only a fraction took part",
        "methods/scaffold.py",
        "server.control + round.fraction * mean.control",
        "server.control + mean.control",
        "tests/methods/test_scaffold.py",
        "box",
    ),
    _fixed(
        "SGD with the step of the next round",
        "solvers/sgd.py",
        "length = self.step * self.decay**round.n",
        "length = self.step * self.decay ** (round.n + 1)",
        "tests/solvers/test_sgd.py",
        "",
    ),
    _fixed(
        "squared loss with half of its gradient",
        "losses/squared.py",
        "        return z - y\n",
        "        return 0.5 * (z - y)\n",
        "tests/test_losses.py",
        "squared|Squared",
    ),
]
