"""Partitions: disjoint, complete, without empty clients, decided by the seed, and of the documented law."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualopt import linear_model
from dualopt.lab.contracts.test_partitions import *  # noqa: F403
from dualopt.problem.build import build_problem
from dualopt.problem.data import (
    by_label,
    check_partition,
    consecutive,
    dirichlet,
    dirichlet_clients,
    iid,
    images,
    lognormal_sizes,
    natural,
    partition,
    subsample,
)
from dualopt.problem.data._parts import fill_empty
from dualopt.problem.data.label_priors import _distribution, _turns

KINDS = ["iid", "consecutive", "by-label", "dirichlet", "dirichlet-clients", "lognormal"]
RANDOM = ["iid", "dirichlet", "dirichlet-clients", "lognormal"]


@st.composite
def cases(draw):
    """Draw labels, a number of clients up to one client for each row, and a seed."""
    y = np.array(draw(st.lists(st.integers(0, 4), min_size=1, max_size=40)))
    return y, draw(st.integers(1, len(y))), draw(st.integers(0, 2**32))


@pytest.mark.parametrize("kind", KINDS)
@given(
    case=cases(),
    alpha=st.sampled_from([1e-300, 1e-3, 0.3, 1.0, 1e3, 1e308]),
    sigma=st.sampled_from([0.0, 0.5, 2.0, 50.0]),
)
def test_every_row_has_one_client_and_every_client_a_row(kind, case, alpha, sigma):
    y, n, seed = case
    clients = partition(kind, y, n, alpha=alpha, sigma=sigma, seed=seed)
    assert len(clients) == n
    assert all(rows.dtype == np.int64 and rows.ndim == 1 and rows.size > 0 for rows in clients)
    assert sorted(np.concatenate(clients).tolist()) == list(range(len(y)))
    again = partition(kind, y, n, alpha=alpha, sigma=sigma, seed=seed)
    assert all(np.array_equal(a, b) for a, b in zip(clients, again, strict=True))
    assert len(check_partition(clients, len(y))) == n


@given(case=cases())
def test_sizes_differ_by_at_most_one_and_the_first_are_larger(case):
    y, n, seed = case
    small, extra = divmod(len(y), n)
    expected = [small + 1] * extra + [small] * (n - extra)
    for clients in (iid(len(y), n, seed), consecutive(len(y), n), by_label(y, n)):
        assert [rows.size for rows in clients] == expected


@given(case=cases())
def test_consecutive_and_by_label_keep_their_order(case):
    y, n, _ = case
    assert np.concatenate(consecutive(len(y), n)).tolist() == list(range(len(y)))
    by = sorted(range(len(y)), key=lambda i: y[i])  # Python's sort is stable
    assert np.concatenate(by_label(y, n)).tolist() == by


@pytest.mark.parametrize("kind", RANDOM)
def test_rows_of_random_partitions_are_sorted(kind):
    for rows in partition(kind, np.arange(100) % 3, 7, alpha=1.0):
        assert (np.diff(rows) > 0).all()


def test_iid_is_uniform():
    """Each row is with client 0 in half of the draws: 5 standard deviations of a binomial mean."""
    hits = np.zeros(6)
    for seed in range(1000):
        hits[iid(6, 2, seed)[0]] += 1
    assert np.abs(hits / 1000 - 0.5).max() < 5 * 0.5 / np.sqrt(1000)


def shares(y, clients):
    """Tabulate the share of each class (row) that each client (column) has."""
    counts = np.array([[np.sum(y[rows] == label) for rows in clients] for label in np.unique(y)])
    return counts / counts.sum(axis=1, keepdims=True)


def test_dirichlet_with_large_alpha_is_uniform():
    y = np.repeat(np.arange(3), [100, 200, 1000])
    for alpha in (1e12, 1e308):
        table = shares(y, dirichlet(y, 5, alpha, seed=0))
        assert np.abs(table - 0.2).max() <= 1 / 100  # one row of the smallest class


def test_dirichlet_with_small_alpha_concentrates():
    y = np.repeat(np.arange(10), 100)
    table = shares(y, dirichlet(y, 5, 1e-3, seed=0))
    assert (table.max(axis=1) > 0.97).all()
    assert len(set(table.argmax(axis=1).tolist())) > 1  # each class has its own draw


@pytest.mark.parametrize("alpha", [0.3, 1.0, 5.0])
def test_dirichlet_shares_have_the_variance_of_the_law(alpha):
    """For N clients the variance of a share is (1/N)(1 - 1/N)/(N alpha + 1), its mean 1/N."""
    n, y = 4, np.repeat(np.arange(500), 100)
    table = shares(y, dirichlet(y, n, alpha, seed=1))
    np.testing.assert_allclose(table.mean(axis=0), 1 / n, atol=5 * np.sqrt(0.1 / 500))
    assert table.var() == pytest.approx((1 / n) * (1 - 1 / n) / (n * alpha + 1), rel=0.1)


@pytest.mark.parametrize("rows", [dirichlet(np.zeros(1000, int), 2, 1e6, seed=0)[0], lognormal_sizes(1000, 2, 0.0)[0]])
def test_rows_are_shuffled_within_a_class(rows):
    assert abs(rows.size - 500) <= 5
    assert np.abs(rows.mean() - 499.5) < 5 * 1000 / np.sqrt(12 * 500)
    assert rows.max() > 950


def test_dirichlet_follows_the_rows_and_not_their_numbers():
    y = np.arange(300) % 3
    a, b = dirichlet(y, 4, 0.5, seed=2), dirichlet(np.sort(y), 4, 0.5, seed=2)
    np.testing.assert_array_equal(shares(y, a), shares(np.sort(y), b))


def test_empty_clients_are_filled_as_documented():
    """The first empty client takes the last row of the first of the largest, the next of the then largest."""
    parts = [np.array(rows, int) for rows in ([], [5, 6, 7], [], [1, 2, 3])]
    assert [rows.tolist() for rows in fill_empty(parts)] == [[7], [5, 6], [3], [1, 2]]
    assert [rows.size for rows in parts] == [0, 3, 0, 3]


def test_lognormal_sizes_are_lognormal():
    """The logarithms of the sizes have the standard deviation and the kurtosis of a normal law."""
    for sigma in (0.5, 1.5):
        sizes = np.array([rows.size for rows in lognormal_sizes(2_000_000, 1000, sigma, seed=0)])
        logarithms = np.log(sizes)
        assert logarithms.std() == pytest.approx(sigma, rel=0.1)
        standardised = (logarithms - logarithms.mean()) / logarithms.std()
        # Kurtosis 3 within five standard deviations of its estimate; a uniform exponent has 1.8.
        assert abs(np.mean(standardised**4) - 3) < 5 * np.sqrt(24 / 1000)


def test_names_mean_the_functions():
    y = np.array([2, 0, 1, 0, 2, 1, 1, 0, 2])
    expected = {
        "iid": iid(9, 3, 5),
        "consecutive": consecutive(9, 3),
        "by-label": by_label(y, 3),
        "dirichlet": dirichlet(y, 3, 0.7, 5),
        "dirichlet-clients": dirichlet_clients(y, 3, 0.7, 5, sigma=0.4),
        "lognormal": lognormal_sizes(9, 3, 0.4, 5),
        "natural": natural(y),
    }
    for kind, clients in expected.items():
        named = partition(kind, y, 3, alpha=0.7, sigma=0.4, seed=5, clients=y)
        assert [rows.tolist() for rows in named] == [rows.tolist() for rows in clients]


def test_default_spread_belongs_to_the_rule():
    """Log-normal sizes have spread 1 by default, Dirichlet clients equal sizes."""
    y = np.arange(200) % 5
    for kind, sigma in (("lognormal", 1.0), ("dirichlet-clients", 0.0)):
        one, other = partition(kind, y, 6), partition(kind, y, 6, sigma=sigma)
        assert [rows.tolist() for rows in one] == [rows.tolist() for rows in other]


@given(st.lists(st.sampled_from([0, 1, 5, -3, 2**40]), min_size=1, max_size=30))
def test_natural_groups_the_rows_by_owner(owners):
    """The clients are the numbers that occur, in order, each with all of its rows in order."""
    clients = natural(np.array(owners))
    assert check_partition(clients, len(owners))
    assert [{owners[i] for i in rows} for rows in clients] == [{number} for number in sorted(set(owners))]
    assert all((np.diff(rows) > 0).all() for rows in clients)


@given(st.integers(1, 30), st.data())
def test_subsample_is_a_sorted_subset(m, data):
    rows = data.draw(st.integers(1, m))
    seed = data.draw(st.integers(0, 1000))
    chosen = subsample(np.zeros(m), rows, seed)
    assert chosen.dtype == np.int64
    assert chosen.size == rows
    assert (np.diff(chosen) > 0).all()
    assert chosen[0] >= 0
    assert chosen[-1] < m
    np.testing.assert_array_equal(chosen, subsample(np.zeros(m), rows, seed))


def test_subsample_is_uniform():
    """Each row is equally likely: 5 standard deviations of a binomial mean."""
    hits = np.zeros(6)
    for seed in range(1000):
        hits[subsample(np.zeros(6), 2, seed)] += 1
    assert np.abs(hits / 1000 - 1 / 3).max() < 5 * np.sqrt(2 / 9 / 1000)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("n", "message"),
    [
        (0, "^n_clients must be at least 1, got 0"),
        (5, "^n_clients must be at most the number of rows, 4, .*got 5"),
        (2.0, "^n_clients must be an integer, got 2.0"),
    ],
)
def test_wrong_number_of_clients(kind, n, message):
    with pytest.raises(ValueError, match=message):
        partition(kind, np.array([0, 1, 0, 1]), n)


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("dirichlet", {"alpha": 0.0}, "^alpha must be positive and finite, got 0.0"),
        ("dirichlet", {"alpha": np.nan}, "^alpha must be positive and finite, got nan"),
        ("lognormal", {"sigma": -0.1}, "^sigma must be nonnegative and finite, got -0.1"),
        ("dirichlet-clients", {"alpha": 0.0}, "^alpha must be positive and finite, got 0.0"),
        ("dirichlet-clients", {"sigma": -1.0}, "^sigma must be nonnegative and finite, got -1.0"),
        ("lognormal", {"sigma": np.inf}, "^sigma must be nonnegative and finite, got inf"),
        ("iid", {"seed": -1}, "^seed must be at least 0, got -1"),
        ("dirichlet", {"seed": 0.5}, "^seed must be an integer, got 0.5"),
        ("by_label", {}, r"^partition must be one of iid, .*, got 'by_label'; did you mean 'by-label'\?$"),
        ("zzz", {}, r"^partition must be one of iid, .*, got 'zzz'\.$"),
    ],
)
def test_wrong_arguments(kind, options, message):
    with pytest.raises(ValueError, match=message):
        partition(kind, np.array([0, 1, 0, 1]), 2, **options)


@pytest.mark.parametrize(
    ("owners", "message"),
    [
        (None, '^partition must not be "natural", because the data do not say'),
        (np.array([0, 1, 2, 0]), "^n_clients must be the 3 clients of the data, got 2"),
    ],
)
def test_wrong_natural(owners, message):
    with pytest.raises(ValueError, match=message):
        partition("natural", np.arange(4), 2, clients=owners)


@pytest.mark.parametrize(
    ("rows", "message"), [(0, "^rows must be at least 1, got 0"), (5, "^rows must be at most the 4 rows")]
)
def test_wrong_subsample(rows, message):
    """The size is between 1 and m."""
    with pytest.raises(ValueError, match=message):
        subsample(np.zeros(4), rows, 0)


def test_check_partition_returns_int64():
    clients = check_partition([np.array([2, 0]), np.array([1], np.uint8)], 3)
    assert [rows.dtype for rows in clients] == [np.int64, np.int64]
    assert [rows.tolist() for rows in clients] == [[2, 0], [1]]


@pytest.mark.parametrize(
    ("clients", "message"),
    [
        ([], "^clients must hold at least one client"),
        ([[0, 1, 2], []], "^clients must have rows, but client 1 has none"),
        ([[0, 1], [3, 2]], "^clients must have rows between 0 and 2, but client 1 has row 3"),
        ([[0, 1], [2], [-1]], "^clients must have rows between 0 and 2, but client 2 has row -1"),
        ([[0, 1], [2, 1]], "^clients overlap: client 1 has row 1, which client 0 has already"),
        ([[0], [1, 2, 1]], "^clients must have each row once, but client 1 has row 1 2 times"),
        ([[0], [2]], "^clients must cover all 3 rows, but row 1 belongs to no client"),
        ([[0.0, 1.0, 2.0]], "^clients must be vectors of integers, but client 0 is an array of float64"),
        ([[[0, 1, 2]]], r"^clients must be vectors of integers, but client 0 is .* shape \(1, 3\)"),
        ([[True, False, True]], "^clients must be vectors of integers, but client 0 is an array of bool"),
    ],
)
def test_check_partition_refuses(clients, message):
    with pytest.raises(ValueError, match=message):
        check_partition(clients, 3)


def test_a_module_adds_rules(monkeypatch):
    """No list names the rules: a dictionary ``PARTITIONS`` in any module of the package is found."""

    def halves(m, sigma=2.0):
        return [np.arange(m // 2), np.arange(m // 2, m)]

    monkeypatch.setattr(images, "PARTITIONS", {"halves": halves}, raising=False)
    assert [part.tolist() for part in partition("halves", np.zeros(4), 2)] == [[0, 1], [2, 3]]
    with pytest.raises(ValueError, match=r"^partition must be one of iid, .*, got 'half'; did you mean 'halves'"):
        partition("half", np.zeros(4), 2)
    with pytest.raises(ValueError, match=r"^n_clients must be the 2 clients of the data, got 3"):
        partition("halves", np.zeros(4), 3)


def test_a_rule_of_a_file_is_checked(tmp_path):
    """What it returns is a partition, or refused in a sentence; what it is called with it must take."""
    own = tmp_path / "mine.py"
    own.write_text(
        "import numpy as np\n\n\n"
        "def halves(y, n_clients):\n    return np.array_split(np.arange(len(y)), n_clients)\n\n\n"
        "def loses(m, n_clients):\n    return np.array_split(np.arange(1, m), n_clients)\n\n\n"
        "def asks(y, mood):\n    return [y]\n"
    )
    y = np.zeros(5)
    assert [part.tolist() for part in partition(f"{own}:halves", y, 2)] == [[0, 1, 2], [3, 4]]
    with pytest.raises(ValueError, match=r"loses': clients must cover all 5 rows, but row 0 belongs to no client\."):
        partition(f"{own}:loses", y, 2)
    with pytest.raises(ValueError, match=r"asks is no partition: it takes y, m, .*, and not mood\."):
        partition(f"{own}:asks", y, 2)


# Dirichlet label mixtures: their law, their sizes, and what happens when a class runs out.


def mixtures(y, clients):
    """Tabulate the share of each class (column) among the rows of each client (row)."""
    return np.array([np.bincount(y[rows], minlength=y.max() + 1) / rows.size for rows in clients])


def test_large_alpha_mixes_all_classes_alike():
    """Every client then has each class in the share of a multinomial draw: five standard deviations."""
    y = np.arange(30_000) % 5
    table = mixtures(y, dirichlet_clients(y, 10, 1e12, seed=0))
    assert np.abs(table - 0.2).max() < 5 * np.sqrt(0.2 * 0.8 / 3000)


@pytest.mark.parametrize("alpha", [0.3, 1.0, 5.0])
def test_mixtures_have_the_variance_of_the_law(alpha):
    """The variance over clients is (1/k)(1 - 1/k)/(k alpha + 1) and that of the draws of the rows.

    Classes that run out take up to a tenth of it, the estimate from 400 clients has a deviation of 3 %.
    """
    k, n, size = 4, 400, 60
    y = np.repeat(np.arange(k), n * size // k)
    table = mixtures(y, dirichlet_clients(y, n, alpha, seed=1))
    np.testing.assert_allclose(table.mean(axis=0), 1 / k, atol=1e-12)  # all rows are dealt out
    p = 1 / k
    law = p * (1 - p) / (k * alpha + 1)
    expected = law + (p * (1 - p) - law) / size  # of a share of ``size`` draws from random proportions
    assert table.var() == pytest.approx(expected, rel=0.15)


@pytest.mark.parametrize(("alpha", "usual"), [(0.6, {4, 5}), (0.3, {3, 4})])
def test_classes_that_make_up_most_of_a_client(alpha, usual):
    """On 100 clients of 600 rows and 10 classes, 80 % of the rows have 4 or 5 and 3 or 4 labels (FedDyn, Figure 3)."""
    y = np.arange(60_000) % 10
    table = np.sort(mixtures(y, dirichlet_clients(y, 100, alpha, seed=0)), axis=1)[:, ::-1]
    needed = 1 + np.argmax(np.cumsum(table, axis=1) >= 0.8, axis=1)
    counts = np.bincount(needed, minlength=11)
    assert set(np.argsort(counts)[-2:].tolist()) == usual


def test_sizes_do_not_depend_on_the_labels():
    y = np.repeat(np.arange(3), [10, 200, 791])
    assert {rows.size for rows in dirichlet_clients(y, 10, 0.1, seed=0)} == {100, 101}
    wanted = [rows.size for rows in lognormal_sizes(1001, 10, 0.7, seed=4)]
    assert [rows.size for rows in dirichlet_clients(y, 10, 0.1, seed=4, sigma=0.7)] == wanted


def test_exhausted_classes_are_not_drawn():
    """The distribution is that of the classes with rows left; without mass there it follows the rows."""
    priors = np.array([[0.5, 0.3, 0.2], [1.0, 0.0, 0.0]])
    np.testing.assert_allclose(_distribution(priors, np.array([0, 3, 1])), [[0, 0.6, 1], [0, 0.75, 1]])
    np.testing.assert_allclose(_distribution(priors, np.array([7, 0, 0])), [[1, 1, 1], [1, 1, 1]])


def test_turns_are_uniform_among_the_unfinished():
    """The first and the last turn have the law of the paper's loop, by 5 standard deviations of a binomial mean.

    With sizes 1 and 3 the small client is first with probability 1/2 and last with probability 1/8, where a shuffle
    of the four turns would give 1/4 each.
    """
    draws = np.array([_turns([1, 3], np.random.default_rng(seed)) for seed in range(2000)])
    assert (np.sort(draws, axis=1) == [0, 1, 1, 1]).all()
    assert abs(np.mean(draws[:, 0] == 0) - 1 / 2) < 5 * 0.5 / np.sqrt(2000)
    assert abs(np.mean(draws[:, -1] == 0) - 1 / 8) < 5 * np.sqrt(7 / 64 / 2000)


def test_rows_are_random_within_a_class():
    """A small client, which is done early, does not get the rows from one end of a class."""
    rows = min(dirichlet_clients(np.zeros(1000, int), 2, 1.0, seed=0, sigma=2.0), key=len)
    assert 20 < rows.size < 250  # it is done after about twice as many turns
    assert np.abs(rows.mean() - 499.5) < 5 * 1000 / np.sqrt(12 * rows.size)
    assert rows.max() - rows.min() > 800


def test_labels_may_be_words():
    y = np.array(["b", "a", "c", "a"])
    codes = np.array([1, 0, 2, 0])
    one, other = (dirichlet_clients(labels, 2, 0.5, seed=0) for labels in (y, codes))
    assert [rows.tolist() for rows in one] == [rows.tolist() for rows in other]


# Sampling with replacement.


@given(case=cases(), alpha=st.sampled_from([1e-300, 1e-3, 0.3, 1.0, 1e3, 1e308]))
def test_with_replacement_a_client_has_as_many_rows_as_without(case, alpha):
    y, n, seed = case
    clients = partition("dirichlet-replacement", y, n, alpha=alpha, seed=seed)
    assert [len(rows) for rows in clients] == [len(rows) for rows in iid(len(y), n, seed)]
    checked = check_partition(clients, len(y), replacement=True)
    assert all(np.array_equal(a, b) for a, b in zip(clients, checked, strict=True))
    again = partition("dirichlet-replacement", y, n, alpha=alpha, seed=seed)
    assert all(np.array_equal(a, b) for a, b in zip(clients, again, strict=True))


def test_the_law_of_sampling_with_replacement():
    """Labels vary between clients as Dirichlet proportions do, and rows of one label are all equally likely.

    The proportion of a label at a client with ``s`` rows has the variance ``v (1 - 1/s) + q (1 - q)/s`` with
    ``q = 1/k`` and ``v = q (1 - q)/(k alpha + 1)``.
    """
    k, n, alpha = 3, 40, 0.5
    y = np.repeat(np.arange(k), (900, 240, 60))  # a label's frequency in the data does not enter
    shares, counts = [], np.zeros(len(y))
    for seed in range(60):
        for rows in partition("dirichlet-replacement", y, n, alpha=alpha, seed=seed):
            shares.append(np.bincount(y[rows], minlength=k) / len(rows))
            np.add.at(counts, rows, 1)
    shares, q, s = np.array(shares), 1 / k, len(y) // n
    variance = q * (1 - q) * ((1 - 1 / s) / (k * alpha + 1) + 1 / s)
    assert np.all(np.abs(shares.mean(axis=0) - q) < 5 * np.sqrt(variance / len(shares)))
    assert np.all(np.abs(shares.var(axis=0) / variance - 1) < 0.1)
    for label in range(k):
        own = counts[y == label]
        squares = np.sum((own - own.mean()) ** 2) / own.mean()
        assert abs(squares / len(own) - 1) < 5 * np.sqrt(2 / len(own))  # chi-squared


def test_clients_that_share_rows_train_on_them(tmp_path):
    """The problem of the command line is the one in which the rows of every client are written out."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 3)), rng.integers(0, 2, 30)
    np.savez(tmp_path / "mine.npz", X=X, y=y)
    text = f"problem: {tmp_path / 'mine.npz'}, clients=4, partition=dirichlet-replacement, scale=none, seed=3"
    f = build_problem(text).objective
    parts = partition("dirichlet-replacement", y, 4, alpha=0.3, seed=3)
    assert len(np.unique(np.concatenate(parts))) < 30
    written = np.concatenate(parts)
    clients = np.split(np.arange(30), np.cumsum([len(rows) for rows in parts])[:-1])
    g = linear_model(X[written], 2.0 * y[written] - 1, loss="logistic", mu=0.01, clients=[c.tolist() for c in clients])
    theta = rng.standard_normal(f.shape)
    np.testing.assert_allclose(f.value(theta), g.value(theta), rtol=1e-14)


def test_what_check_partition_admits_with_replacement():
    shared: Any = [[0, 0, 2], [2]]
    assert [rows.tolist() for rows in check_partition(shared, 4, replacement=True)] == shared
    with pytest.raises(ValueError, match="clients overlap: client 1 has row 2, which client 0 has already"):
        check_partition([np.array([0, 1, 2]), np.array([2])], 4)
    wrong: list[tuple[Any, str]] = [([[0], []], "client 1 has none"), ([[0], [4]], "client 1 has row 4")]
    for clients, said in wrong:
        with pytest.raises(ValueError, match=said):
            check_partition(clients, 4, replacement=True)


REFUSED = [(0, 1.0, "n_clients must be at"), (5, 1.0, "n_clients must be at"), (2, 0.0, "alpha must be")]


@pytest.mark.parametrize(("n_clients", "alpha", "said"), REFUSED)
def test_what_sampling_with_replacement_refuses(n_clients, alpha, said):
    with pytest.raises(ValueError, match=said):
        partition("dirichlet-replacement", np.array([0, 1, 0, 1]), n_clients, alpha=alpha)
