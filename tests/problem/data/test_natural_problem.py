"""The partition that the data bring, from the options of the command line to the clients of the objective."""

import numpy as np
import pytest

from dualopt.problem.data import load, natural, subsample
from dualopt.problem.options import ProblemOptions, build_problem

FEDPD = {"data": "synthetic-fedpd-weak", "data_param": ["clients=10", "rows=6", "d=3"], "partition": "natural"}


def stacked_rows(problem):
    """Return the features, client by client."""
    return np.concatenate([np.reshape(X, (-1, X.shape[-1])) for X, _, _ in problem.objective.client_rows()])


@pytest.mark.parametrize("clients", [8, 10])
def test_the_data_decide_the_number_of_clients(clients):
    problem = build_problem(ProblemOptions(**FEDPD, clients=clients, intercept=False))
    assert problem.objective.sizes == (6,) * 10
    assert problem.partition == "10 (natural), 6 rows each"
    np.testing.assert_array_equal(stacked_rows(problem), load("synthetic-fedpd-weak", clients=10, rows=6, d=3).X)


def test_sizes_follow_the_owners():
    options = ProblemOptions(data="synthetic-feddyn", data_param=["setting=sizes", "rows=20"], partition="natural")
    parts = natural(load("synthetic-feddyn", setting="sizes", rows=20).clients)
    assert list(build_problem(options).objective.sizes) == [len(rows) for rows in parts]


def test_rows_keep_their_owners():
    problem = build_problem(ProblemOptions(**FEDPD, rows=50, seed=1))
    data = load("synthetic-fedpd-weak", clients=10, rows=6, d=3, seed=1)
    chosen = subsample(data.y, 50, 1)
    assert list(problem.objective.sizes) == np.bincount(chosen // 6, minlength=10).tolist()
    assert len(set(problem.objective.sizes)) > 1


def test_dirichlet_clients_have_equal_sizes_unless_told_otherwise():
    options = {"data": "synthetic-multinomial", "data_param": ["m=400"], "partition": "dirichlet-clients"}
    assert set(build_problem(ProblemOptions(**options, alpha=0.1)).objective.sizes) == {50}
    assert len(set(build_problem(ProblemOptions(**options, sigma=0.5)).objective.sizes)) > 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (FEDPD | {"clients": 9}, "^clients must be the 10 clients of the data, not 9"),
        (FEDPD | {"rows": 5}, "^rows = 5 leaves [0-9]+ of the 10 clients without rows"),
        ({"data": "synthetic-logistic", "partition": "natural"}, '^partition must not be "natural", because the data'),
        ({"data": "synthetic-logistic", "partition": "natural", "clients": 0}, "^clients must be between 1 and"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        build_problem(ProblemOptions(**options))
