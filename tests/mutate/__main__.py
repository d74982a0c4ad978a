"""The program ``python -m tests.mutate``."""

from __future__ import annotations

import os

if __name__ == "__main__":
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):  # before NumPy: its threads do not survive a fork
        os.environ.setdefault(name, "1")
    from tests.mutate.program import app

    app(prog_name="python -m tests.mutate")
