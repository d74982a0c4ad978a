"""The theorems of the A-FedPD paper, the dual drift that it names, and the claims that stand for its statements."""

PAPER = "Sun, Shen and Tao, A-FedPD: Aligning dual-drift is all federated primal-dual learning needs"

# In the order of the paper: the claims of a statement, perhaps with the special case that they check and why no
# more, or why none does.
STATEMENTS: dict[str, str | tuple[str, str, str]] = {
    "(6), FedADMM with g": (
        "afedpd_equation_6, a11_weight_of_the_server",
        "quadratics, all clients",
        "What is checked is the weight of the server's step, which decides where a run ends; quadratics have that in"
        " closed form.",
    ),
    "Section 3.2": (
        "fedadmm_dual_drift",
        "FedADMM on quadratics with exact local solutions",
        "The relation is one of the server's step, for any losses; where it leads is known in closed form for these.",
    ),
    "Theorem 1": (
        "afedpd_theorem_1, afedpd_theorem_1_inexact, afedpd_theorem_1_partial, afedpd_descent,"
        " afedpd_descent_inexact, afedpd_range_of_rho, a1_range_of_rho, a3_one_active_client, a4_constant_of_theorem_1,"
        " a9_error_term",
        "P = N and rho > 2L; with P < N quadratics, exact local solutions and maps that contract",
        "It is false for some smaller rho, and with one active client (A1, A3); for which rho it holds with idle"
        " clients is not known, and depends on N/P.",
    ),
    "Remark 1.1": (
        "afedpd_remark_1_1",
        "P = N",
        "It follows from Theorem 1, which has proved constants for all clients alone.",
    ),
    "Remark 1.2": "afedpd_remark_1_2",
    "Theorem 2": (
        "afedpd_theorem_2, a6_larger_root, a7_constant_of_the_recursion",
        "the bound in two to four rounds of one of two clients, one or two local steps",
        "Expectations over clients and rows are exact, and the number of histories grows exponentially with all three.",
    ),
    "Remark 2.1": "afedpd_remark_2_1, a10_sign_of_a_step",
    "Lemma 1": "afedpd_lemma_1",
    "Lemma 2": "afedpd_lemma_2, a2_gradient_in_lemma_2, a8_idle_clients",
    "Lemma 3": "afedpd_lemma_3",
    "Lemma 4": (
        "afedpd_lemma_4, a5_draws_of_a_round",
        "two clients, of which one is active",
        "Expectations over clients and rows are exact, and the number of histories grows exponentially with rounds.",
    ),
    "Lemma 5": "afedpd_lemma_5",
    "Lemma 6": "afedpd_lemma_6",
    "Appendix B.3.2": "afedpd_recursion",
}
