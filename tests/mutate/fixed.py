"""A few mutants that every run of the tests judges, each by the tests that are meant to notice it.

They are of the kinds that were once not noticed: lopsided changes, such as the greatest constant for the least or the
mean, all clients for the active ones, the state of before for that of after, a sign, a factor, a round; and smaller
allowances for rounding, guards and ties, which show only where something is made for them.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.mutate.mapping import ROOT, Judges, Selected

__all__ = ["FIXED", "Fixed"]

UNEQUAL = "tests/methods/test_unequal_clients.py"
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
        "mu = smallest(objective.mu)",
        "mu = largest(objective.mu)",
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
        "x0 = theta + self.eta * dual",
        "x0 = theta + self.eta * (dual if round.communicate else c.dual)",
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
        "c._replace(zeta=zeta, v=v)",
        "c._replace(zeta=zeta, v=c.v)",
        PRINTED,
        "printed_box",
    ),
    _fixed(
        "FedDyn with the sum over the active clients for 1/N of it",
        "methods/feddyn.py",
        "self._memory(round) * round.fraction * moved",
        "self._memory(round) * moved",
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
        "a certified distance of sqrt(gap/mu)",
        "app/estimators/_base.py",
        "math.sqrt(2.0 * self.certified_gap_",
        "math.sqrt(self.certified_gap_",
        "tests/app/estimators/test_same_solutions.py",
        "certified_distance",
    ),
    _fixed(
        "samples with the first row of the next client",
        "objectives/rows.py",
        "together.max() < smallest",
        "together.max() <= smallest",
        "tests/objectives/test_sampling.py",
        "bad_samples",
    ),
    _fixed(
        "L-BFGS with pairs whose product is rounding",
        "methods/distributed_lbfgs.py",
        "product > 1e-14 * xp.sqrt",
        "product > 0.0 * xp.sqrt",
        "tests/methods/test_distributed.py",
        "rounding_are_left_out",
    ),
    _fixed(
        "a line search without the approximate Wolfe condition",
        "solvers/_line_search.py",
        "            decreased = decreased | (level & (new_slope <=",
        "            decreased = decreased | (level & ~waiting & (new_slope <=",
        "tests/solvers/test_line_search.py",
        "what_is_accepted",
    ),
    _fixed(
        "GIANT shortens steps beyond the whole one",
        "methods/giant.py",
        "max(0.0, 1.0 - t)",
        "abs(1.0 - t)",
        "tests/methods/test_giant.py",
        "with_its_matrices",
    ),
    _fixed(
        "top-k without an order of equal values",
        "methods/compressors/top_k.py",
        "axis=-1, stable=True)",
        "axis=-1, stable=False)",
        "tests/methods/compressors/test_compressors.py",
        "largest_coordinates",
    ),
    _fixed(
        "quantisation with d/(4s) for d/(4s^2)",
        "methods/compressors/quantisation.py",
        "d / (4.0 * s * s)",
        "d / (4.0 * s)",
        "tests/methods/compressors/test_compressors.py",
        "variance_of_quantisation",
    ),
    _fixed(
        "AndersonDANE judges by the newest value",
        "methods/anderson_dane.py",
        "below(max(server.values), slope",
        "below(server.values[-1], slope",
        "tests/methods/test_anderson_dane.py",
        "last_five_values",
    ),
    _fixed(
        "AndersonDANE halves eta after a mixed point",
        "methods/anderson_dane.py",
        "last.age == 0 and",
        "last.age <= 1 and",
        "tests/methods/test_anderson_dane.py",
        "eta_is_halved",
    ),
    _fixed(
        "AndersonDANE mixes residuals that are rounding",
        "methods/_anderson.py",
        "if refused or size <= 0 else known",
        "if refused else known",
        "tests/methods/test_anderson_dane.py",
        "rounding_are_forgotten",
    ),
    _fixed(
        "a residual of AndersonDANE before the first solution",
        "methods/_gradient_theorems.py",
        "if points < 2 or (points == 2 and server.solving):",
        "if not server.started or n < 3:",
        "tests/methods/test_fuzz_guarantees.py",
        "point_that_is_refused",
    ),
    _fixed(
        "values without the curvature of their losses",
        "objectives/linear.py",
        "values = values + 0.5 * loss.curvature * shift * shift",
        "values = values + 0.0 * loss.curvature * shift * shift",
        "tests/objectives/test_rounding.py",
        "predictor_loses",
    ),
    _fixed(
        "predictors of two terms",
        "objectives/linear.py",
        "shift = gamma(p + 2, value)",
        "shift = gamma(2, value)",
        "tests/objectives/test_rounding.py",
        "predictor_loses",
    ),
    _fixed(
        "sums of one row",
        "objectives/linear.py",
        "gamma(m + k + 40, value)",
        "gamma(k + 40, value)",
        "tests/objectives/test_rounding.py",
        "sum_loses",
    ),
    _fixed(
        "mu with eigenvectors that are taken for orthogonal",
        "objectives/quadratic.py",
        "xp.abs(least) * shear",
        "0.0 * shear",
        "tests/objectives/test_quadratic.py",
        "mu_is_proved",
    ),
    _fixed(
        "storage by the entries of one process",
        "objectives/_sparse.py",
        "peers.total(X.data.shape[0])",
        "X.data.shape[0]",
        "tests/engine/test_blocks.py",
        "storage_is_that",
    ),
    _fixed(
        "storage by the rows of one process",
        "objectives/_sparse.py",
        "peers.total(X.shape[0])",
        "X.shape[0]",
        "tests/engine/test_blocks.py",
        "storage_is_that",
    ),
    _fixed(
        "Lanczos' method without its residual",
        "objectives/_sparse.py",
        "return values[-1] + residual",
        "return values[-1]",
        "tests/objectives/test_sparse.py",
        "ends_above",
    ),
    _fixed(
        "Lanczos' method with one orthogonalisation",
        "objectives/_sparse.py",
        "for _ in range(2):",
        "for _ in range(1):",
        "tests/objectives/test_sparse.py",
        "almost_equal",
    ),
    _fixed(
        "judgements with the size of one of their numbers",
        "methods/adaptive_acc_s_dane.py",
        "xp.abs(value) + xp.abs(own.value) + xp.abs(rise)",
        "xp.abs(value)",
        "tests/methods/test_acc_s_dane.py",
        "rounding_of_a_judgement",
    ),
    _fixed(
        "weights that rounding refuses",
        "methods/adaptive_acc_s_dane.py",
        "step.accepted is not False",
        "step.accepted is True",
        "tests/methods/test_acc_s_dane.py",
        "falls_to_a_tenth",
    ),
    Fixed(
        "Theorem F for any fraction of active clients",
        "theory/frontier/sampled_dualfl.py",
        "told = [] if abs(method.least - case.fraction) <= ROUNDING else",
        "told = [] if True else",
        Judges((Selected("tests/theory/test_frontier.py", "fraction_that_is_active"),)),
    ),
    Fixed(
        "Theorem F with the whole of Delta",
        "theory/frontier/sampled_dualfl.py",
        "return (1.0 - p) * delta",
        "return delta",
        Judges((Selected("tests/theory/test_frontier.py", "first_bound_of_theorem_f"),)),
    ),
    _fixed(
        "a server's line search without the approximate Wolfe condition",
        "methods/_line_search.py",
        "| proved | level)",
        "| proved)",
        "tests/methods/test_distributed.py",
        "what_the_server_accepts",
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
        "tests/losses/test_losses.py",
        "squared|Squared",
    ),
    _fixed(
        "masks that are numbers of rows",
        "problem/inputs/_clients.py",
        "if truths or values.dtype == bool:",
        "if False:",
        "tests/problem/inputs/test_good_inputs.py",
        "masks",
    ),
    _fixed(
        "rows of a file that may be written are shared",
        "arrays/xp.py",
        "if not isinstance(x, np.ndarray) or x.flags.writeable:",
        "if not isinstance(x, np.ndarray):",
        "tests/problem/inputs/test_memory.py",
        "copied_once",
    ),
    _fixed(
        "a rise at first contradicts a rate",
        "lab/verification/verdict.py",
        "return largest if end // 10 < largest < end // 2 else None",
        "return None",
        "tests/lab/verification/test_verdict.py",
        "what_is_found",
    ),
    _fixed(
        "evaluations compared in one direction",
        "engine/_contradictions.py",
        "self._above(old, new) | self._above(new, old)",
        "self._above(new, old)",
        "tests/engine/test_contradictions.py",
        "small_lies",
    ),
    _fixed(
        "errors of gradients that are stated and not granted",
        "engine/_contradictions.py",
        "+ 0.5 * L * b * b + error * b\n",
        "+ 0.5 * L * b * b\n",
        "tests/engine/test_contradictions.py",
        "stated_are_granted",
    ),
    _fixed(
        "one model more than a site allows",
        "federation/questions.py",
        "len(known) >= allowed",
        "len(known) > allowed",
        "tests/federation/test_agreed.py",
        "refused_for_good",
    ),
]
