"""Wrong variants of the methods: what the claims must notice, and what a teacher can let a class find.

Tables of edits, by a few words: each is a function that takes a case and returns it with one thing wrong, and names the
claims that must notice it (``theory/MUTATIONS.md`` has all verdicts).

``dualfl``, ``optimized_dualfl``
    DualFL and OptimizedDualFL; ``dualfl.FISTA`` are those of the method behind it, on cases of Proposition 6.2.
``fedpd``
    FedPD; ``fedpd.LOCAL`` are those of the local steps of FedAvg, on cases of its own section of that paper.
``feddyn``
    FedDyn.
``afedpd``
    A-FedPD and FedADMM, and methods of an identity.
``splitting``
    Scaffnew, FedSplit, FedDR and 5GCS.
``baselines``
    SCAFFOLD, FedAvg, FedProx, gradient descent, L-BFGS and Newton-CG.
``frontier``, ``scales``
    What goes beyond the papers.

A row is an edit of a step, ``edit(DualFL, "server", "Message(mean, beta", "Message(mean, 0.0", caught=...)``, whose
text must occur exactly once, or the row is an error. Others put a step or parameters in the place of the right ones, or
change what is known of a case (``theory/mutations/_edits.py``).

Examples
--------
DualFL without momentum does not have the rate of Theorem 3.3. ``check_assumptions=False`` lets the claim look although
a wrong variant is outside the theorem:

>>> from dualopt.methods import DualFL
>>> from dualopt.lab.claims import check
>>> from theory import Case, mutations, valleys
>>> from theory.dualfl.exact_solutions import theorem_3_3
>>> case = Case.of(DualFL(), valleys(4, kappa=32.0), rounds=40)
>>> check(theorem_3_3, case).verdict
'holds'
>>> dropped = mutations.dualfl.MUTATIONS["momentum dropped"]
>>> check(theorem_3_3, dropped(case), check_assumptions=False).verdict, "theorem_3_3" in dropped.caught
('violated', True)
"""

from theory.mutations import afedpd, baselines, dualfl, feddyn, fedpd, frontier, optimized_dualfl, scales, splitting

__all__ = ["afedpd", "baselines", "dualfl", "feddyn", "fedpd", "frontier", "optimized_dualfl", "scales", "splitting"]
