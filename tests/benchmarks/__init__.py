"""Benchmarks against other packages: ``pytest tests/benchmarks --benchmark-only -s``, on a quiet machine.

They run on one thread. MNIST is used where ``DUALOPT_DATA_HOME`` names a folder that holds it.
"""
