"""Exact worst cases of the methods, by semidefinite programming (needs PEPit and Clarabel)."""
