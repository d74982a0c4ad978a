"""What methods may be expected to cost, and the links that seconds are told for."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from dualopt import run
from dualopt.runs.costs import EXPECTED, MINIMISED, SENT, Expected, Link, Prices
from dualopt.runs.rules import Facts, choose
from tests.problems import logistic

PLAIN = Facts(n_clients=8, size=1000, mu=1e-2, L=6.0, least_L=5.0, similarity=0.5, dane_step=0.9)
SLOW = Link(bandwidth=1e6, latency=0.1)


@pytest.mark.parametrize(
    ("text", "bandwidth", "latency"),
    [
        ("10Mbit,50ms", 1e7, 0.05),
        ("10 Mbit/s, 50 ms", 1e7, 0.05),
        ("1.5Gbit,200us", 1.5e9, 2e-4),
        (".5kbit,1s", 500.0, 1.0),
        ("300bit,0ms", 300.0, 0.0),
    ],
)
def test_links_are_read(text, bandwidth, latency):
    assert Link.parse(text).bandwidth == pytest.approx(bandwidth, rel=1e-15)
    assert Link.parse(text).latency == pytest.approx(latency, rel=1e-15)


@pytest.mark.parametrize(
    "text", ["", "10Mbit", "50ms,10Mbit", "10MB,50ms", "0Mbit,1ms", "-1Mbit,1ms", "1Mbit,1ms,2", 5]
)
def test_what_is_no_link_is_refused_in_one_sentence(text):
    sentence = (
        "link must be a positive bandwidth (bit, kbit, Mbit, Gbit) and a latency (us, ms, s), such as 10Mbit,50ms; "
        f"not {text!r}."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        Link.parse(text)


def test_the_price_of_a_round_is_that_of_its_messages_their_numbers_and_the_local_work():
    prices = Prices(message=1.0, up=10.0, down=100.0, gradient=1000.0)
    found = Expected(rounds=2.0, gradients=3.0).price("anderson-fedsplit", 5, prices)
    assert found == 2.0 * (2 * 1.0 + 10.0 * (5 + 11) + 100.0 * (5 + 11)) + 3.0 * 1000.0


def test_seconds_are_latency_bits_over_bandwidth_and_gradients():
    prices = Prices.of("seconds", 1000, bits=32, link=SLOW, gradient_seconds=0.25)
    assert prices == Prices(message=0.1, up=32e-6, down=32e-6, gradient=0.25)
    assert Prices.of("vectors", 1000, bits=32, link=None, gradient_seconds=None) == Prices(up=1e-3)
    assert Prices.of("bits", 1000, bits=32, link=None, gradient_seconds=None) == Prices(up=32.0)
    assert Prices.of("gradients", 1000, bits=32, link=None, gradient_seconds=None) == Prices(gradient=1.0)


def test_every_class_knows_every_method_and_counts_in_l_bfgs():
    kinds = {replace(PLAIN, similarity=s, size=size).kind for s in (0.01, 1.0) for size in (199, 200)}
    assert set(EXPECTED) == kinds
    for methods in EXPECTED.values():
        assert set(methods) == set(SENT)
        assert methods["distributed-lbfgs"] == Expected(rounds=1.0, gradients=1.0)


@pytest.mark.parametrize("method", SENT)
def test_what_servers_send_is_what_they_are_seen_to_send(method):
    """Beside the model, of which there are four numbers, from the second round on."""
    f = logistic()
    trace = run(method, f, rounds=21, tol=0)
    sent = np.diff(trace["floats_down"][1:]) / f.n_clients
    assert len(sent) == 20
    assert np.mean(sent) == 4.0 + SENT[method].down


def test_what_is_expensive_decides():
    far = replace(PLAIN, minimise="seconds", gradient_seconds=1e-6, link=SLOW)
    least = min(EXPECTED[PLAIN.kind], key=lambda name: EXPECTED[PLAIN.kind][name].rounds)
    assert choose(replace(far, link=Link(bandwidth=1e15, latency=10.0))).method == least
    assert choose(replace(far, gradient_seconds=1e6)).method == "distributed-lbfgs"
    assert choose(replace(far, link=Link(bandwidth=1e-9, latency=0.0), size=10**9)).method == "anderson-fedsplit"
    assert {choose(replace(far, minimise=aim)).method for aim in MINIMISED[:3:2]} == {choose(PLAIN).method}


def test_a_short_model_pays_for_numbers_beside_it():
    assert choose(replace(PLAIN, size=10)).method != "anderson-fedsplit"
    mixed = Expected(rounds=0.7, gradients=1.0)
    prices = [mixed.price("anderson-fedsplit", size, Prices(up=1.0)) / size for size in (10, 1000)]
    assert prices[0] > 1 > prices[1]  # vectors, over those of L-BFGS


def test_one_odd_client_is_seen():
    alike = replace(PLAIN, similarity=0.04, dane_step=2.9)
    assert alike.alike
    assert not replace(alike, dane_step=3.1).alike
    assert replace(alike, dane_step=None).alike  # as far as it is known
    assert not replace(alike, similarity=0.11).alike


def test_words_name_the_class_and_what_is_kept_small():
    words = choose(PLAIN).because
    assert "not alike, 200 numbers or more" in words
    assert "the fewest vectors" in words
    assert "take the least time" in choose(replace(PLAIN, minimise="seconds", link=SLOW, gradient_seconds=1e-3)).because
