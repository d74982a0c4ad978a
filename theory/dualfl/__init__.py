"""The theorems of the DualFL paper, its numbered statements, and the claims that stand for them."""

PAPER = "Park and Xu, DualFL: a duality-based federated learning algorithm"

CONJUGATES = (
    "Conjugates are computed from their definition, by Newton's method, for which g_j must be smooth and nu below mu;"
    " half of it stands for all of these."
)

# In the order of the paper: the claims of a statement, perhaps with the special case that they check and why no
# more, or why none does.
STATEMENTS: dict[str, str | tuple[str, str, str]] = {
    "Proposition 3.1": ("proposition_3_1", "smooth losses, nu = mu/2", CONJUGATES),
    "Equation (3.4)": "momentum_3_4",
    "Equation (3.6)": (
        "gap_3_6, d2_infinite_gap",
        "smooth losses",
        "Residuals are gradients, and without a bound L of curvatures the lower bound is zero.",
    ),
    "Theorem 3.2": "theorem_3_2, theorem_3_2_inexact, d5_absolute_tolerances",
    "Theorem 3.3": "theorem_3_3, theorem_3_3_inexact, d3_range_of_rho",
    "Theorem 3.4": (
        "theorem_3_4",
        "the averaged subgradient method, in exact rounds",
        "The paper means any method of optimal order, and names no constants; this one has known ones, but no dual"
        " point, so that rounds of its own run would have no gap (3.6).",
    ),
    "Theorem 3.5": (
        "theorem_3_5, theorem_3_5_target",
        "Nesterov's method with constant momentum",
        "The paper means any method of optimal order, and names no constants; this one has known ones.",
    ),
    "Theorem 4.1": "theorem_4_1, theorem_4_1_inexact",
    "Theorem 4.2": "theorem_4_2, theorem_4_2_inexact, theorem_4_2_rounds",
    "Table 1": (
        "dualfl_table_1",
        "the column of rounds, on quadratics; RandProx as Scaffnew",
        "The paper hides all constants, and a power of kappa needs problems of many condition numbers with known"
        " solutions.",
    ),
    "Proposition 6.1": (
        "proposition_6_1",
        "F quadratic, G a sum of absolute values",
        "It is a theorem of Rockafellar's, checked where both problems are solved by hand; that of the clients is"
        " relation_6_5.",
    ),
    "Equation (6.4)": "conjugates_of_dual_points, dual_certificate, gradient_certificate",
    "Equation (6.5)": (
        "relation_6_5",
        "nu = mu/2, rho = 0",
        "It is about the solution, where rho has no part; conjugates are computed from their definition, for nu < mu.",
    ),
    "Proposition 6.2": (
        "proposition_6_2",
        "quadratics, errors of order n^-4.1",
        "Algorithm 2 with errors of a given size is run in closed form, which quadratics have; smaller errors have"
        " smaller bounds.",
    ),
    "Proposition 6.3": (
        "proposition_6_3",
        "quadratics, errors that are a geometric sequence",
        "Algorithm 2 with errors of a given size is run in closed form, which quadratics have.",
    ),
    "Lemma 6.4": ("lemma_6_4", "smooth losses, nu = mu/2", CONJUGATES),
    "Lemma 6.5": (
        "lemma_6_5, sum_zeta, d1_auxiliary_sequence",
        "quadratics with exact local solutions",
        "Algorithm 2 is run on the dual problem itself, whose steps quadratics have in closed form.",
    ),
    "Equations (6.13), (6.14)": (
        "relations_6_13_and_6_14",
        "smooth losses",
        "(6.14) needs L, and dual errors are those of conjugates that are computed from their definition.",
    ),
    "Remark 7.1": "It says which methods the experiments leave out, which is nothing to check.",
    "Table 2": "It lists tuned hyperparameters, which is nothing to check; d3_range_of_rho says that its rho may lie"
    " outside the range of Theorem 3.3.",
    "Section 7": (
        "d4_rows_of_cifar10",
        "the number of rows of a data set",
        "The rest are experiments, which figures show and claims do not.",
    ),
}
