"""The theorems of the FedDyn paper.

Lemma 6 is the triangle inequality for squares and is no claim here. The rates of Theorem 1 are those of
Theorems 2 to 4 at three values of alpha, which are among their cases.
"""

PAPER = "Acar et al., Federated learning based on dynamic regularization (FedDyn)"
