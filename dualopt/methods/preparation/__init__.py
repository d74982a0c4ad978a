"""What happens once, before the first round: a better start, or better coordinates."""

from dualopt.methods.preparation._protocol import Preparation, Prepared, prepared_by
from dualopt.methods.preparation.one_shot import OneShotAverage
from dualopt.methods.preparation.options import PreparationOptions
from dualopt.methods.preparation.sketched_metric import SketchedMetric

__all__ = ["OneShotAverage", "Preparation", "PreparationOptions", "Prepared", "SketchedMetric", "prepared_by"]
