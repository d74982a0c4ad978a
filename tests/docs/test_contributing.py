"""The method that CONTRIBUTING writes in a file outside the repository runs, is certified and draws itself."""

from __future__ import annotations

import importlib
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

from dualopt import Multinomial, iterate, linear_model, newton, run
from dualopt.methods import DualFL

ROOT = Path(__file__).parents[2]
(SOURCE,) = re.findall(r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL)


def test_the_page_is_short_and_runs_anywhere(tmp_path: Path, monkeypatch, capsys) -> None:
    assert sum(bool(line.strip()) for line in SOURCE.splitlines()) < 40
    (tmp_path / "dual_ascent.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    runpy.run_path("dual_ascent.py", run_name="__main__")
    status, certified = capsys.readouterr().out.split()
    assert status == "converged"
    assert 0 < float(certified) <= 1e-4
    assert (tmp_path / "dual_ascent.png").stat().st_size > 10_000


def test_the_method_is_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DualFL without momentum, in every iterate; the certificate bounds the error; no theorem is claimed."""
    (tmp_path / "dual_ascent.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    method = importlib.import_module("dual_ascent").DualAscent()
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 3)), rng.integers(0, 3, 60)
    f = linear_model(X, y, loss=Multinomial(classes=3), mu=0.1, clients=[range(5), range(5, 40), range(40, 60)])

    class WithoutMomentum(DualFL):
        def server(self, server, mean, round):
            server, message = super().server(server, mean, round)
            return server, message._replace(beta=0.0)

    own, ours = iterate(method, f), iterate(WithoutMomentum(rho=0.0), f)
    for _, a, b in zip(range(8), own, ours, strict=False):
        np.testing.assert_allclose(a.server.theta, b.server.theta, rtol=0.0, atol=1e-13)
    trace = run(method, f, rounds=60, tol=1e-6)
    assert trace.status == "converged"
    assert trace["certificate"][-1] >= trace["energy"][-1] - newton(f).energy
    assert method.guarantee(f).startswith("none")
