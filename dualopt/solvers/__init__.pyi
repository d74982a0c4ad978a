from ._default import default_solver as default_solver
from ._loop import LocalSolution as LocalSolution, LocalSolver as LocalSolver
from .aogm import AOGM as AOGM
from .dual_coordinate import DualCoordinate as DualCoordinate
from .exact import Exact as Exact
from .gradient import Gradient as Gradient
from .interior_point import InteriorPoint as InteriorPoint
from .lbfgs import LBFGS as LBFGS
from .nesterov import Nesterov as Nesterov
from .newton import NewtonCG as NewtonCG
from .row_lbfgs import RowLBFGS as RowLBFGS
from .sarah import Sarah as Sarah
from .sgd import SGD as SGD
