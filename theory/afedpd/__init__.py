"""The theorems of the A-FedPD paper, the dual drift that it names, and the claims that stand for its statements."""

PAPER = "Sun, Shen and Tao, A-FedPD: Aligning dual-drift is all federated primal-dual learning needs"

# In the order of the paper: the claims of a statement, perhaps with the special case that they check, or why none does.
STATEMENTS: dict[str, str | tuple[str, str]] = {
    "(6), FedADMM with g": ("afedpd_equation_6, a11_weight_of_the_server", "quadratics, all clients"),
    "Section 3.2": ("fedadmm_dual_drift", "FedADMM on quadratics with exact local solutions"),
    "Theorem 1": (
        "afedpd_theorem_1, afedpd_theorem_1_inexact, afedpd_theorem_1_partial, afedpd_descent,"
        " afedpd_descent_inexact, afedpd_range_of_rho, a1_range_of_rho, a3_one_active_client, a4_constant_of_theorem_1,"
        " a9_error_term",
        "P = N and rho > 2L; with P < N quadratics, exact local solutions and maps that contract",
    ),
    "Remark 1.1": ("afedpd_remark_1_1", "P = N"),
    "Remark 1.2": "afedpd_remark_1_2",
    "Theorem 2": (
        "afedpd_theorem_2, a6_larger_root, a7_constant_of_the_recursion",
        "the bound in two to four rounds of one of two clients, one or two local steps",
    ),
    "Remark 2.1": "afedpd_remark_2_1, a10_sign_of_a_step",
    "Lemma 1": "afedpd_lemma_1",
    "Lemma 2": "afedpd_lemma_2, a2_gradient_in_lemma_2, a8_idle_clients",
    "Lemma 3": "afedpd_lemma_3",
    "Lemma 4": ("afedpd_lemma_4, a5_draws_of_a_round", "two clients, of which one is active"),
    "Lemma 5": "afedpd_lemma_5",
    "Lemma 6": "afedpd_lemma_6",
    "Appendix B.3.2": "afedpd_recursion",
}
