"""Dirichlet label mixtures of clients: their law, their sizes, and what happens when a class runs out."""

import numpy as np
import pytest

from dualopt.problem.data import dirichlet_clients, lognormal_sizes
from dualopt.problem.data.label_priors import _distribution, _turns


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
