"""Theorems that no paper at hand states: client sampling for FedDyn and FedSplit, and an accelerated sampled DualFL."""

PAPER = "Beyond the papers: theorems found with this package"
