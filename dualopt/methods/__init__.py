"""Federated algorithms: one paper box per file."""

from dualopt.methods._base import OPEN, UNKNOWN, Algorithm, Means, parameters
from dualopt.methods.a_fedpd import AFedPD
from dualopt.methods.a_fedpdsam import AFedPDSAM
from dualopt.methods.acc_s_dane import AccSDANE
from dualopt.methods.anderson_dane import AndersonDANE
from dualopt.methods.anderson_fedsplit import AndersonFedSplit
from dualopt.methods.apda_inexact import APDAInexact
from dualopt.methods.distributed_lbfgs import DistributedLBFGS
from dualopt.methods.distributed_newton_cg import DistributedNewtonCG
from dualopt.methods.dual_ascent import DualAscent
from dualopt.methods.dual_lbfgs import DualLBFGS
from dualopt.methods.dualfl import DualFL
from dualopt.methods.fedadmm import FedADMM
from dualopt.methods.fedavg import FedAvg
from dualopt.methods.fedcm import FedCM
from dualopt.methods.feddr import FedDR
from dualopt.methods.feddualavg import FedDualAvg
from dualopt.methods.feddyn import FedDyn
from dualopt.methods.fedpd import FedPD
from dualopt.methods.fedprox import FedProx
from dualopt.methods.fedsam import FedSAM
from dualopt.methods.fedspeed import FedSpeed
from dualopt.methods.fedsplit import FedSplit
from dualopt.methods.fivegcs import FiveGCS
from dualopt.methods.giant import GIANT
from dualopt.methods.gradient_descent import GradientDescent
from dualopt.methods.lazy_a_fedpd import LazyAFedPD
from dualopt.methods.optimized_dualfl import OptimizedDualFL
from dualopt.methods.sampled_dualfl import SampledDualFL
from dualopt.methods.scaffnew import Scaffnew
from dualopt.methods.scaffold import Scaffold

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
