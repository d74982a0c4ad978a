"""What besides its own statement speaks for a constant: the witnesses of claims with explicit constants.

The table of worst ratios says where a bound is attained, and which inequalities a claim has. It also notices every edit
of a bound, which is no evidence. ``loose.toml`` says for every bound that could be halved unnoticed why nothing nearer
exists.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from dualopt.app.markdown import table_lines
from dualopt.lab.claims import Verdict
from theory._claims import Chapter

__all__ = [
    "ATTACKED",
    "ATTAINED",
    "DERIVED",
    "HALVED",
    "TABLE",
    "UNWITNESSED",
    "WITNESSES",
    "Kind",
    "Rows",
    "Table",
    "Witnesses",
    "kind_of",
    "load",
    "loose",
    "nearest",
    "section",
    "untested",
    "witnesses",
]

TABLE = Path(__file__).with_name("worst_ratios.toml")

Kind = Literal["ratio", "bound"]


class Rows(NamedTuple):
    """The rows of one kind of inequality."""

    kind: Kind
    numbers: Mapping[str, Sequence[float]]  # by cases: the largest and the median ratio, or the largest bound


Table = Mapping[str, Mapping[str, Rows]]  # by claims and kinds of inequalities


def load(file: Path = TABLE) -> Table:
    """Read the table of worst ratios."""
    read: dict[str, dict[str, dict[Kind, dict[str, list[float]]]]] = tomllib.loads(file.read_text(encoding="utf-8"))
    return {
        name: {what: Rows(kind, numbers) for what, rows in kinds.items() for kind, numbers in rows.items()}
        for name, kinds in read.items()
    }


@cache
def kind_of(what: str) -> str:
    """Return the kind of an inequality: its label without numbers that a run may change.

    Examples
    --------
    >>> kind_of("distance from 0.5 of the interval around 0.501"), kind_of("squared steps of client 2")
    ('distance from # of the interval around #', 'squared steps of client #')
    """
    return re.sub(r"\d+\.\d+|(?<= )\d+$", "#", what)


def untested(name: str, verdicts: Iterable[Verdict], table: Table) -> list[str]:
    """Return the kinds of inequalities of a claim of which no case compared more than rounding.

    They are those of the table and those that the verdicts name: a kind whose cases were all removed is missed too.

    Examples
    --------
    >>> untested("theorem_3_2", [], load())[:2]
    ['N nu/2 |theta - theta*|^2', 'distance after one round']
    """
    known, seen = set(table.get(name, {})), set()
    for verdict in verdicts:
        known |= set(map(kind_of, verdict.untested))
        seen |= set(map(kind_of, verdict.tested))
    return sorted(known - seen)


ATTAINED = 0.9  # a bound that is halved, or loses a fifth, is violated there
HALVED = 0.5  # a bound whose ratios are all below could be halved, and the claim would hold
_LOOSE = Path(__file__).with_name("loose.toml")


@cache
def loose() -> Mapping[str, Mapping[str, str]]:
    """Return, by claims and kinds of inequalities whose ratios are below :data:`HALVED`, why nothing nearer exists."""
    return tomllib.loads(_LOOSE.read_text(encoding="utf-8"))


def nearest(rows: Rows) -> tuple[str, float]:
    """Return the case that comes nearest to its bound, and its ratio, where the statement is meant and holds.

    Examples
    --------
    >>> nearest(Rows("ratio", {"a": [0.5, 0.4], "b": [0.7, 0.1], "as printed: a": [3.0, 3.0]}))
    ('b', 0.7)
    """
    meant = {
        case: max(of) for case, of in rows.numbers.items() if not case.startswith("as printed") and max(of) < 1.001
    }
    case = max(meant, key=meant.__getitem__, default="")
    return case, meant.get(case, 0.0)


# Claims whose bounds a search attains and breaks as soon as they are a thousandth smaller.
ATTACKED = {
    name: "tests/theory/test_attack.py::test_the_best_constants_cannot_be_made_smaller"
    for name in ("fedsplit_contraction", "scaffnew_one_step", "fivegcs_one_step")
}

# Claims whose constants SymPy derives again from the inequalities of their proofs, by the tests that do.
_DERIVATIONS: Mapping[str, Sequence[str]] = {
    "dualfl.py::test_momentum_follows_from_the_potential": ["momentum_3_4"],
    "dualfl.py::test_rates": ["momentum_3_4"],
    "dualfl.py::test_envelope": [
        "proposition_6_2",
        "proposition_6_3",
        "theorem_3_2_inexact",
        "theorem_3_3_inexact",
        "theorem_4_1_inexact",
        "theorem_4_2_inexact",
    ],
    "dualfl.py::test_theorem_3_2": ["theorem_3_2"],
    "dualfl.py::test_theorem_3_3": ["theorem_3_3", "d3_range_of_rho"],
    "dualfl.py::test_gap_3_6": ["gap_3_6"],
    "dualfl.py::test_bound_of_theorem_3_4": ["theorem_3_4"],
    "dualfl.py::test_bound_of_theorem_3_5": ["theorem_3_5"],
    "dualfl.py::test_theorem_4_1": ["theorem_4_1"],
    "dualfl.py::test_theorem_4_2": ["theorem_4_2"],
    "dualfl.py::test_rounds_of_theorem_4_2": ["theorem_4_2_rounds"],
    "dualfl.py::test_size_of_theorem_3_5": ["theorem_3_5_target"],
    "dualfl.py::test_bound_of_theorem_3_5_target": ["theorem_3_5_target"],
    "fedpd.py::test_lemma_1": ["fedpd_lemma_1"],
    "fedpd.py::test_pairs": ["fedpd_lemma_3"],
    "fedpd.py::test_lemma_4": ["fedpd_lemma_4", "p3_factor_of_lemma_4"],
    "fedpd.py::test_relations_of_35": ["p3_factor_of_lemma_4"],
    "fedpd.py::test_constants_of_theorem_1": ["fedpd_theorem_1", "p8_initial_duals"],
    "fedpd.py::test_matrix_of_lemma_2": ["fedpd_lemma_2", "p2_matrix_of_lemma_2"],
    "fedpd.py::test_lemma_2_is_put_together": ["fedpd_lemma_2"],
    "fedpd.py::test_theorem_3_is_put_together": ["fedpd_theorem_3"],
    "fedpd.py::test_moments_of_theorem_3": ["fedpd_theorem_3", "p5_expectations_in_theorem_3"],
    "fedpd.py::test_lemma_5_and_claim_d_1": ["fedpd_lemma_5", "fedpd_claim_d_1"],
    "fedpd.py::test_lemma_7": ["fedpd_lemma_7"],
    "fedpd.py::test_p12": ["p12_errors_of_samples"],
    "fedpd.py::test_lemma_9": ["fedpd_lemma_9"],
    "fedpd.py::test_drift_of_means": ["fedpd_first_version_theorem_1"],
    "fedpd.py::test_first_version_theorem_1_is_put_together": ["fedpd_first_version_theorem_1"],
    "fedpd.py::test_equation_8": ["fedpd_equation_8"],
    "fedpd.py::test_vanishing_steps_of_p13": ["p13_constant_steps"],
    "fedpd.py::test_remark_3": ["fedpd_remark_3"],
    "feddyn.py::test_lemmas_4_and_11": ["feddyn_lemma_4", "feddyn_lemma_11"],
    "feddyn.py::test_lemma_5": ["feddyn_lemma_5"],
    "feddyn.py::test_lemma_12": ["feddyn_lemma_12"],
    "feddyn.py::test_lyapunov_functions": ["feddyn_lemma_1", "feddyn_lemma_8", "feddyn_lemma_10"],
    "feddyn.py::test_the_sign_of_y2_is_the_corrected_one": ["y2_gain_of_lemma_10"],
    "feddyn.py::test_theorems_are_the_lemmas_summed": ["feddyn_theorem_2", "feddyn_theorem_3", "feddyn_theorem_4"],
    "feddyn.py::test_theorem_1": ["feddyn_theorem_1"],
    "afedpd.py::test_lemma_2": ["afedpd_lemma_2", "a2_gradient_in_lemma_2", "a8_idle_clients"],
    "afedpd.py::test_lemma_3": ["afedpd_lemma_3"],
    "afedpd.py::test_descent_and_gradient": ["afedpd_descent"],
    "afedpd.py::test_theorem_1_is_put_together": [
        "afedpd_theorem_1",
        "a1_range_of_rho",
        "a3_one_active_client",
        "a4_constant_of_theorem_1",
    ],
    "afedpd.py::test_descent_with_errors": ["afedpd_descent_inexact"],
    "afedpd.py::test_theorem_1_with_errors": ["afedpd_theorem_1_inexact", "a9_error_term"],
    "afedpd.py::test_remark_1_1": ["afedpd_remark_1_1"],
    "afedpd.py::test_steps_of_remark_1_2": ["afedpd_remark_1_2"],
    "afedpd.py::test_remark_1_2": ["afedpd_remark_1_2"],
    "afedpd.py::test_remark_2_1": ["afedpd_remark_2_1"],
    "afedpd.py::test_chance_of_a_meeting": ["a5_draws_of_a_round"],
    "afedpd.py::test_local_updates": ["afedpd_lemma_5", "afedpd_lemma_6"],
    "afedpd.py::test_larger_root": ["a6_larger_root", "a7_constant_of_the_recursion"],
    "afedpd.py::test_bound_of_the_larger_root": ["a6_larger_root"],
    "afedpd.py::test_recursion": ["afedpd_recursion"],
    "afedpd.py::test_theorem_2": ["afedpd_theorem_2"],
    "optimized_dualfl.py::test_theorem": ["optimized_theorem"],
    "frontier.py::test_one_solution_of_acc_s_dane": ["acc_s_dane"],
    "frontier.py::test_one_iteration_of_acc_s_dane": ["acc_s_dane"],
    "frontier.py::test_shares_of_adaptive_acc_s_dane": ["acc_s_dane_adaptive"],
    "frontier.py::test_constants_of_dual_ascent": ["dual_ascent_linear", "dual_ascent_any_loss"],
    "frontier.py::test_constants_of_the_dual_lbfgs": ["dual_lbfgs_descent"],
    "frontier.py::test_constants_of_giant": ["giant_descent", "giant_quadratics"],
    "frontier.py::test_constants_of_theorem_a": ["sampled_feddyn"],
    "frontier.py::test_constants_of_theorem_b": ["sampled_fedsplit"],
    "frontier.py::test_constants_of_theorem_c": ["growing_feddyn"],
    "frontier.py::test_theorem_g": ["sampled_fivegcs"],
    "frontier.py::test_theorem_h": ["full_fivegcs"],
    "frontier.py::test_theorem_i": ["cohorts_of_fivegcs"],
    "frontier.py::test_one_round_of_theorem_f": ["sampled_dualfl_potential", "sampled_dualfl"],
    "frontier.py::test_steps_of_theorem_f": ["sampled_dualfl_step", "sampled_dualfl"],
    "frontier.py::test_bounds_with_one_parameter_for_each_client": ["scaled_dualfl"],
    "frontier.py::test_distances_of_theorem_f": ["sampled_dualfl_potential", "sampled_dualfl"],
    "frontier.py::test_distances_of_theorem_f_with_scales": ["weighted_dualfl"],
    "restarts.py::test_the_gap_of_an_epoch": ["restart_gap"],
    "restarts.py::test_epochs": ["restart_epochs"],
    "restarts.py::test_energy_whatever_the_restarts": ["restart_energy"],
    "restarts.py::test_one_round_of_held_momentum": ["adaptive_gap"],
    "restarts.py::test_rounds_of_the_momentum_that_adapts": ["adaptive_rounds"],
}
DERIVED = {
    claim: [f"tests/theory/test_symbolic_{test}" for test, claims in _DERIVATIONS.items() if claim in claims]
    for claim in dict.fromkeys(claim for claims in _DERIVATIONS.values() for claim in claims)
}

# What has no second witness, by claim and kind of inequality, and why.
_PRINTED = "the paper's round numbers, larger than what its proof gives by a factor of its own"
_MARGIN = "a margin of the check, how far the run is followed; the statement's own number is the factor"
_ONE = "no constant: below one is all that is claimed"
_SLOWEST = "the factor of the slowest direction, which the start shares with others"
_COUNTS = "a range that measured numbers of rounds lie in"
UNWITNESSED: Mapping[tuple[str, str], str] = {
    ("feddyn_theorem_2", "printed"): _PRINTED,
    ("feddyn_theorem_3", "printed"): _PRINTED,
    ("feddyn_theorem_4", "printed"): _PRINTED,
    (
        "p1_scale_of_constants",
        "mean of |grad E|^2",
    ): "the paper's appendix, whose proof has gaps",
    ("fedavg_bias", "distance from the limit"): _SLOWEST,
    ("fedprox_bias", "distance from the limit"): _SLOWEST,
    ("fedavg_biased_point", "factor of a round"): _ONE,
    ("fedprox_biased_point", "factor of a round"): _ONE,
    **{
        (claim, what): _MARGIN
        for claim, ends in {
            "fedavg_constant_step": 2,
            "fedavg_biased_point": 1,
            "fedprox_biased_point": 1,
            "dualfl_large_nu": 2,
            "dualfl_large_rho": 1,
            "dualfl_corrected_start": 2,
            "fedpd_large_eta": 2,
            "afedpd_small_rho": 2,
            "fedadmm_two_clients": 2,
            "scaffnew_long_step": 2,
        }.items()
        for what in ("error in the end", "error in the end, at least 100 times the first")[:ends]
    },
    ("gradient_descent_with_memory", "error of a longer step"): _MARGIN,
    ("identity_virtual_updates", "floats sent"): "no constant: fewer than another method sends",
    ("convex_nonsmooth_order", "squared distance from below"): _COUNTS,
    ("convex_nonsmooth_order", "squared distance"): _COUNTS,
    ("convex_nonsmooth_order", "n^2 times the squared distance"): _COUNTS,
    ("convex_strong_rounds", "rounds of the method from below"): _COUNTS,
    ("convex_strong_rounds", "rounds of the method"): _COUNTS,
    ("convex_strong_rounds", "rounds of the theorem"): _COUNTS,
    ("convex_smooth_rounds", "rounds of the method from below"): _COUNTS,
    ("convex_smooth_rounds", "rounds of the method"): _COUNTS,
    ("convex_smooth_rounds", "rounds of the method and ten times the least"): _COUNTS,
    ("convex_nonsmooth_rounds", "rounds of the method from below"): _COUNTS,
    ("convex_nonsmooth_rounds", "rounds of the method"): _COUNTS,
    ("weighted_feddyn_weights", "gamma m of the slowest client"): "no constant: it follows from the ratio of weights,"
    " whose bound 1 is attained",
    ("relations_6_13_and_6_14", "distance"): "no constant but that of a square, whose strong convexity it is",
    ("best_scales", "condition numbers"): "random scales; the suggested ones attain the bound",
    ("uniform_cohorts", "factor with equal weights"): "the factor of Theorem A, which is attained by other clients",
    ("uniform_sampled_dualfl", "factor with equal weights"): _ONE,
    ("anderson_safeguard", "distance of the model"): "a chain of inequalities, none of which is attained with the next:"
    " of what it is made, the fall of the residual after a plain step is attained.",
}

WITNESSES = ("attained", "attack", "derived again", "identity", "table only")


class Witnesses(NamedTuple):
    """What speaks for the constants of one claim."""

    attained: Mapping[str, tuple[str, float]]  # by kinds of inequalities: the case, and its ratio
    attack: str  # the test, or nothing
    derived: Sequence[str]  # tests
    identities: Sequence[str]  # kinds that have a tolerance for rounding in place of a bound
    table_only: Mapping[str, str]  # kinds that have no witness, and why

    @property
    def names(self) -> list[str]:
        """Those of :data:`WITNESSES` that there are."""
        given = (self.attained, self.attack, self.derived, self.identities, self.table_only)
        return [name for name, found in zip(WITNESSES, given, strict=True) if found]


def witnesses(name: str, table: Table) -> Witnesses:
    """Return the witnesses of a claim, from the table and the lists of this module.

    A bound counts as attained by a case on which it holds and is stated as meant: what an erratum prints does not.

    Examples
    --------
    >>> witnesses("convex_span", load()).names, witnesses("feddyn_theorem_2", load()).names
    (['attained'], ['derived again', 'table only'])
    """
    attained: dict[str, tuple[str, float]] = {}
    for what, rows in table.get(name, {}).items():
        case, ratio = nearest(rows)
        if rows.kind == "ratio" and ratio >= ATTAINED:
            attained[what] = (case, ratio)
    identities = [what for what, rows in table.get(name, {}).items() if rows.kind == "bound"]
    given = {what: why for (claim, what), why in UNWITNESSED.items() if claim == name}
    return Witnesses(attained, ATTACKED.get(name, ""), DERIVED.get(name, ()), identities, given)


def section(chapters: Iterable[Chapter]) -> str:
    """Return a section of the report, which second witness the constants of every claim have; empty without claims."""
    table = load()
    found = {c.claim.name: witnesses(c.claim.name, table) for c in chapters if c.claim.constant == "explicit"}
    found = {name: w for name, w in found.items() if w.names}
    if not found:
        return ""
    counts = ", ".join(f"{sum(kind in w.names for w in found.values())} {kind}" for kind in WITNESSES)
    lines = [
        "## Witnesses of the constants\n",
        "What speaks for a constant besides the claim itself, for claims with explicit constants, on the quick cases:",
        f"it is *attained* (ratio {ATTAINED} or more), an *attack* attains it, its bound is *derived again* by SymPy"
        " from the inequalities of its proof, or there is none, for the statement is an *identity* up to rounding."
        " For some inequalities there is the *table only*: `worst_ratios.toml` notices if a bound changes by a fifth,"
        f" which guards it against edits and is no evidence. Claims by witnesses: {counts}.\n",
    ]
    rows = []
    for name, w in found.items():
        best = max(w.attained.values(), key=lambda pair: pair[1], default=None)
        where = f"{best[1]:.3g}: {best[0]}" if best else ""
        why = "; ".join(f"{what}: {why}" for what, why in w.table_only.items())
        rows.append([name, ", ".join(w.names), _plain(where), _plain(why)])
    lines += table_lines(("claim", "witnesses", "attained", "table only"), rows)
    lines += ["", "## Bounds that could be halved\n"]
    lines += [f"The nearest case of these inequalities has a ratio below {HALVED}; why nothing nearer exists:\n"]
    rows = []
    for name, labels in loose().items():
        if name in found:
            ratios = {what: nearest(table[name][what])[1] for what in labels}
            rows += [[name, _plain(what), f"{ratios[what]:.3g}", _plain(why)] for what, why in labels.items()]
    lines += table_lines(("claim", "inequality", "worst ratio", "why"), rows)
    return "\n".join([*lines, ""])


def _plain(words: str) -> str:
    return words.replace("|", r"\|").replace("*", r"\*").replace("<", r"\<")
