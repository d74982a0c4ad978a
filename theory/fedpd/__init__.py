"""The theorems of the FedPD paper: the journal's version, and the first one on arXiv ("v1"), which says more.

The text of the first version that is available has lost its formulas. Its statements are those to which its proofs
lead; no constant of its Theorem 1 and of its Lemmas 5 to 9 can be read. ``STATEMENTS`` lists both versions in their
order: a statement's claims, errata included, perhaps with the special case that they check and why no more,
or why it has none.
"""

PAPER = "Zhang, Hong, Dhople, Yin and Liu, FedPD: a federated learning framework with adaptivity to non-iid data"

OWN = ("with constants that are derived here", "The text that is available has lost its formulas: none can be read.")

STATEMENTS: dict[str, str | tuple[str, str, str]] = {
    "A3, (3)": (
        "fedpd_assumption_3",
        "which (G, D) quadratics admit",
        "It names a class of functions; the least D of one of them is known in closed form for quadratics.",
    ),
    "Table I": "It sets orders from several papers side by side; FedPD's own are Theorems 1 to 3 with Remarks 3 to 5.",
    "Claim II.1": "zero_chain_rounds",
    "Remark 1": "It names related proofs, and says without a bound that clients which agree need few rounds.",
    "Claim II.2": "fedavg_constant_step",
    "Remark 2": "fedavg_constant_step, fedavg_biased_point",
    "Oracle I, (8)": "fedpd_equation_8",
    "Oracle I, (9)": (
        "fedpd_equation_9, p13_constant_steps",
        "rows of a client with one Hessian",
        "Expectations over many draws are exact for quadratics, whose rows have a bounded variance only if they share"
        " their Hessian.",
    ),
    "Theorem 1": "fedpd_theorem_1, fedpd_first_version_theorem_1, fedpd_large_eta, p1_scale_of_constants,"
    " p8_initial_duals",
    "Theorem 2": (
        "fedpd_theorem_2, p7_dimension_of_gamma",
        "the order 1/T",
        "The paper says that there is a constant, and not which.",
    ),
    "Remark 3": "fedpd_remark_3, p11_halves_of_remark_3",
    "Remark 4": "fedpd_remark_4",
    "A4, (11)": "fedpd_assumption_4, p9_forms_of_a4",
    "Theorem 3": (
        "fedpd_theorem_3, fedpd_first_version_theorem_1, p5_expectations_in_theorem_3",
        "below the start on clients with one Hessian; elsewhere the bound is empty",
        "A4 excludes quadratics with several Hessians, and on other clients an exact expectation over the coins of many"
        " rounds takes all their histories.",
    ),
    "Remark 5": "fedpd_table_iii, p11_halves_of_remark_3",
    "Table III": "fedpd_table_iii",
    "Appendix A": "fedavg_constant_step, p4_factors_of_fedavg",
    "(20), (28), (29)": "fedpd_equation_28",
    "Lemma 1": "fedpd_lemma_1",
    "Lemma 2": "fedpd_lemma_2, p2_matrix_of_lemma_2, p12_errors_of_samples",
    "Lemma 3": "fedpd_lemma_3",
    "Lemma 4": "fedpd_lemma_4, p3_factor_of_lemma_4",
    "(26), (27), (30)": "fedpd_equation_26, p10_two_errors",
    "Theorem 4": "zero_chain_rounds, p6_split_of_the_chain",
    "v1 A5, (6)": "fedpd_assumption_4, p9_forms_of_a4",
    "v1 Claim 2.1": "zero_chain_rounds",
    "v1 Remark 1": "It names related proofs, and says without a bound that clients which agree need few rounds.",
    "v1 Claim 2.2": "fedavg_constant_step",
    "v1 Remark 2": "fedavg_constant_step, fedavg_biased_point",
    "v1 Theorem 1": ("fedpd_first_version_theorem_1, fedpd_theorem_1, fedpd_theorem_3", *OWN),
    "v1 Remark 3": "fedpd_remark_3, fedpd_table_iii",
    "v1 Table 2": "fedpd_table_iii",
    "v1 Remark 4": "fedpd_remark_3, fedpd_equation_8, fedpd_equation_9, p13_constant_steps",
    "v1 Appendix A, logistic regression": "fedpd_logistic_dissimilarity",
    "v1 Appendix A, hyperbolic tangent": "The loss is not written out in the text that is available, and the package"
    " has no such loss; the bound is that of logistic losses with slopes in an interval of another length.",
    "v1 Appendix A, linear regression": "fedpd_quadratic_dissimilarity",
    "v1 Lemma 1": "zero_chain_scalars, zero_chain_infimum, zero_chain_smoothness",
    "v1 Lemma 2": "zero_chain_infimum, zero_chain_smoothness",
    "v1 Lemma 3": "zero_chain_gradient",
    "v1 Lemma 4": "zero_chain_support",
    "v1 Theorem 2": "zero_chain_rounds, p6_split_of_the_chain",
    "v1 Lemma 5": ("fedpd_lemma_5", *OWN),
    "v1 Claim D.1": "fedpd_claim_d_1",
    "v1 Claim D.2": "fedavg_vanishing_step",
    "v1 Lemma 6": ("fedpd_lemma_6", *OWN),
    "v1 Lemma 7": ("fedpd_lemma_7, p12_errors_of_samples", *OWN),
    "v1 Lemma 8": ("fedpd_lemma_8", *OWN),
    "v1 Lemma 9": ("fedpd_lemma_9", *OWN),
    "v1 Appendix G": "The text that is available ends before it; its result on Oracle II is Theorem 2 of the journal.",
}
