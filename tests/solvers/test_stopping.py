"""Stopping rules, the schedules of equations (3.7) and (3.8), and their names on the command line."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dualopt.arrays.xp import device, to_numpy
from dualopt.methods.participation import Round
from dualopt.solvers.stopping import (
    Gap,
    GradientNorm,
    GradientReduction,
    LinearSchedule,
    Progress,
    RelativeEnergy,
    Steps,
    SublinearSchedule,
)
from dualopt.spec import built


def round_(n=0, n_clients=4):
    return Round(n=n, n_clients=n_clients, clients=(0, 1, 2), communicate=True, seed=0)


def progress(backend=np.asarray, *, steps=3, n=0, **changes):
    fields = {
        "value": [2.0, -4.0, 1.0],
        "previous": [2.5, -4.0, 1.0 + 1e-9],
        "mu": [125.0, 0.5, 1.0],  # gaps |grad|^2 / (2 mu) of 1e-3, 1e-6 and 0
        "gradient_norm": [0.5, 1e-3, 0.0],
        "first_gradient_norm": [1.0, 1.0, 0.0],
    }
    arrays = {name: backend(np.asarray(values)) for name, values in {**fields, **changes}.items()}
    return Progress(steps=steps, round=round_(n), **arrays)


RULES = {
    "steps not reached": (Steps(steps=4), {}, [False, False, False]),
    "steps reached": (Steps(steps=3), {}, [True, True, True]),
    "steps passed": (Steps(steps=2), {}, [True, True, True]),
    "one step": (Steps(steps=1), {"steps": 1}, [True, True, True]),
    "gradient, equality stops": (GradientNorm(tol=1e-3), {}, [False, True, True]),
    "gradient": (GradientNorm(tol=9e-4), {}, [False, False, True]),
    "reduction, first round": (GradientReduction(factor=0.9, first=1e-3), {}, [False, True, True]),
    "reduction, later": (GradientReduction(factor=0.5, first=1e-9), {"n": 1}, [True, True, True]),
    "reduction, later, strict": (GradientReduction(factor=0.4, first=0.9), {"n": 1}, [False, True, True]),
    "energy": (RelativeEnergy(tol=1e-8), {}, [False, True, True]),
    "energy is relative": (RelativeEnergy(tol=0.25), {}, [True, True, True]),
    "energy below": (RelativeEnergy(tol=0.24), {}, [False, True, True]),
    "energy, rising": (RelativeEnergy(tol=0.24), {"previous": [1.5, -5.0, 0.5]}, [False, False, True]),
    "energy, no step yet": (RelativeEnergy(), {"previous": [math.inf] * 3}, [False, False, True]),
    "reduction, defaults, first round": (
        GradientReduction(),
        {"gradient_norm": [1e-3, 1.1e-3, 0.0]},
        [True, False, True],
    ),
    "reduction, defaults, later": (
        GradientReduction(),
        {"n": 1, "gradient_norm": [0.1, 0.11, 0.0]},
        [True, False, True],
    ),
    "energy, default": (RelativeEnergy(), {"previous": [2.0 + 1.8e-12, -4.0 - 4.4e-12, 9.0]}, [True, False, True]),
    "gap": (Gap(schedule=lambda round: 1e-6), {}, [False, True, True]),
    "gap of the round": (Gap(schedule=lambda round: 10.0**-round.n), {"n": 4}, [False, True, True]),
}


@pytest.mark.parametrize(("rule", "changes", "expected"), RULES.values(), ids=RULES)
def test_rules(rule, changes, expected, backend):
    finished = rule.finished(progress(backend, **changes))
    assert to_numpy(finished).tolist() == expected
    like = backend(np.zeros(3))
    assert type(finished) is type(like)
    assert device(finished) == device(like)


@pytest.mark.parametrize(("rule", "changes", "expected"), RULES.values(), ids=RULES)
def test_rules_never_mix_clients(rule, changes, expected):
    whole = progress(**changes)
    for j in range(3):
        alone = whole._replace(**{k: v[j : j + 1] for k, v in whole._asdict().items() if isinstance(v, np.ndarray)})
        assert rule.finished(alone).tolist() == [expected[j]]


# (3.7): scale / (N nu (n+1)^(4+gamma)); (3.8): scale/N ((1 - sqrt(rho))/(1 + gamma))^n.
SCHEDULES = [
    (SublinearSchedule(nu=0.5, gamma=1.0), 0, 0.5),  # 1/(4 * 0.5)
    (SublinearSchedule(nu=0.5, gamma=1.0), 1, 0.015625),  # 0.5 / 2^5
    (SublinearSchedule(nu=0.25, gamma=2.0, scale=3.0), 2, 3.0 / 729.0),
    (SublinearSchedule(nu=0.5), 9, 0.5 * 10.0**-4.1),
    (LinearSchedule(rho=0.25, gamma=1.0), 0, 0.25),
    (LinearSchedule(rho=0.25, gamma=1.0), 3, 0.00390625),  # 0.25 * (0.5/2)^3
    (LinearSchedule(rho=0.09, gamma=0.4, scale=8.0), 2, 0.5),  # 2 * (0.7/1.4)^2
    (LinearSchedule(rho=0.0), 1, 0.25 / 1.1),
]


@pytest.mark.parametrize(("schedule", "n", "expected"), SCHEDULES, ids=lambda x: repr(x))
def test_schedules(schedule, n, expected):
    assert schedule(round_(n)) == pytest.approx(expected, rel=1e-14)
    assert schedule(round_(n, n_clients=8)) == pytest.approx(expected / 2, rel=1e-14)


TEXTS = [
    ("steps=10", 0.0, Steps(steps=10)),
    ("gradient=1e-8", 0.0, GradientNorm(tol=1e-8)),
    ("reduction=0.2", 0.0, GradientReduction(factor=0.2)),
    ("energy=1e-12", 0.0, RelativeEnergy(tol=1e-12)),
    ("gap=2", 0.0, Gap(scale=2.0, schedule=SublinearSchedule(nu=0.3, scale=2.0))),
    ("gap=2", 0.1, Gap(scale=2.0, schedule=LinearSchedule(rho=0.1, scale=2.0))),
    ("gap: schedule=linear=0.5", 0.0, Gap(schedule=LinearSchedule(rho=0.5))),
]


@pytest.mark.parametrize(("text", "rho", "expected"), TEXTS)
def test_text(text, rho, expected):
    rule = built(text, "stop")
    assert (rule.scheduled(nu=0.3, rho=rho) if isinstance(rule, Gap) else rule) == expected


def test_a_rule_without_a_schedule_does_not_guess_one():
    with pytest.raises(ValueError, match=r"^stop needs a schedule here"):
        Gap().finished(progress())


BAD = {
    "steps": (lambda: Steps(steps=0), "steps must be at least 1, not 0"),
    "steps, text": (lambda: built("steps=-2", "stop"), "stop steps: steps must be at least 1, not -2"),
    "steps, half": (lambda: built("steps=2.5", "stop"), "stop steps: steps must be a whole number, not '2.5'"),
    "tol": (lambda: GradientNorm(tol=0.0), "tol must be a positive finite number, not 0.0"),
    "tol, NaN": (lambda: RelativeEnergy(tol=math.nan), "tol must be a positive finite number, not nan"),
    "tol, text": (
        lambda: built("gradient=-1", "stop"),
        "stop gradient: tol must be a positive finite number, not -1.0",
    ),
    "factor": (lambda: GradientReduction(factor=1.0), "factor must lie strictly between 0 and 1, not 1.0"),
    "first": (lambda: GradientReduction(first=0.0), "first must lie strictly between 0 and 1, not 0.0"),
    "nu": (lambda: SublinearSchedule(nu=0.0), "nu must be a positive finite number, not 0.0"),
    "gamma": (lambda: SublinearSchedule(nu=1.0, gamma=-1.0), "gamma must be a positive finite number, not -1.0"),
    "scale": (lambda: LinearSchedule(rho=0.1, scale=math.inf), "scale must be a positive finite number, not inf"),
    "scale, text": (lambda: built("gap=0", "stop"), "stop gap: scale must be a positive finite number, not 0.0"),
    "rho": (lambda: LinearSchedule(rho=1.0), r"rho must lie in \[0, 1\), not 1.0"),
    "rho, negative": (lambda: LinearSchedule(rho=-0.1), r"rho must lie in \[0, 1\), not -0.1"),
}


@pytest.mark.parametrize(("make", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_named_in_one_sentence(make, message):
    with pytest.raises(ValueError, match=rf"^{message}\.$"):
        make()
