"""``python -m theory.proofs [NAME]...`` writes proofs anew, all of them when none is named."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from dualopt.lab.proofs import prove
from theory.proofs import FOLDER, SETTINGS


def main(names: Sequence[str]) -> None:
    """Prove, and write."""
    for name in names or SETTINGS:
        what = SETTINGS[name]
        rate = prove(
            what.method,
            mu=1.0,
            L=what.L,
            clients=what.clients,
            participation=what.participation,
            memory=what.memory,
        )
        (FOLDER / f"{name}.json").write_text(rate.proof_text(), encoding="utf-8")
        print(f"{name}: {rate}")


if __name__ == "__main__":
    main(sys.argv[1:])
