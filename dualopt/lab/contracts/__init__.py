"""What every algorithm, loss, claim and so on promises, as tests that run on one of a user's own.

::

    python -m dualopt.lab.contracts --algorithm my_method.py:Damped

Needs pytest. ``test_algorithms.py`` and the others hold the tests, each under the promise that it is about; this
package tests its own classes with the same functions. The options ``--algorithm``, ``--loss``, ``--regulariser``,
``--solver``, ``--compressor``, ``--objective``, ``--partition`` and ``--claim`` may be repeated, and whatever else is
given goes to pytest.
"""
