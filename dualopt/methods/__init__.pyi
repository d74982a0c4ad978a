from ._base import AUTO as AUTO, UNKNOWN as UNKNOWN, Algorithm as Algorithm, Means as Means, parameters as parameters
from ._theorem import Known as Known, Need as Need, Theorem as Theorem
from ._parameters import (
    Checked as Checked,
    ProximalStep as ProximalStep,
    ProximalWeight as ProximalWeight,
    Suggested as Suggested,
)
from .a_fedpd import AFedPD as AFedPD
from .a_fedpdsam import AFedPDSAM as AFedPDSAM
from .acc_s_dane import AccSDANE as AccSDANE
from .adaptive_acc_s_dane import AdaptiveAccSDANE as AdaptiveAccSDANE
from .adaptive_dualfl import AdaptiveDualFL as AdaptiveDualFL
from .anderson_dane import AndersonDANE as AndersonDANE
from .anderson_fedsplit import AndersonFedSplit as AndersonFedSplit
from .apda_inexact import APDAInexact as APDAInexact
from .consensus_fedsplit import ConsensusFedSplit as ConsensusFedSplit
from .corrected_dualfl import CorrectedDualFL as CorrectedDualFL
from .corrected_optimized_dualfl import CorrectedOptimizedDualFL as CorrectedOptimizedDualFL
from .distributed_lbfgs import DistributedLBFGS as DistributedLBFGS
from .distributed_newton_cg import DistributedNewtonCG as DistributedNewtonCG
from .dual_ascent import DualAscent as DualAscent
from .dual_lbfgs import DualLBFGS as DualLBFGS
from .dualfl import DualFL as DualFL
from .fedadmm import FedADMM as FedADMM
from .fedavg import FedAvg as FedAvg
from .fedcm import FedCM as FedCM
from .feddr import FedDR as FedDR
from .feddualavg import FedDualAvg as FedDualAvg
from .feddyn import FedDyn as FedDyn
from .feddynsam import FedDynSAM as FedDynSAM
from .fedpd import FedPD as FedPD
from .fedprox import FedProx as FedProx
from .fedsam import FedSAM as FedSAM
from .fedspeed import FedSpeed as FedSpeed
from .fedsplit import FedSplit as FedSplit
from .fivegcs import FiveGCS as FiveGCS
from .gap_restarted_dualfl import GapRestartedDualFL as GapRestartedDualFL
from .giant import GIANT as GIANT
from .gradient_descent import GradientDescent as GradientDescent
from .growing_feddyn import GrowingFedDyn as GrowingFedDyn
from .old_dual_fedpd import OldDualFedPD as OldDualFedPD
from .optimized_dualfl import OptimizedDualFL as OptimizedDualFL
from .restarted_dualfl import RestartedDualFL as RestartedDualFL
from .restarted_optimized_dualfl import RestartedOptimizedDualFL as RestartedOptimizedDualFL
from .sampled_dualfl import SampledDualFL as SampledDualFL
from .scaffnew import Scaffnew as Scaffnew
from .scaffold import Scaffold as Scaffold
from .scaffold_i import ScaffoldI as ScaffoldI
