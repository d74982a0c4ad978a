"""Every row of the tables of wrong variants fits, and is noticed by the claims that it names."""

from __future__ import annotations

import pytest

from dualopt.methods import DualFL, FedPD
from tests.theory.mutation_table import TABLES, Table, answers, lines, verdict
from theory.dualfl import local_steps
from theory.mutations._edits import edit, edited

ROWS = [
    pytest.param(table, variant, name, id=f"{table.title}: {variant}-{name}")
    for table in TABLES.values()
    for variant, row in table.variants.items()
    for name in sorted(row.caught | row.emptied)
]
EDITS = [
    pytest.param(row.wrong, id=f"{table.title}: {variant}")
    for table in TABLES.values()
    for variant, row in table.variants.items()
    if getattr(row, "wrong", None) is not None
]


@pytest.mark.parametrize("wrong", EDITS)
def test_every_row_fits_the_method_as_it_is(wrong) -> None:
    assert issubclass(wrong(), object)


@pytest.mark.parametrize(("table", "variant", "name"), ROWS)
def test_wrong_variants_are_caught(table: Table, variant: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_steps, "LIMIT", 1000)  # wrong variants go on for ever
    wanted = "violated" if name in table.variants[variant].caught else "vacuous"
    assert any(answer == wanted for answer in answers(table, variant, name))


def test_a_row_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(LookupError, match=r"'Server\(mode\)' must occur once in FedPD.server, not 0 times"):
        edited(FedPD, "server", "Server(mode)", "Server(mean)")
    with pytest.raises(LookupError, match=r"'dual' must occur once in FedPD.local, not 6 times"):
        edited(FedPD, "local", "dual", "theta")


def test_a_row_tells_what_catches_a_variant() -> None:
    table = TABLES["DualFL"]
    assert verdict(table, "momentum dropped", "theorem_3_3") == "violated"
    head, rule, *_ = lines(table._replace(variants={}))
    assert (head, rule) == ("| DualFL |  |", "|---|")


def test_an_edit_that_changes_nothing_is_not_caught() -> None:
    """What catches a variant is the text that it changes, not the way in which it is put into the case."""
    table = TABLES["DualFL"]
    same = edit(DualFL, "server", "Message(mean, beta", "Message(mean, beta", caught="")
    assert verdict(table._replace(variants={"same": same}), "same", "theorem_3_3") == "holds"
