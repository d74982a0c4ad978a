"""Theorems that no paper at hand states: client sampling for FedDyn and FedSplit, steps before the rounds, and more."""

PAPER = "Beyond the papers: theorems found with this package"
