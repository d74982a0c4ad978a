"""What is asked of a method that cannot do it is refused, and nothing else is."""

from __future__ import annotations

import pytest

from dualopt.methods import DistributedNewtonCG, FedAvg, FedDR, FedDyn
from dualopt.methods._support import supported
from dualopt.spec import Spec


def test_nothing_is_asked_for_that_is_not_said() -> None:
    assert supported(Spec.parse("fedavg")) == FedAvg()
    assert supported(Spec.parse("distributed-newton-cg")) == DistributedNewtonCG()
    assert supported(Spec.parse("feddyn"), compressor="natural") == FedDyn()
    assert supported(Spec.parse("feddr"), regulariser=True, participation="subset=2") == FedDR()


@pytest.mark.parametrize(
    ("name", "asked", "sentence"),
    [
        (
            "dualfl",
            {"participation": "subset=2"},
            "algorithm dualfl does not support participation subset=2; a-fed",
        ),
        ("dualfl:0.5", {"participation": "subset=2"}, "algorithm dualfl does not support participation subset=2; "),
        ("fedavg", {"regulariser": True}, "algorithm fedavg does not support a regulariser; feddr, feddualavg do.$"),
    ],
)
def test_what_is_not_supported_is_refused_in_one_sentence(name: str, asked: dict, sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{sentence}"):
        supported(Spec.parse(name), **asked)
