"""The theorems of the FedDyn paper.

``STATEMENTS`` lists them in the order of the paper: a statement's claims, errata included, perhaps with the special
case that they check and why no more, or why it has none.
"""

PAPER = "Acar et al., Federated learning based on dynamic regularization (FedDyn)"

FEW = "with P < N, on other clients than quadratics: few rounds, where the bound is still empty"
SUM = (
    "The bound says nothing before many rounds, and expectations over so many cohorts are exact for quadratics alone;"
    " on other clients Lemma {}, which the theorem sums, is checked in expectation from round to round."
)

STATEMENTS: dict[str, str | tuple[str, str, str]] = {
    "Algorithm 1": "feddyn_equation_9, y1_parenthesis_of_h",
    "(1), (2)": "feddyn_equation_9",
    "(3), key property of Algorithm 1": "feddyn_equation_9, y3_mean_of_the_gradients",
    "FedDyn vs. SCAFFOLD": (
        "feddyn_scaffold",
        "the numbers sent, and why the server's part of the linear term is",
        "The rest says in words why one method may be faster than the other.",
    ),
    "Theorem 1": (
        "feddyn_theorem_1",
        "quadratics",
        "It follows from Theorems 2 to 4, and says something after as many rounds as these.",
    ),
    "Appendix A.4": "identity_full_participation",
    "Definition 1, (4), (5), (6)": "feddyn_smoothness",
    "Theorem 2": ("feddyn_theorem_2", FEW, SUM.format(1)),
    "(7), (8), (9)": "feddyn_equation_9",
    "Lemma 1": "feddyn_lemma_1",
    "Lemma 2": "feddyn_lemma_2",
    "Lemma 3": "feddyn_lemma_3",
    "Lemma 4": "feddyn_lemma_4",
    "Lemma 5": "feddyn_lemma_5",
    "Lemma 6": "feddyn_lemma_6",
    "Lemma 7": "feddyn_lemma_7",
    "Theorem 3": ("feddyn_theorem_3", FEW, SUM.format(8)),
    "Lemma 8": "feddyn_lemma_8",
    "(11)": "feddyn_smoothness",
    "Lemma 9": "feddyn_lemma_9",
    "Theorem 4": ("feddyn_theorem_4", FEW, SUM.format(10)),
    "Lemma 10": "feddyn_lemma_10, y2_gain_of_lemma_10",
    "Lemma 11": "feddyn_lemma_11",
    "Lemma 12": "feddyn_lemma_12",
    "End of B.3, other norms": "The paper says that the analysis extends to them and states nothing; the package has"
    " Euclidean norms only.",
}
