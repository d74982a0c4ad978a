"""D4: the number of rows of CIFAR-10 in Section 7 of the DualFL paper."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dualopt.claims import Claim, Comparison
from dualopt.data import available
from theory._claims import Expectation
from theory.errata._form import Form

ROWS = {True: 60_000, False: 50_000}


def compare(form: Form) -> Iterator[Comparison]:
    """Compare with the size that the data set is known by."""
    size = re.search(r"(\d+) x 3072", form.case)
    yield Comparison(0, abs(float(size[1] if size else "nan") - ROWS[form.printed]), 0.0, "error in rows")


CLAIM = Claim(
    name="d4_rows_of_cifar10",
    source="DualFL Section 7",
    statement=r"The training set of CIFAR-10 has n rows. Printed: n = 60,000. Corrected: n = 50,000.",
    compare=compare,
)


def cases(quick: bool) -> Iterator[Expectation]:
    """Yield the data set as the loader describes it."""
    known = available()["cifar10"]
    yield Expectation(Form(known, printed=True, note="n = 60,000"), "violated")
    yield Expectation(Form(known, printed=False, note="n = 50,000"))
