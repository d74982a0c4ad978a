"""What every algorithm must satisfy; a new file in ``dualopt/methods`` is tested without editing a list.

The contract itself is in ``dualopt/lab/contracts/test_algorithms.py``, where it serves methods in files of users' own,
too.
"""

from __future__ import annotations

import sys

import numpy as np

from dualopt.lab.contracts.test_algorithms import (
    pytest_generate_tests,
    rows_are_contiguous,
    test_array_libraries_agree,
    test_equal_clients_are_one_client,
    test_is_deterministic,
    test_it_needs_no_arguments_and_supports_what_there_is,
    test_methods_that_say_they_are_biased_are,
    test_parameters_left_open_must_be_filled_in,
    test_partial_participation_reaches_the_minimiser,
    test_permuting_clients_permutes_states,
    test_reaches_the_independent_solutions,
    test_single_precision_stays_single,
    test_stacked_is_one_process_per_client,
    test_states_lie_client_after_client,
    test_stays_at_the_optimum,
    test_survives_pickling,
    test_uploads_have_one_row_per_client,
    test_what_a_method_does_not_support_is_refused,
    test_writes_to_nothing_that_it_is_handed,
)
from dualopt.methods import DualFL

__all__ = [
    "pytest_generate_tests",
    "test_array_libraries_agree",
    "test_equal_clients_are_one_client",
    "test_is_deterministic",
    "test_it_needs_no_arguments_and_supports_what_there_is",
    "test_methods_that_say_they_are_biased_are",
    "test_parameters_left_open_must_be_filled_in",
    "test_partial_participation_reaches_the_minimiser",
    "test_permuting_clients_permutes_states",
    "test_reaches_the_independent_solutions",
    "test_single_precision_stays_single",
    "test_stacked_is_one_process_per_client",
    "test_states_lie_client_after_client",
    "test_stays_at_the_optimum",
    "test_survives_pickling",
    "test_uploads_have_one_row_per_client",
    "test_what_a_method_does_not_support_is_refused",
    "test_writes_to_nothing_that_it_is_handed",
]


def test_clients_side_by_side_are_seen(monkeypatch):
    monkeypatch.setattr(sys.modules["dualopt.methods.dualfl"], "zeros_like", np.zeros_like)
    assert not rows_are_contiguous(DualFL)
