"""Losses of a linear predictor, one file each, all with the same interface: `Loss`."""

from dualopt.losses._checks import positive_step, project_to_interval
from dualopt.losses._protocol import Loss
from dualopt.losses.absolute_deviation import AbsoluteDeviation
from dualopt.losses.hinge import Hinge
from dualopt.losses.huber import Huber
from dualopt.losses.logistic import Logistic
from dualopt.losses.multinomial import Multinomial
from dualopt.losses.smoothed_hinge import SmoothedHinge
from dualopt.losses.squared import Squared

__all__ = [
    "AbsoluteDeviation",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "Multinomial",
    "SmoothedHinge",
    "Squared",
    "positive_step",
    "project_to_interval",
]
