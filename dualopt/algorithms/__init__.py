"""Federated algorithms: one paper box per file."""

from dualopt.algorithms._base import OPEN, UNKNOWN, Algorithm, Means, parameters
from dualopt.algorithms.a_fedpd import AFedPD
from dualopt.algorithms.a_fedpdsam import AFedPDSAM
from dualopt.algorithms.acc_s_dane import AccSDANE
from dualopt.algorithms.anderson_dane import AndersonDANE
from dualopt.algorithms.anderson_fedsplit import AndersonFedSplit
from dualopt.algorithms.apda_inexact import APDAInexact
from dualopt.algorithms.distributed_lbfgs import DistributedLBFGS
from dualopt.algorithms.distributed_newton_cg import DistributedNewtonCG
from dualopt.algorithms.dual_ascent import DualAscent
from dualopt.algorithms.dual_lbfgs import DualLBFGS
from dualopt.algorithms.dualfl import DualFL
from dualopt.algorithms.fedadmm import FedADMM
from dualopt.algorithms.fedavg import FedAvg
from dualopt.algorithms.fedcm import FedCM
from dualopt.algorithms.feddr import FedDR
from dualopt.algorithms.feddualavg import FedDualAvg
from dualopt.algorithms.feddyn import FedDyn
from dualopt.algorithms.fedpd import FedPD
from dualopt.algorithms.fedprox import FedProx
from dualopt.algorithms.fedsam import FedSAM
from dualopt.algorithms.fedspeed import FedSpeed
from dualopt.algorithms.fedsplit import FedSplit
from dualopt.algorithms.fivegcs import FiveGCS
from dualopt.algorithms.giant import GIANT
from dualopt.algorithms.gradient_descent import GradientDescent
from dualopt.algorithms.lazy_a_fedpd import LazyAFedPD
from dualopt.algorithms.optimized_dualfl import OptimizedDualFL
from dualopt.algorithms.sampled_dualfl import SampledDualFL
from dualopt.algorithms.scaffnew import Scaffnew
from dualopt.algorithms.scaffold import Scaffold

__all__ = [
    "GIANT",
    "OPEN",
    "UNKNOWN",
    "AFedPD",
    "AFedPDSAM",
    "APDAInexact",
    "AccSDANE",
    "Algorithm",
    "AndersonDANE",
    "AndersonFedSplit",
    "DistributedLBFGS",
    "DistributedNewtonCG",
    "DualAscent",
    "DualFL",
    "DualLBFGS",
    "FedADMM",
    "FedAvg",
    "FedCM",
    "FedDR",
    "FedDualAvg",
    "FedDyn",
    "FedPD",
    "FedProx",
    "FedSAM",
    "FedSpeed",
    "FedSplit",
    "FiveGCS",
    "GradientDescent",
    "LazyAFedPD",
    "Means",
    "OptimizedDualFL",
    "SampledDualFL",
    "Scaffnew",
    "Scaffold",
    "parameters",
]
