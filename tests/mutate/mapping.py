"""Which tests and claims judge the mutants of a file: the fast ones that are about it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

__all__ = ["ROOT", "UNJUDGED", "Judges", "Selected", "files", "judges", "mathematics"]

ROOT = Path(__file__).resolve().parents[2]


class Selected(NamedTuple):
    """Those tests of a file whose names, with parameters, contain the regular expression."""

    path: str
    pattern: str = ""

    def holds(self, nodeid: str) -> bool:
        """Whether a test, by its pytest node id, is one of them."""
        path, _, name = nodeid.partition("::")
        return path == self.path and re.search(self.pattern, name) is not None


class Judges(NamedTuple):
    """What runs on every mutant of a file, until something fails: tests, then claims with their quick cases."""

    tests: tuple[Selected, ...]
    claims: tuple[str, ...] = ()

    @property
    def paths(self) -> list[str]:
        """The files of the tests, each once."""
        return list(dict.fromkeys(tests.path for tests in self.tests))

    def hold(self, name: str) -> bool:
        """Whether a test, by its pytest node id, or "claim NAME" is one of them."""
        return name.removeprefix("claim ") in self.claims or any(tests.holds(name) for tests in self.tests)


def _method(module: str, title: str, *tests: Selected, claims: tuple[str, ...] = ()) -> Judges:
    """The contract of every method, its box written out, clients of unequal constants, and what else is about it."""
    name = re.escape(module.replace("_", "-"))
    bracket = rf"\[{name}[\]-]"
    found = [
        Selected(f"dualopt/methods/{module}.py"),
        Selected("tests/methods/test_contract.py", bracket),
        Selected("tests/methods/test_base.py"),
        Selected("tests/methods/test_arguments.py", bracket),
        Selected("tests/methods/test_guarantees.py", bracket),
        Selected("tests/methods/test_theorems.py", bracket),
        Selected("tests/methods/test_local_starts.py", bracket),
        Selected("tests/methods/test_fixed_points.py", bracket),
        Selected("tests/methods/test_scales.py", bracket),
        Selected("tests/methods/test_reweighted_methods.py", bracket),
        Selected("tests/methods/test_unequal_clients.py", rf"{bracket}|{name}-|\b{module}\b|_{module}_"),
    ]
    if title:
        found.append(Selected("tests/methods/test_identities.py", title))
    own = f"tests/methods/test_{module}.py"
    return Judges((*found, Selected(own), *tests), claims)


NUMBERS = {  # tests of the numbers that theorems share with the methods
    "_dual_theorems": (
        Selected("tests/methods/test_adaptive_dualfl.py", "momentum_is_held"),
        Selected("tests/methods/test_dual_lbfgs.py", "are_accepted"),
        Selected("tests/methods/test_restarts.py", "epoch_ends"),
    )
}


def _theorems(module: str, methods: str, *claims: str) -> Judges:
    """What is promised of some methods: on both sides of every condition, and exact expectations."""
    title = methods.replace("-", "")
    found = (
        Selected(f"dualopt/methods/{module}.py"),
        Selected("tests/methods/test_theorems.py", rf"\[({methods})-(\d+|two|weights)|(?i:wrong.*({title}))|laws"),
        Selected("tests/methods/test_guarantees.py", rf"\[({methods})[\]-]"),
        Selected("tests/methods/test_borders.py", rf"(?i:{title})|agree_on_forms|suggested"),
        Selected("tests/methods/test_bounds.py"),
        Selected("tests/methods/test_base.py"),
        *NUMBERS.get(module, ()),
    )
    return Judges(found, claims)


THEOREMS: dict[str, tuple[str, ...]] = {  # methods, and claims
    "_theorem": ("feddyn|fedsplit|(restarted-)?dualfl",),
    "_dual_theorems": (".*dualfl|dual-ascent|dual-lbfgs", "dual_ascent_linear", "dual_lbfgs_descent"),
    "_feddyn_theorems": (".*feddyn", "sampled_feddyn_rounds", "weighted_feddyn", "growing_feddyn"),
    "_gradient_theorems": (".*dane|giant|gradient-descent",),
    "_primal_dual_theorems": ("a-fedpd|fedpd|fivegcs|scaffnew",),
    "_splitting_theorems": ("fedsplit|anderson-fedsplit|feddr|fedadmm",),
}
DUALFL = ("momentum_3_4", "sum_zeta", "theorem_3_2", "theorem_3_3", "proposition_3_1", "lemma_6_5", "gap_3_6")
FEDPD = ("fedpd_lemma_1", "fedpd_theorem_1", "fedpd_theorem_2", "fedpd_theorem_3", "fedpd_lemma_5", "fedpd_claim_d_1")
FEDDYN = ("feddyn_equation_9", "feddyn_lemma_2", "feddyn_theorem_2", "feddyn_theorem_3", "feddyn_theorem_4")
ADAPTIVE = ("adaptive_gap", "adaptive_rounds")
RESTARTS = ("restart_gap", "restart_epochs", "restart_energy")
SAMPLED = ("sampled_dualfl_step", "sampled_dualfl_potential", "sampled_dualfl", "weighted_dualfl")
A_FEDPD = ("afedpd_lemma_1", "afedpd_lemma_2", "afedpd_descent", "afedpd_theorem_1", "afedpd_range_of_rho")
A_FEDPD += ("identity_mean_dual", "identity_virtual_updates")
UNEQUAL = "tests/methods/test_unequal_clients.py"
IDENTITIES = "tests/methods/test_identities.py"
DISTRIBUTED = Selected("tests/methods/test_distributed.py")
EARLY = Selected("tests/methods/test_early_stops.py")

METHODS = {
    "_base": Judges(
        (
            Selected("dualopt/methods/_base.py"),
            Selected("tests/methods/test_base.py"),
            Selected("tests/methods/test_contract.py", r"\[dualfl\]|\[fedavg\]|refused"),
        )
    ),
    "_parameters": Judges(
        (
            Selected("dualopt/methods/_parameters.py"),
            Selected("tests/methods/test_arguments.py"),
            Selected("tests/methods/test_guarantees.py"),
            Selected(UNEQUAL, "fedsplit"),
            Selected("tests/methods/test_contract.py", "refused|filled_in"),
            Selected("tests/methods/test_fedpd.py"),
            Selected("tests/methods/test_feddr.py", "refused|suggested"),
            Selected("tests/methods/test_fedsam.py"),
            Selected("tests/methods/test_giant.py", "refused"),
            EARLY,
        )
    ),
    **{name: _theorems(name, *about) for name, about in THEOREMS.items()},
    "_pivotal": Judges(
        (
            Selected("dualopt/methods/_pivotal.py"),
            Selected("tests/methods/test_participation.py"),
            Selected("tests/methods/test_theorems.py", "laws"),
        ),
        ("sampled_dualfl_potential",),
    ),
    "acc_s_dane": _method("acc_s_dane", "", claims=("acc_s_dane",)),
    "adaptive_acc_s_dane": _method(
        "adaptive_acc_s_dane", "", Selected("tests/methods/test_acc_s_dane.py"), claims=("acc_s_dane_adaptive",)
    ),
    "_estimate": _method("acc_s_dane", "", Selected("dualopt/methods/_estimate.py"), claims=("acc_s_dane_adaptive",)),
    "a_fedpd": _method("a_fedpd", "A-FedPD", EARLY, claims=A_FEDPD),
    "a_fedpdsam": _method("a_fedpdsam", "", Selected("tests/methods/test_fedsam.py")),
    "_dual_parameters": Judges(
        (
            Selected("tests/methods/test_scales.py"),
            Selected("tests/methods/test_arguments.py", r"(dualfl|ascent|lbfgs)[\]-]"),
            Selected("tests/methods/test_guarantees.py", r"\[(optimized-)?dualfl[\]-]"),
            Selected("tests/methods/test_restarts.py", "unknown|definition"),
            Selected("tests/methods/test_dualfl.py", "suggested"),
            Selected("tests/methods/test_fixed_points.py", r"\[(sampled-|optimized-)?dualfl\]"),
            EARLY,
        ),
        ("scaled_dualfl",),
    ),
    "_restarts": Judges(
        (
            Selected("dualopt/methods/_restarts.py"),
            Selected("tests/methods/test_restarts.py"),
            Selected("tests/theory/test_symbolic_restarts.py"),
        ),
        RESTARTS,
    ),
    "_line_search": Judges(
        (
            Selected("dualopt/methods/_line_search.py"),
            Selected("tests/methods/test_distributed.py"),
            Selected("tests/methods/test_giant.py"),
            Selected("tests/methods/test_dual_lbfgs.py"),
        )
    ),
    "_anderson": Judges(
        (
            Selected("dualopt/methods/_anderson.py"),
            Selected("tests/methods/test_anderson_dane.py"),
            Selected("tests/methods/test_anderson_fedsplit.py"),
            Selected("tests/methods/test_arguments.py", "anderson"),
            Selected("tests/methods/test_contract.py", "anderson"),
        ),
        ("anderson_quadratics", "anderson_safeguard"),
    ),
    "_dane": _method("acc_s_dane", "", Selected("tests/methods/test_anderson_dane.py"), claims=("acc_s_dane",)),
    "anderson_dane": _method("anderson_dane", "", claims=("anderson_dane_quadratics", "dane_spectrum")),
    "anderson_fedsplit": _method("anderson_fedsplit", "", claims=("anderson_quadratics", "anderson_safeguard")),
    "apda_inexact": _method("apda_inexact", ""),
    "distributed_lbfgs": _method("distributed_lbfgs", "", DISTRIBUTED, claims=("lbfgs_is_central",)),
    "distributed_newton_cg": _method("distributed_newton_cg", "", DISTRIBUTED, claims=("newton_cg_is_central",)),
    "dual_ascent": _method("dual_ascent", "", claims=("dual_ascent_any_loss", "dual_ascent_linear")),
    "dual_lbfgs": _method("dual_lbfgs", "", claims=("dual_lbfgs_descent", "dual_lbfgs_is_central")),
    "_dual_corrected": _method(
        "corrected_dualfl",
        "",
        Selected("tests/methods/test_dualfl.py", "corrected"),
        Selected("tests/methods/test_optimized_dualfl.py", "corrected"),
        claims=("theorem_3_2_inexact", "theorem_3_3_inexact", "scaled_dualfl"),
    ),
    "corrected_dualfl": _method("corrected_dualfl", ""),
    "restarted_dualfl": _method(
        "restarted_dualfl", "", Selected("tests/methods/test_restarts.py"), claims=("restart_gap", "restart_energy")
    ),
    "gap_restarted_dualfl": _method(
        "gap_restarted_dualfl", "", Selected("tests/methods/test_restarts.py"), claims=RESTARTS
    ),
    "adaptive_dualfl": _method(
        "adaptive_dualfl", "", Selected("tests/methods/test_contract.py", "adaptive-dualfl"), claims=ADAPTIVE
    ),
    "dualfl": _method(
        "dualfl",
        "",
        Selected("tests/methods/test_scales.py"),
        Selected("tests/methods/test_restarts.py"),
        claims=(*DUALFL, "scaled_dualfl", *RESTARTS),
    ),
    "fedadmm": _method(
        "fedadmm", "FedADMM|fedadmm", claims=("identity_fedadmm_feddr", "fedadmm_dual_drift", "averaged_reflections")
    ),
    "fedavg": _method("fedavg", "FedAvg", claims=("fedavg_bias", "fedavg_constant_step")),
    "fedcm": _method("fedcm", ""),
    "feddr": _method("feddr", "FedDR|feddr", claims=("feddr_contraction", "sampled_feddr", "identity_fedadmm_feddr")),
    "feddualavg": _method("feddualavg", ""),
    "feddyn": _method(
        "feddyn",
        "FedDyn|weights_of_rows",
        Selected("tests/methods/compressors/test_methods.py"),
        Selected("tests/methods/test_scales.py", "feddyn"),
        claims=(
            *FEDDYN,
            "sampled_feddyn",
            "weighted_feddyn",
            "growing_feddyn",
            "compressed_feddyn",
            "averaged_reflections",
        ),
    ),
    "fedpd": _method(
        "fedpd",
        r"\[FedPD|full_part",
        Selected("tests/methods/test_fedpd_yardstick.py"),
        claims=FEDPD,
    ),
    "growing_feddyn": _method(
        "growing_feddyn", "", Selected("tests/methods/test_theorems.py", "growing|C, steep"), claims=("growing_feddyn",)
    ),
    "old_dual_fedpd": _method(
        "old_dual_fedpd",
        "FedPD, old dual",
        Selected("tests/methods/test_fedpd_yardstick.py"),
    ),
    "feddynsam": _method("feddynsam", "", Selected("tests/methods/test_arguments.py", "feddynsam")),
    "_sharpness": _method("a_fedpdsam", "", Selected("tests/methods/test_fedsam.py")),
    "fedprox": _method("fedprox", "FedProx", claims=("fedprox_bias",)),
    "fedsam": _method("fedsam", ""),
    "fedspeed": _method("fedspeed", "FedSpeed", Selected("tests/methods/test_fedsam.py")),
    "fedsplit": _method(
        "fedsplit",
        "FedSplit|fedsplit",
        Selected("tests/methods/test_scales.py"),
        Selected("tests/methods/compressors/test_methods.py"),
        claims=("fedsplit_contraction", "sampled_fedsplit", "compressed_fedsplit"),
    ),
    "consensus_fedsplit": _method("consensus_fedsplit", "consensus", claims=("identity_fedsplit_feddr",)),
    "fivegcs": _method(
        "fivegcs", "", claims=("fivegcs_one_step", "sampled_fivegcs", "full_fivegcs", "cohorts_of_fivegcs")
    ),
    "giant": _method("giant", "", claims=("giant_descent", "giant_quadratics")),
    "gradient_descent": _method("gradient_descent", "", DISTRIBUTED, claims=("gradient_descent_contraction",)),
    "optimized_dualfl": _method("optimized_dualfl", "", Selected("tests/methods/test_restarts.py")),
    "corrected_optimized_dualfl": _method("corrected_optimized_dualfl", ""),
    "restarted_optimized_dualfl": _method("restarted_optimized_dualfl", "", Selected("tests/methods/test_restarts.py")),
    "sampled_dualfl": _method(
        "sampled_dualfl", "", Selected("tests/methods/test_scales.py", "sampled_dualfl"), claims=SAMPLED
    ),
    "scaffnew": _method("scaffnew", "", claims=("scaffnew_one_step", "scaffnew_long_step")),
    "scaffold_i": _method(
        "scaffold_i", "", Selected("tests/methods/test_scaffold.py"), claims=("scaffold_fixed_point",)
    ),
    "scaffold": _method("scaffold", "", claims=("scaffold_fixed_point",)),
}


NEWER = ("gamma", "poisson", "quantile", "squared_hinge")  # losses that have tests by what they are

STEEP = ("gamma", "poisson")


def _loss(module: str) -> Judges:
    name = module.replace("_", "-")
    pattern = "" if module.startswith("_") else f"{module}|{name}|{name.title().replace('-', '')}|parameter|number_of"
    pattern = f"{pattern}|steep|half_lines|quantile|kink" if module in NEWER else pattern
    accuracy = Selected("tests/runs/test_certificates.py", rf"losses_are_as_accurate.*\b({pattern})")
    own, offsets = Selected(f"dualopt/losses/{module}.py"), Selected("tests/losses/test_offsets.py", pattern)
    likelihoods = Selected("tests/runs/test_inference.py", rf"densit|pearson|third.*({pattern})")
    found = (own, Selected("tests/losses/test_losses.py", pattern), accuracy, offsets, likelihoods)
    return Judges((*found, Selected("tests/losses/test_tangents.py", pattern)) if module in STEEP else found)


PROOFS = {  # of each part of the machinery that proves rates, the quick tests of each file of tests that are about it
    "_exact": {"proof_objects": r"^(?!.*(dualfl|cohorts_than))"},
    "_formal": {"worst_cases": "GradientDescent|DualFL0|classes", "world_inexact": "not_smooth|does_not_apply"},
    "_forms": {"worst_cases": r"GradientDescent|DualFL0|classes", "rates": "exact_numbers|several"},
    "_linear": {"worst_cases": "linear_algebra", "rates": "exact_numbers|feddyn|several"},
    "_lyapunov": {"rates": r"lie_between.*(feddyn|fedadmm|gradient)|several|does_not_converge"},
    "_program": {"worst_cases": "GradientDescent|multipliers|DualFL3"},
    "_promised": {"world_without_bounds": "left_out"},
    "_quadratics": {"rates": "exchanged", "world_regulariser": "exchanged"},
    "_rates": {"rates": r"\[gradient|\[fedadmm|late|does_not|costs", "proof_objects": r"several|gradient-descent"},
    "_rational": {"worst_cases": "rational", "rates": "exact_numbers"},
    "_round": {"rates": r"\[(feddyn|fedadmm)|several|exact_numbers|late", "proof_objects": "several"},
    "_scaling": {"worst_cases": "DualFL3|GradientDescent", "world_horizons": "sample|inverted|factors|sizes"},
    "_setting": {"rates": "listed|later|law", "worst_cases": "bad_arguments|not_linear|classes"},
    "_states": {"rates": r"\[(feddyn|fedadmm)|several|refused|exact_numbers", "proof_objects": "several|alike"},
    "_tracked": {"worst_cases": "refused|linear"},
    "_worst_case": {
        "worst_cases": r"^(?!.*(momenta|no_run|DualFL[57]|more_than_vectors))",
        "world_regulariser": "value",
    },
}


def _proofs(module: str) -> Judges:
    """Rates, worst cases and proofs: the parts by themselves, known values, and what is refused."""
    found = (
        Selected(f"dualopt/lab/proofs/{module}.py"),
        Selected("tests/lab/proofs/test_parts.py"),
        Selected("tests/lab/proofs/test_settings.py"),
        Selected("tests/lab/proofs/test_programs.py"),
        *(Selected(f"tests/lab/proofs/test_{about}.py", pattern) for about, pattern in PROOFS[module].items()),
    )
    return Judges(found)


COMPRESSORS = {
    "cohorts": "CoordinateCohorts|cohort",
    "identity": "Identity|identity",
    "natural": "NaturalCompression|natural|powers",
    "quantisation": "RandomQuantisation|quantisation",
    "rand_k": "RandK|rand",
    "rounding": "Rounding|rounding|digits",
    "top_k": "TopK|top|largest",
}


def _compressor(module: str) -> Judges:
    """Tests that are about one compressor, or about all at once."""
    found = (
        Selected(f"dualopt/methods/compressors/{module}.py"),
        Selected("tests/methods/compressors/test_compressors.py"),
        Selected("tests/methods/compressors/test_methods.py", COMPRESSORS[module]),
    )
    return Judges(found, ("compressor_moments",) if module not in ("rounding", "top_k") else ())


SEEN = Selected("tests/figures/test_figures_advice.py", "what_is_expected|near_the_best|seen_to_send")  # numbers

ENGINE = {  # of some tests of the engine, those that take little time
    "contradictions": "named|without",
    "kills": "other_things|wrong_projects",
    "two_phases": r"\[lost\]|left_out|energies",
}


def _solver(module: str, *tests: Selected) -> Judges:
    name = {
        "lbfgs": "lbfgs|LBFGS",
        "row_lbfgs": "row_lbfgs|RowLBFGS|row-lbfgs",
        "_line_search": "lbfgs|LBFGS|newton|Newton",
        "_dual_rows": "dual_coordinate|interior_point|DualCoordinate|InteriorPoint",
        "aogm": "aogm|AOGM",
        "_kinks": "interior_point|InteriorPoint|interior",
        "interior_point": "interior_point|InteriorPoint|interior",
        "newton": "newton|Newton|conjugate_gradients",
        "sgd": "sgd|SGD",
    }.get(module, rf"{module}|{module.title()}")
    name = f"{name}|misfits" if module not in ("_lazy", "_default") else ""
    return Judges(
        (
            Selected(f"dualopt/solvers/{module}.py"),
            *tests,
            Selected("tests/solvers/test_solutions.py", name),
            Selected("tests/solvers/test_methods.py", name),
            Selected("tests/solvers/test_frozen.py", name),
            Selected("tests/solvers/test_sampled.py", name),
            Selected("tests/methods/test_arguments.py", "docstring_names"),
        )
    )


TABLE: dict[str, Judges] = {f"dualopt/methods/{name}.py": judges for name, judges in METHODS.items()}
TABLE |= {
    f"dualopt/losses/{name}.py": _loss(name)
    for name in (
        "absolute_deviation",
        "gamma",
        "hinge",
        "huber",
        "logistic",
        "multinomial",
        "poisson",
        "quantile",
        "smoothed_hinge",
        "squared",
        "squared_hinge",
    )
}
TABLE |= {
    "dualopt/losses/_checks.py": Judges((Selected("tests/losses/test_losses.py"),)),
    "dualopt/losses/_exponential.py": Judges(
        (
            Selected("dualopt/losses/_exponential.py"),
            Selected("tests/losses/test_losses.py", "Gamma|Poisson|steep"),
        )
    ),
    "dualopt/losses/_protocol.py": Judges((Selected("tests/losses/test_losses.py"),)),
    "dualopt/losses/_entropy.py": Judges(
        (Selected("tests/losses/test_losses.py", "logistic|Logistic|multinomial|Multinomial"),)
    ),
    "dualopt/losses/_offset.py": Judges(
        (
            Selected("dualopt/losses/_offset.py"),
            Selected("tests/losses/test_offsets.py"),
            Selected("tests/runs/test_inference.py", "offsets"),
        )
    ),
    "dualopt/losses/_wright_omega.py": Judges(
        (Selected("tests/losses/test_losses.py", "logistic|Logistic|wright|omega"),)
    ),
}
TABLE |= {
    "dualopt/solvers/_default.py": Judges(
        (
            Selected("dualopt/solvers/_default.py"),
            Selected("tests/solvers/test_lbfgs_defaults.py", "space_of_the_rows|wide_sparse"),
            Selected("tests/engine/test_equal.py", "wide"),
        )
    ),
    "dualopt/solvers/_lazy.py": _solver("_lazy", Selected("tests/solvers/test_sparse_rows.py")),
    "dualopt/solvers/_line_search.py": _solver("_line_search", Selected("tests/solvers/test_line_search.py")),
    "dualopt/solvers/_loop.py": Judges(  # every solver runs it: the tests of the loop itself
        (
            Selected("dualopt/solvers/_loop.py"),
            Selected("tests/solvers/test_loop.py"),
            Selected("tests/benchmarks/test_counts.py", "masks"),
            Selected("tests/solvers/test_methods.py", "constant|overflow"),
            Selected("tests/solvers/test_frozen.py", "diverging|minimiser"),
            Selected("tests/solvers/test_sampled.py", "divergence|misfits"),
        )
    ),
    "dualopt/solvers/aogm.py": _solver("aogm"),
    "dualopt/solvers/dual_coordinate.py": _solver(
        "dual_coordinate",
        Selected("tests/solvers/test_dual_coordinate.py"),
        Selected("tests/solvers/test_sparse_rows.py", "dual_coordinate"),
        Selected("tests/solvers/test_free_intercepts.py"),
    ),
    "dualopt/solvers/_dual_rows.py": _solver(
        "_dual_rows",
        Selected("tests/solvers/test_dual_rows.py"),
        Selected("tests/solvers/test_solutions.py", "dual|interior"),
        Selected("tests/solvers/test_free_intercepts.py"),
    ),
    "dualopt/solvers/exact.py": _solver("exact"),
    "dualopt/solvers/gradient.py": _solver("gradient"),
    "dualopt/solvers/_kinks.py": _solver(
        "_kinks",
        Selected("tests/solvers/test_interior_point.py"),
        Selected("tests/solvers/test_free_intercepts.py"),
    ),
    "dualopt/solvers/interior_point.py": _solver(
        "interior_point",
        Selected("tests/solvers/test_interior_point.py"),
        Selected("tests/solvers/test_free_intercepts.py"),
    ),
    "dualopt/solvers/lbfgs.py": _solver(
        "lbfgs",
        Selected("tests/solvers/test_lbfgs_defaults.py"),
        Selected("tests/benchmarks/test_counts.py", "lbfgs"),
    ),
    **{
        f"dualopt/{name}.py": Judges(
            (Selected("tests/solvers/test_mixed_passes.py"), Selected("tests/solvers/test_mixed.py"))
        )
        for name in ("solvers/_mixed", "objectives/remainder")
    },
    "dualopt/solvers/nesterov.py": _solver("nesterov"),
    "dualopt/solvers/newton.py": _solver("newton", Selected("tests/solvers/test_newton.py")),
    "dualopt/solvers/row_lbfgs.py": _solver("row_lbfgs", Selected("tests/solvers/test_sparse_rows.py")),
    "dualopt/lab/rates.py": Judges((Selected("dualopt/lab/rates.py"), Selected("tests/lab/test_rates.py"))),
    "dualopt/solvers/sarah.py": _solver("sarah", Selected("tests/solvers/test_sarah.py")),
    "dualopt/solvers/sgd.py": _solver("sgd", Selected("tests/solvers/test_sgd.py")),
    "dualopt/arrays/streams.py": Judges(
        (
            Selected("dualopt/arrays/streams.py"),
            Selected("tests/methods/test_participation.py"),
            Selected("tests/engine/test_rounds.py"),
        )
    ),
    "dualopt/methods/participation.py": Judges(
        (
            Selected("dualopt/methods/participation.py"),
            Selected("tests/methods/test_participation.py"),
            Selected("tests/engine/test_rounds.py"),
            Selected(IDENTITIES, "boxes|virtual"),
        )
    ),
    "dualopt/solvers/stopping.py": Judges(
        (Selected("dualopt/solvers/stopping.py"), Selected("tests/solvers/test_stopping.py"))
    ),
    **{
        f"dualopt/regularisers/{name}.py": Judges(
            (Selected(f"dualopt/regularisers/{name}.py"), Selected("tests/regularisers/test_regularisers.py"))
        )
        for name in ("_protocol", "_zero", "l1", "l2")
    },
    "dualopt/regularisers/_without_intercept.py": Judges(
        (
            Selected("dualopt/regularisers/_without_intercept.py"),
            Selected("tests/runs/test_free_intercept.py", "leaves_a_free_intercept_alone|lasso"),
        )
    ),
    "dualopt/runs/cuts.py": Judges(
        (
            Selected("tests/runs/test_cut_allowances.py"),
            Selected("tests/runs/test_free_intercept.py", "numbers"),
            Selected("tests/runs/test_free_intercept.py"),
            Selected("tests/runs/test_certificate_allowances.py"),
            Selected("tests/runs/test_certificates.py", "share_of_the_fuzz"),
        )
    ),
    "dualopt/runs/certificates.py": Judges(
        (
            Selected("dualopt/runs/certificates.py"),
            Selected("tests/runs/test_certificate_allowances.py"),
            Selected("tests/runs/test_certificates.py"),
            Selected("tests/runs/test_free_intercept.py"),
            Selected("tests/theory/test_quantities.py", "conjugates|dual|fista|bound|product"),
            Selected(UNEQUAL, "certificate|conjugates|dual_form|gradient_form|greatest_mu_understates"),
        ),
        ("dual_certificate", "gradient_certificate"),
    ),
    **{
        f"dualopt/runs/{name}.py": Judges(
            (
                Selected(f"dualopt/runs/{name}.py"),
                Selected("dualopt/runs/inference.py"),
                Selected("tests/runs/test_inference.py"),
                Selected("tests/runs/test_inference_words.py"),
                Selected("tests/runs/test_covariances.py"),
            )
        )
        for name in ("inference", "_inference", "_covariances")
    },
    "dualopt/runs/reference.py": Judges(
        (Selected("dualopt/runs/reference.py"), Selected("tests/runs/test_reference.py"))
    ),
    "dualopt/runs/_due.py": Judges((Selected("dualopt/runs/_due.py"), Selected("tests/runs/test_due.py"))),
    "dualopt/runs/auto.py": Judges((Selected("dualopt/runs/auto.py"), Selected("tests/runs/test_auto.py"))),
    "dualopt/runs/costs.py": Judges((Selected("dualopt/runs/costs.py"), Selected("tests/runs/test_costs.py"), SEEN)),
    **{
        f"dualopt/runs/{name}.py": Judges(
            (
                Selected(f"dualopt/runs/{name}.py"),
                Selected("tests/runs/test_costs.py"),
                Selected("tests/runs/test_recommendation.py", r"^(?!.*(program|command|mistakes))"),
            )
        )
        for name in ("recommendation", "rules")
    },
    "dualopt/runs/_tails.py": Judges((Selected("dualopt/runs/_tails.py"), Selected("tests/runs/test_tails.py"))),
    "dualopt/objectives/_information.py": Judges(
        (
            Selected("dualopt/objectives/_information.py"),
            Selected("tests/runs/test_inference.py"),
        )
    ),
    "dualopt/runs/divergence.py": Judges(
        (
            Selected("dualopt/runs/divergence.py"),
            Selected("tests/runs/test_divergence.py", "rule|rests|comes_to_rest|above_its_start"),
        )
    ),
    "dualopt/arrays/client_states.py": Judges(
        (
            Selected("dualopt/arrays/client_states.py"),
            Selected("tests/arrays/test_client_states.py"),
        )
    ),
    **{f"dualopt/methods/compressors/{name}.py": _compressor(name) for name in COMPRESSORS},
    "dualopt/methods/compressors/_protocol.py": Judges((Selected("tests/methods/compressors/test_compressors.py"),)),
    "dualopt/methods/compressors/_uplink.py": Judges(
        (
            Selected("tests/methods/compressors/test_compressors.py", "what_arrives|scalars|cohorts|own_memory"),
            Selected("tests/methods/compressors/test_methods.py", "numpy|^[^[]*$|strict-FedDyn"),
            Selected("tests/methods/compressors/test_contract.py", "rand-k"),
        ),
        ("compressed_fedsplit",),
    ),
    "dualopt/methods/compressors/_downlink.py": Judges((Selected("tests/methods/compressors/test_downlink.py"),)),
    "dualopt/engine/traffic.py": Judges(
        (
            Selected("dualopt/engine/traffic.py"),
            Selected("tests/engine/test_traffic.py"),
            Selected("tests/engine/test_rounds.py"),
            Selected("tests/methods/compressors/test_methods.py", "bits|64"),
            Selected("tests/methods/compressors/test_contract.py", "counted"),
        )
    ),
    **{
        f"dualopt/engine/{name}.py": Judges(
            (
                Selected(f"dualopt/engine/{name}.py"),
                *(Selected(f"tests/engine/test_{about}.py", ENGINE.get(about, "")) for about in ("census", *tests)),
                Selected("tests/engine/test_equal.py", "feddyn-quadratic|dualfl-smooth|scaffnew-quadratic|fedpd-reg"),
                Selected("tests/methods/compressors/test_contract.py", r"\[(feddyn|a-fedpd)-rand-k"),
            )
        )
        for name, tests in (
            ("_agreement", ("agreement_sentences", "agreement")),
            ("_errors", ()),
            ("_host", ("host", "one_host", "two_phases", "wire", "kills")),
            ("_host_data", ("host", "one_host", "wire")),
            ("_host_file", ("kills",)),
            ("_inline", ("one_host",)),
            ("_local_server", ("one_host", "rounds")),
            ("_places", ()),
            ("_protocol", ("wire",)),
            ("_remote", ("one_host", "wire")),
            ("_rows", ()),
            ("_server", ("server", "two_phases", "contradictions")),
            ("_session", ("session", "server", "two_phases")),
            ("_states", ("states", "one_host")),
            ("_steps", ("steps", "host", "one_host", "rounds")),
            ("_uploads", ("uploads", "two_phases", "lies")),
        )
    },
    "dualopt/engine/_compiled.py": Judges(  # with JAX, as the next one
        (
            Selected(
                "tests/engine/test_compiled.py",
                "one_output|rewei|cohorts|another_run|forgotten|certificates|draws|pickled",
            ),
        )
    ),
    "dualopt/engine/_in_numpy.py": Judges((Selected("tests/engine/test_in_numpy.py"),)),  # with PyTorch
    "dualopt/arrays/compiled.py": Judges(
        (Selected("dualopt/arrays/compiled.py"), Selected("tests/arrays/test_compiled.py"))
    ),
    "dualopt/engine/_contradictions.py": Judges(
        (
            Selected("dualopt/engine/_contradictions.py"),
            Selected("tests/engine/test_contradiction_allowances.py"),
            Selected("tests/engine/test_contradictions.py"),
        )
    ),
    "dualopt/engine/_everywhere.py": Judges((Selected("tests/engine/test_agreement.py"),)),
    **{
        f"dualopt/engine/secure_sums/{name}.py": Judges(
            (
                Selected(f"dualopt/engine/secure_sums/{name}.py"),
                Selected("tests/engine/test_secure_sums.py", pattern),
            )
        )
        for name, pattern in (
            ("_ciphers", r"added\[|mask|tampered"),
            ("_engine", r"^(?!test_every_method)|\[(feddyn|dualfl)\]"),
            ("_masked", r"added\[|alike|beyond|rounding|coarse|infinite|\[(feddyn|dualfl)\]"),
            ("_messages", "bytes|tampered"),
            ("_ring", "exact|bounds|rounding|coarse"),
            ("_shares", r"added\[|shares|tampered"),
            ("_site", r"^(?!test_every_method)|\[(feddyn|dualfl)\]"),
        )
    },
    "dualopt/engine/_answers.py": Judges(
        (
            Selected("dualopt/engine/_answers.py"),
            Selected("tests/engine/test_answers.py"),
            Selected("tests/engine/test_census.py"),
            Selected("tests/engine/test_lies.py"),
            Selected("tests/engine/test_two_phases.py"),
        )
    ),
    "dualopt/arrays/codec.py": Judges(
        (
            Selected("dualopt/arrays/codec.py"),
            Selected("tests/engine/test_wire_format.py"),
            Selected("tests/arrays/test_codec.py"),
            Selected("tests/engine/test_checkpoint.py", "damaged|solvers"),
        )
    ),
    **{
        f"dualopt/engine/{name}.py": Judges(
            (
                Selected(f"dualopt/engine/{name}.py"),
                Selected(
                    "tests/engine/test_checkpoint.py",
                    "damaged|version|refused|half|disk|continued|another|columns|described|open",
                ),
                Selected("tests/engine/test_kills.py", "refused|disk|leaves_nothing"),
            )
        )
        for name in ("checkpoint", "journal")
    },
    "dualopt/engine/wire.py": Judges(
        (
            Selected("dualopt/engine/wire.py"),
            Selected("tests/engine/test_wire.py", "integers"),
            Selected("tests/engine/test_wire_format.py"),
            Selected("tests/engine/test_wire_runs.py", "dualfl|feddyn|scaffnew|dual-lbfgs"),
        )
    ),
    **{
        f"dualopt/federation/{name}.py": Judges(
            (
                Selected(f"dualopt/federation/{name}.py"),
                Selected("tests/federation/test_project.py"),
                Selected("tests/federation/test_submission.py"),
                Selected("tests/federation/test_in_memory.py"),
                Selected("tests/federation/test_refusals.py"),
                Selected("tests/federation/test_agreed.py"),
            )
        )
        for name in (
            "agreed",
            "answering",
            "engine",
            "job",
            "project",
            "provision",
            "refusals",
            "seal",
            "serving",
            "settings",
            "submission",
        )
    },
    "dualopt/federation/preparing.py": Judges(
        (
            Selected("dualopt/federation/preparing.py"),
            Selected("tests/federation/test_preparing.py", "^(?!.*(one_process|rounds_come))|float32"),
        )
    ),
    **{
        f"dualopt/problem/preprocessing/{name}.py": Judges(
            (
                Selected(f"dualopt/problem/preprocessing/{name}.py"),
                *(Selected(f"tests/problem/preprocessing/test_{about}.py", pattern) for about, pattern in tests),
            )
        )
        for name, tests in (
            ("_columns", (("tables", ""), ("columns", r"^(?!.*processes)"))),
            ("_exact", (("exact", ""), ("plans", ""))),
            ("_plans", (("plans", ""), ("columns", r"scikit|cure"))),
            ("_questions", (("questions", ""), ("plans", ""), ("columns", r"scikit"))),
        )
    },
    "dualopt/engine/rounds.py": Judges(
        (
            Selected("dualopt/engine/rounds.py"),
            Selected("tests/engine/test_rounds.py"),
            Selected("tests/arrays/test_client_states.py", "of_their_round|not_copied"),
            Selected("tests/engine/test_secure_sums.py", "64_bits"),
            Selected("tests/methods/compressors/test_downlink.py"),
            Selected("tests/methods/test_contract.py", r"\[(fedpd|feddyn|a-fedpd|scaffold|dualfl)[\]-]"),
        )
    ),
    "dualopt/objectives/torch_objective.py": Judges(  # with PyTorch, without which its tests do not run
        (Selected("tests/objectives/test_torch_module.py"), Selected("tests/methods/test_torch_methods.py"))
    ),
    "dualopt/objectives/_torch_checks.py": Judges(
        (Selected("tests/objectives/test_torch_module.py", "refused|frozen|rows_may|channels"),)
    ),
    "dualopt/objectives/torch_networks.py": Judges(
        (
            Selected("dualopt/objectives/torch_networks.py"),
            Selected("tests/objectives/test_torch_module.py", "network_of_feddyn"),
        )
    ),
    "dualopt/objectives/augmentation.py": Judges(
        (Selected("tests/objectives/test_torch_module.py", "crop|augmentation|changed"),)
    ),
    "dualopt/problem/data/replacement.py": Judges(
        (
            Selected("dualopt/problem/data/replacement.py"),
            Selected("tests/problem/data/test_partitions.py", "replacement|share_rows"),
        )
    ),
    "dualopt/problem/data/brightness.py": Judges(
        (Selected("dualopt/problem/data/brightness.py"), Selected("tests/problem/test_brightness.py"))
    ),
    "dualopt/objectives/convex_chain.py": Judges(
        (
            Selected("dualopt/objectives/convex_chain.py"),
            Selected("tests/objectives/test_contract.py", r"\[(squares|kinks)[\]-]"),
            Selected("tests/theory/test_convex_chain.py", "quadratics|minimiser|kink"),
        )
    ),
    "dualopt/lab/verification/claimed_rate.py": Judges(
        (Selected("dualopt/lab/verification/claimed_rate.py"), Selected("tests/lab/verification/test_claimed_rate.py"))
    ),
    "dualopt/lab/verification/chains.py": Judges(
        (
            Selected("dualopt/lab/verification/chains.py"),
            Selected("tests/lab/verification/test_instances.py"),
            Selected("tests/theory/test_convex_chain.py", "quadratics|minimiser|kink|power"),
        )
    ),
    **{f"dualopt/lab/proofs/{name}.py": _proofs(name) for name in PROOFS},
    "dualopt/lab/proofs/_best.py": Judges(
        (Selected("dualopt/lab/proofs/_best.py"), Selected("tests/lab/proofs/test_best.py"))
    ),
    "dualopt/lab/proofs/_compressors.py": Judges(
        (
            Selected("dualopt/lab/proofs/_compressors.py"),
            Selected("tests/lab/proofs/test_world_compressed.py"),
        )
    ),
    "dualopt/lab/proofs/checker.py": Judges(
        (
            Selected("dualopt/lab/proofs/checker.py"),
            Selected("tests/lab/proofs/test_checker.py"),
            Selected("tests/lab/proofs/test_proof_objects.py", "sum_of_squares|no_proofs|lies"),
        )
    ),
    "dualopt/lab/verification/floor.py": Judges(
        (
            Selected("dualopt/lab/verification/floor.py"),
            Selected("tests/lab/verification/test_floor.py", "what_|aitken|chance|solved|bias"),
        )
    ),
    "dualopt/lab/verification/own.py": Judges(
        (
            Selected("dualopt/lab/verification/own.py"),
            Selected("tests/lab/verification/test_floor.py", "brings|resolution|energies|mistakes|class_of|known_of"),
        )
    ),
    "dualopt/lab/verification/instances.py": Judges(
        (
            Selected("dualopt/lab/verification/instances.py"),
            Selected("tests/lab/verification/test_instances.py"),
            Selected("tests/lab/verification/test_floor.py", "known_of|energies"),
        )
    ),
    "dualopt/lab/verification/search.py": Judges(
        (Selected("dualopt/lab/verification/search.py"), Selected("tests/lab/verification/test_search.py"))
    ),
    "dualopt/lab/verification/verdict.py": Judges(
        (Selected("dualopt/lab/verification/verdict.py"), Selected("tests/lab/verification/test_verdict.py"))
    ),
    "dualopt/objectives/coordinates.py": Judges(
        (Selected("dualopt/objectives/coordinates.py"), Selected("tests/objectives/test_coordinates.py")),
        ("fedsplit_in_the_metric", "lbfgs_in_the_metric"),
    ),
    "dualopt/methods/preparation/_protocol.py": Judges(
        (
            Selected("dualopt/methods/preparation/_protocol.py"),
            Selected("tests/methods/test_preparation.py", "run|trace|states|dual|cost|solutions"),
        )
    ),
    "dualopt/methods/preparation/one_shot.py": Judges(
        (
            Selected("dualopt/methods/preparation/one_shot.py"),
            Selected("tests/methods/test_preparation.py", "start|jack|halves|trace"),
        ),
        ("one_shot_average",),
    ),
    "dualopt/methods/preparation/sketched_metric.py": Judges(
        (
            Selected("dualopt/methods/preparation/sketched_metric.py"),
            Selected("tests/methods/test_preparation.py", "sketch|server|trace|seed|ranks|objectives|l2"),
            Selected("tests/methods/test_arguments.py", "docstring_names.*Sketched"),
        )
    ),
    "dualopt/objectives/_weights.py": Judges(
        (
            Selected("dualopt/objectives/_weights.py"),
            Selected("tests/objectives/test_scales.py"),
            Selected("tests/objectives/test_linear.py", "weights"),
            Selected("tests/methods/test_reweighted_methods.py", "three_copies"),
        )
    ),
    "dualopt/objectives/scales.py": Judges(
        (
            Selected("dualopt/objectives/scales.py"),
            Selected("tests/objectives/test_scales.py"),
            Selected("tests/objectives/test_contract.py", r"\[scales[\]-]"),
            Selected("tests/methods/test_scales.py"),
        ),
        ("best_scales",),
    ),
    "dualopt/objectives/_client_cache.py": Judges(
        (
            Selected("dualopt/objectives/_client_cache.py"),
            Selected("tests/objectives/test_parts.py", "kept|stack|each_other|same_bits"),
        )
    ),
    "dualopt/objectives/_index.py": Judges(
        (
            Selected("dualopt/objectives/_index.py"),
            Selected("tests/objectives/test_parts.py"),
        )
    ),
    "dualopt/objectives/_rounding.py": Judges(
        (Selected("dualopt/objectives/_rounding.py"), Selected("tests/objectives/test_rounding.py"))
    ),
    **{
        f"dualopt/objectives/{name}.py": Judges(
            (
                Selected(f"dualopt/objectives/{name}.py"),
                *(Selected(f"tests/objectives/test_{about}.py") for about in tests),
                Selected("tests/objectives/test_contract.py", rf"\[({instances})[\]-]"),
            )
        )
        for name, tests, instances in (
            ("finite_sum", ("linear", "one_point"), "Squared|Multinomial"),
            ("objective", ("objective",), "quadratic|squares"),
            ("composite", ("objective",), "composite"),
            ("wrapper", ("objective", "sharpness_aware"), "nonconvex|metric|scales"),
        )
    },
    **{
        f"dualopt/objectives/{name}.py": Judges(
            (
                Selected(f"dualopt/objectives/{name}.py"),
                *(Selected(f"tests/objectives/test_{about}.py") for about in tests),
                Selected("tests/objectives/test_contract.py", rf"\[({instances})[\]-]"),
                Selected("tests/methods/test_arguments.py", "docstring_names.*(Nonconvex|Sharpness)"),
            )
        )
        for name, tests, instances in (
            ("quadratic", ("quadratic", "rounding"), "quadratic"),
            ("rows", ("rows", "objective", "parts", "sampling", "linear", "sparse"), "Squared|Multinomial"),
            ("_row_inputs", ("rows", "objective", "parts", "linear"), "Squared|Multinomial"),
            ("_products", ("objective", "sparse"), "Squared|Multinomial"),
            ("network", ("network",), "network"),
            ("nonconvex_penalty", ("nonconvex_penalty",), "nonconvex"),
            ("sharpness_aware", ("sharpness_aware",), "uphill"),
            ("zero_chain", ("zero_chain",), "zero chain"),
        )
    },
    **{
        f"dualopt/objectives/{name}.py": Judges(tuple(Selected(f"tests/objectives/test_{about}.py") for about in tests))
        for name, tests in (
            ("_compiled", ("compiled",)),
            ("_dense", ("linear", "compiled", "kernels", "parts", "sampling")),
        )
    },
    "dualopt/objectives/linear.py": Judges(
        (
            Selected("dualopt/objectives/linear.py"),
            Selected("tests/objectives/test_linear.py"),
            Selected("tests/objectives/test_rounding.py"),
            Selected("tests/objectives/test_contract.py", r"\[(Squared|Multinomial)[\]-]"),
            Selected("tests/engine/test_blocks.py", "weights_that_are_zero"),
        )
    ),
    "dualopt/objectives/_sparse.py": Judges(
        (
            Selected("dualopt/objectives/_sparse.py"),
            Selected("tests/objectives/test_sparse.py"),
            Selected("tests/engine/test_blocks.py", "storage"),
        )
    ),
    "dualopt/objectives/local_problem.py": Judges(
        (
            Selected("dualopt/objectives/local_problem.py"),
            Selected("tests/objectives/test_local_problem.py"),
            Selected("tests/objectives/test_scales.py"),
            Selected("tests/methods/test_oracle.py"),
            Selected("tests/solvers/test_solutions.py"),
        )
    ),
    **{
        f"dualopt/problem/inputs/{module}.py": Judges(
            (
                Selected(f"dualopt/problem/inputs/{module}.py"),
                Selected("tests/problem/inputs/test_good_inputs.py"),
                Selected("tests/problem/inputs/test_bad_inputs.py"),
            )
        )
        for module in ("__init__", "_clients", "_features", "_frames", "_labels", "_values")
    },
    **{
        f"dualopt/app/estimators/{name}.py": Judges(
            (
                Selected(f"dualopt/app/estimators/{name}.py"),
                Selected("tests/app/estimators/test_parts.py"),
                Selected("tests/app/estimators/test_in_sklearn.py"),
                Selected("tests/app/estimators/test_same_solutions.py"),
                Selected("tests/app/estimators/test_offsets.py"),
                Selected("tests/app/estimators/test_weights_and_penalties.py", "^(?!.*lasso_of_two)"),
            )
        )
        for name in ("_base", "classifier", "regressor")
    },
    **{
        f"dualopt/spec/{name}.py": Judges(
            (
                Selected(f"dualopt/spec/{name}.py"),
                Selected("tests/spec/test_spec.py"),
                Selected("tests/engine/test_wire.py", "words"),
            )
        )
        for name in ("_grammar", "_kinds", "_spec")
    },
    "dualopt/methods/_support.py": Judges(
        (Selected("dualopt/methods/_support.py"), Selected("tests/methods/test_support.py"))
    ),
    "dualopt/methods/oracle.py": Judges(
        (
            Selected("dualopt/methods/oracle.py"),
            Selected("tests/methods/test_oracle.py"),
            Selected("tests/engine/test_rounds.py"),
        )
    ),
}

UNJUDGED = {  # files that compute and have no mutants here, and why
    f"dualopt/engine/{name}.py": "their tests start processes with mpiexec, which a mutant in memory does not reach"
    for name in ("_mpi_communicator", "_mpi_wire", "_mpi_words", "mpi")
}
UNJUDGED["dualopt/objectives/_kernels.py"] = (
    "Numba compiles its functions, whose statements cannot say that they are run, and without it none of its tests runs"
)


def judges(file: str) -> Judges:
    """Return what judges the mutants of a file; tests in files that do not exist are left out."""
    try:
        found = TABLE[file]
    except KeyError:
        raise ValueError(f"file must be one of those in tests/mutate/mapping.py, not {file!r}.") from None
    return found._replace(tests=tuple(tests for tests in found.tests if (ROOT / tests.path).exists()))


def files() -> list[str]:
    """Return the files that have a mapping."""
    return [file for file in TABLE if (ROOT / file).exists()]


def mathematics() -> list[str]:
    """Return the files that compute: those of the methods, what they are made of, and what is said about them."""
    rooms = ("methods", "objectives", "solvers", "losses", "regularisers", "engine", "problem/preprocessing")
    rooms += ("lab/proofs", "lab/verification", "app/estimators")
    paths = [path for room in rooms for path in (ROOT / "dualopt" / room).rglob("*.py")]
    of_runs = ("certificates", "cuts", "divergence", "inference", "_inference", "_covariances", "_tails", "reference")
    of_runs += ("auto", "costs", "recommendation", "rules")
    names = (*(f"runs/{name}.py" for name in of_runs), "federation/preparing.py", "lab/rates.py")
    paths += [ROOT / "dualopt" / name for name in names]
    found = sorted(str(path.relative_to(ROOT)) for path in paths if path.name != "__init__.py")
    others = {
        f"dualopt/lab/{name}.py" for name in ("verification/instances", "verification/pictures", "proofs/pictures")
    }
    return [file for file in found if file not in others]
