"""The proofs of ``theory/proofs``: each is one, of the code as it is, and no weaker than the theorem."""

from __future__ import annotations

import json

import pytest

from dualopt.lab.proofs._promised import claimed_factor
from dualopt.lab.proofs._setting import Setting
from dualopt.spec import Spec
from theory._claims import discover
from theory._report import table
from theory.proofs import FOLDER, SETTINGS, checked, proved_exactly


def test_every_file_is_listed_with_a_claim_that_there_is() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == set(SETTINGS)
    assert {what.claim for what in SETTINGS.values() if what.claim} <= set(discover())


@pytest.mark.parametrize("name", SETTINGS)
def test_proofs_are_of_the_code_as_it_is(name: str) -> None:
    what, factor = SETTINGS[name], checked(name)
    setting = Setting.of(what.method, 1.0, what.L, what.clients, what.participation)
    statement = json.loads((FOLDER / f"{name}.json").read_text())["statement"]
    assert statement["method"] == Spec.of(setting.algorithm, full=True).to_json()
    assert {c["mu"] for c in statement["clients"]} == {"1"}
    assert {c["L"] for c in statement["clients"]} == {str(int(what.L))}
    assert len(statement["clients"]) == what.clients
    assert statement["late"] == name.endswith("_late")
    theorem = claimed_factor(setting)
    if what.claim and not statement["late"]:
        assert theorem is not None
    assert theorem is None or factor <= theorem + 3e-5


def test_a_claim_says_what_is_proved_exactly() -> None:
    row = table(discover()["sampled_feddyn"], [])
    found = proved_exactly("sampled_feddyn")
    assert len(found) == 2
    assert all(f"proved exactly: {name}, {float(rho):.5f}" in row["verdicts"] for name, rho in found.items())
    assert table(discover()["theorem_3_2"], [])["verdicts"] == ""
