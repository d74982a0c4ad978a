"""The examples of docs/engines.md do what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from dualopt.engine import Host, RemoteClients
from dualopt.methods import FedDyn
from dualopt.runs.recording import run

PAGE = (Path(__file__).parents[2] / "docs" / "engines.md").read_text()


def test_the_examples_run(capsys) -> None:
    first, second = re.findall(r"^```python\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)
    names: dict = {}
    exec(first, names)
    assert capsys.readouterr().out == "True True\n"
    exec(second, names)
    f = names["f"]
    engine = names["Loop"]([Host(f.select(range(3))), Host(f.select(range(3, 8)))])
    found = run(FedDyn(), RemoteClients(engine), rounds=5)
    np.testing.assert_array_equal(found.theta, names["whole"].theta)


def test_what_the_page_names_is_there() -> None:
    for path in re.findall(r"`((?:tests|dualopt)/[\w/.]+\.py)`", PAGE):
        assert (Path(__file__).parents[2] / path).exists(), path
