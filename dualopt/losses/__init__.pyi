from ._protocol import Loss as Loss
from .absolute_deviation import AbsoluteDeviation as AbsoluteDeviation
from .hinge import Hinge as Hinge
from .huber import Huber as Huber
from .logistic import Logistic as Logistic
from .multinomial import Multinomial as Multinomial
from .smoothed_hinge import SmoothedHinge as SmoothedHinge
from .squared import Squared as Squared
