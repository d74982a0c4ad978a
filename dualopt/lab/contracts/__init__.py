"""What every algorithm, loss, data set and so on promises, as tests that run on one of a user's own.

::

    python -m dualopt.lab.contracts --algorithm my_method.py:Damped

Needs pytest. ``test_algorithms.py`` and the others hold the tests, each under the promise that it is about; this
package tests its own classes with the same functions. The options ``--algorithm``, ``--loss``, ``--regulariser``,
``--partition``, ``--compressor``, ``--preparation``, ``--objective``, ``--data``, ``--solver`` and ``--claim`` may be
repeated, and whatever else is given goes to pytest.

What fails is said in one line for each reason (``report.py``). Checks are of two tiers, with NumPy's arrays and with
those of every other library of the Array API standard; ``--tier numpy`` asks for the first alone.
"""

TIERS = {"numpy": "NumPy", "array-api": "array API"}
"""With whose arrays a plug-in works: NumPy's alone, or those of every library of the Array API standard."""
