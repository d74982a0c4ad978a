"""Preparations of this package keep the contract, ``dualopt/lab/contracts/test_preparations.py``."""

from dualopt.lab.contracts.test_preparations import *  # noqa: F403
