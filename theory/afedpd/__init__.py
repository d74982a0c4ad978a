"""The theorems of the A-FedPD paper, the dual drift that it names, and the claims that stand for its statements."""

PAPER = "Sun, Shen and Tao, A-FedPD: Aligning dual-drift is all federated primal-dual learning needs"

# In the order of the paper: the claims of a statement, or why it has none.
STATEMENTS: dict[str, str] = {
    "Section 3.2": "fedadmm_dual_drift",
    "Theorem 1": "afedpd_theorem_1, afedpd_theorem_1_inexact, afedpd_theorem_1_partial, afedpd_descent,"
    " afedpd_descent_inexact, afedpd_range_of_rho, a1_range_of_rho, a3_one_active_client, a4_constant_of_theorem_1,"
    " a9_error_term",
    "Remark 1.1": "afedpd_remark_1_1",
    "Remark 1.2": "afedpd_remark_1_2",
    "Theorem 2": "afedpd_theorem_2, a6_larger_root, a7_constant_of_the_recursion",
    "Remark 2.1": "afedpd_remark_2_1, a10_sign_of_a_step",
    "Lemma 1": "afedpd_lemma_1",
    "Lemma 2": "afedpd_lemma_2, a2_gradient_in_lemma_2, a8_idle_clients",
    "Lemma 3": "afedpd_lemma_3",
    "Lemma 4": "afedpd_lemma_4, a5_draws_of_a_round",
    "Lemma 5": "afedpd_lemma_5",
    "Lemma 6": "afedpd_lemma_6",
    "Appendix B.3.2": "afedpd_recursion",
}
