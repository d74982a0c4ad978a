from ._rounding import Rounding as Rounding
from .composite import Composite as Composite
from .convex_chain import ConvexChain as ConvexChain
from .finite_sum import FiniteSum as FiniteSum
from .linear import LinearModel as LinearModel, linear_model as linear_model
from .local_problem import LocalProblem as LocalProblem
from .network import MLP as MLP, mlp as mlp
from .nonconvex_penalty import NonconvexPenalty as NonconvexPenalty
from .objective import Objective as Objective
from .quadratic import Quadratic as Quadratic
from .rows import ClientRows as ClientRows
from .scales import Reweighted as Reweighted, reweighted as reweighted
from .sharpness_aware import SharpnessAware as SharpnessAware
from .torch_objective import TorchModule as TorchModule, torch_module as torch_module
from .wrapper import ObjectiveWrapper as ObjectiveWrapper
from .zero_chain import ZeroChain as ZeroChain
