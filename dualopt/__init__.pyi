from .engine.rounds import Snapshot as Snapshot, iterate as iterate
from .losses import (
    AbsoluteDeviation as AbsoluteDeviation,
    Gamma as Gamma,
    Hinge as Hinge,
    Huber as Huber,
    Logistic as Logistic,
    Multinomial as Multinomial,
    Poisson as Poisson,
    Quantile as Quantile,
    SmoothedHinge as SmoothedHinge,
    Squared as Squared,
    SquaredHinge as SquaredHinge,
)
from .methods import (
    GIANT as GIANT,
    AUTO as AUTO,
    AccSDANE as AccSDANE,
    AFedPD as AFedPD,
    AFedPDSAM as AFedPDSAM,
    Algorithm as Algorithm,
    AndersonDANE as AndersonDANE,
    AndersonFedSplit as AndersonFedSplit,
    APDAInexact as APDAInexact,
    DistributedLBFGS as DistributedLBFGS,
    DistributedNewtonCG as DistributedNewtonCG,
    DualAscent as DualAscent,
    DualFL as DualFL,
    DualLBFGS as DualLBFGS,
    FedADMM as FedADMM,
    FedAvg as FedAvg,
    FedCM as FedCM,
    FedDR as FedDR,
    FedDualAvg as FedDualAvg,
    FedDyn as FedDyn,
    FedDynSAM as FedDynSAM,
    FedPD as FedPD,
    FedProx as FedProx,
    FedSAM as FedSAM,
    FedSpeed as FedSpeed,
    FedSplit as FedSplit,
    FiveGCS as FiveGCS,
    GradientDescent as GradientDescent,
    OptimizedDualFL as OptimizedDualFL,
    SampledDualFL as SampledDualFL,
    Scaffnew as Scaffnew,
    Scaffold as Scaffold,
    AdaptiveAccSDANE as AdaptiveAccSDANE,
    AdaptiveDualFL as AdaptiveDualFL,
    ConsensusFedSplit as ConsensusFedSplit,
    CorrectedDualFL as CorrectedDualFL,
    CorrectedOptimizedDualFL as CorrectedOptimizedDualFL,
    GapRestartedDualFL as GapRestartedDualFL,
    GrowingFedDyn as GrowingFedDyn,
    OldDualFedPD as OldDualFedPD,
    RestartedDualFL as RestartedDualFL,
    RestartedOptimizedDualFL as RestartedOptimizedDualFL,
    ScaffoldI as ScaffoldI,
)
from .methods.participation import (
    Bernoulli as Bernoulli,
    CommunicateWithProbability as CommunicateWithProbability,
    Full as Full,
    Round as Round,
    Schedule as Schedule,
    UniformSubset as UniformSubset,
    WeightedSubset as WeightedSubset,
)
from .methods.preparation import OneShotAverage as OneShotAverage, SketchedMetric as SketchedMetric
from .objectives import (
    MLP as MLP,
    Composite as Composite,
    LinearModel as LinearModel,
    LocalProblem as LocalProblem,
    NonconvexPenalty as NonconvexPenalty,
    Objective as Objective,
    Quadratic as Quadratic,
    SharpnessAware as SharpnessAware,
    TorchModule as TorchModule,
    linear_model as linear_model,
    mlp as mlp,
    reweighted as reweighted,
    torch_module as torch_module,
)
from .problem.models import Model as Model, Schema as Schema, load_model as load_model
from .regularisers import L1 as L1, L2 as L2
from .runs.certificates import certificate as certificate
from .runs.inference import Inference as Inference, inference as inference
from .runs.recommendation import Recommendation as Recommendation, recommend as recommend
from .runs.recording import run as run
from .runs.reference import (
    NotOptimalError as NotOptimalError,
    Reference as Reference,
    cvxpy as cvxpy,
    newton as newton,
    solve as solve,
)
from .runs.trace import Trace as Trace

__version__: str
__all__: list[str]
