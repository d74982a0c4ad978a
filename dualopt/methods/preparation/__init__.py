"""What happens once, before the first round: a better start, or better coordinates."""

from dualopt.methods.preparation._protocol import Preparation, Prepared, as_preparations, prepared_by
from dualopt.methods.preparation.one_shot import OneShotAverage
from dualopt.methods.preparation.sketched_metric import SketchedMetric

__all__ = ["OneShotAverage", "Preparation", "Prepared", "SketchedMetric", "as_preparations", "prepared_by"]

UNLISTED = {
    "jackknife": "one-shot: jackknife=true",
    "sketch": "sketched-metric",
    "own-sketches": "sketched-metric: common=false",
}
