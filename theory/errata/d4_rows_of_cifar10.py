"""D4: the number of rows of CIFAR-10 in Section 7 of the DualFL paper."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dualopt.claims import Inequality, claim
from dualopt.data import available
from theory._claims import ExpectedVerdict, Form

ROWS = {True: 60_000, False: 50_000}


def d4_rows_of_cifar10_cases(quick: bool) -> Iterator[ExpectedVerdict]:
    """Yield the data set as the loader describes it."""
    known = available()["cifar10"]
    yield ExpectedVerdict(Form(known, printed=True, note="n = 60,000"), "violated")
    yield ExpectedVerdict(Form(known, printed=False, note="n = 50,000"))


@claim(
    source="DualFL Section 7",
    statement=r"The training set of CIFAR-10 has n rows. Printed: n = 60,000. Corrected: n = 50,000.",
    corrects="Section 7",
    cases=d4_rows_of_cifar10_cases,
)
def d4_rows_of_cifar10(form: Form) -> Iterator[Inequality]:
    """Compare with the size that the data set is known by."""
    size = re.search(r"(\d+) x 3072", form.case)
    yield Inequality(0, abs(float(size[1] if size else "nan") - ROWS[form.printed]), 0.0, "error in rows")
