r"""How much of a small wrong change the tests and claims notice: ``python -m tests.mutate [FILE]...``.

Every file of the table in ``mapping.py`` is changed in one place at a time by the operators of ``operators.py``, and
each mutant is judged by the tests and claims that the table maps to the file, until one fails. Mutants that survive are
printed as diffs, and counted in ``SCORE.md``. A survivor is a missing test, code without effect, or an equivalent
program; the latter are explained once in ``equivalent.toml``, where an explanation of a mutant that is killed, or that
there is no more, is an error. Results are kept in ``.mutants/`` and used again until the source, or the tests, change:
a run that was cut off goes on. Continuous integration judges the few mutants of ``fixed.py``.

    python -m tests.mutate dualopt/methods/dualfl.py     # one file: a tenth of a second of one core for most mutants
    python -m tests.mutate --jobs 2 dualopt/methods      # a folder
    python -m tests.mutate --sample 40 dualopt/engine    # of each file forty mutants, drawn with a fixed seed
    python -m tests.mutate --toml dualopt/solvers        # survivors as entries of equivalent.toml
    python -m tests.mutate --missing                     # files without a row in SCORE.md, and rows with survivors

Why not mutmut or cosmic-ray? Their operators know Python and not the field: neither takes the active clients for all, a
state of before for that of after, or the mean for the sum. cosmic-ray starts a test program for each mutant, which
imports SciPy, CVXPY and the tests again (three seconds, where a fork takes a few hundredths of one), and writes mutants
into the working tree. Both judge by exit codes of one test command, while a file here has its own few tests and, in
``theory/``, claims that no test program runs.
"""
