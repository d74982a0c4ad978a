"""The theorems of the DualFL paper."""

PAPER = "Park and Xu, DualFL: a duality-based federated learning algorithm"
