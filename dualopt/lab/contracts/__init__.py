"""What every algorithm, loss and solver promises, as tests that run on a class of one's own.

::

    python -m dualopt.lab.contracts --algorithm my_method.py:Damped

Needs pytest. ``test_algorithms.py`` and the others hold the tests, each under the promise that it is about; this
package tests its own classes with the same functions. The options ``--algorithm``, ``--loss`` and ``--solver`` may be
repeated, and whatever else is given goes to pytest.
"""
