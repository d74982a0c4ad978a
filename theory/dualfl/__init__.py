"""The theorems of the DualFL paper.

Proposition 6.1 is the Fenchel-Rockafellar duality theorem and has no claim of its own: relation (6.5) is its form here.
"""

PAPER = "Park and Xu, DualFL: a duality-based federated learning algorithm"
