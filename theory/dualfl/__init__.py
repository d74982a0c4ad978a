"""The theorems of the DualFL paper, its numbered statements, and the claims that stand for them."""

PAPER = "Park and Xu, DualFL: a duality-based federated learning algorithm"

# In the order of the paper: the claims of a statement, or why it has none.
STATEMENTS: dict[str, str] = {
    "Proposition 3.1": "proposition_3_1",
    "Equation (3.4)": "momentum_3_4",
    "Equation (3.6)": "gap_3_6, d2_infinite_gap",
    "Theorem 3.2": "theorem_3_2, theorem_3_2_inexact, d5_absolute_tolerances",
    "Theorem 3.3": "theorem_3_3, theorem_3_3_inexact, d3_range_of_rho",
    "Theorem 3.4": "theorem_3_4",
    "Theorem 3.5": "theorem_3_5, theorem_3_5_target",
    "Theorem 4.1": "theorem_4_1",
    "Theorem 4.2": "theorem_4_2, theorem_4_2_rounds",
    "Proposition 6.1": "proposition_6_1",
    "Equation (6.4)": "conjugates_of_dual_points, dual_certificate, gradient_certificate",
    "Equation (6.5)": "relation_6_5",
    "Proposition 6.2": "proposition_6_2",
    "Proposition 6.3": "proposition_6_3",
    "Lemma 6.4": "lemma_6_4",
    "Lemma 6.5": "lemma_6_5, sum_zeta, d1_auxiliary_sequence",
    "Remark 7.1": "It says which methods the experiments leave out, which is nothing to check.",
    "Section 7": "d4_rows_of_cifar10",
}
