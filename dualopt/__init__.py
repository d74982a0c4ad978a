"""Duality-based federated convex optimization whose theory can be run.

The public names, by what they are for:

* problems: :func:`linear_model`, :func:`mlp`, :class:`Quadratic`, :class:`NonconvexPenalty`, :class:`Composite` with
  the regularisers :class:`L1` and :class:`L2`, :class:`LocalProblem`, and the losses;
* methods, all of :mod:`dualopt.methods`: :class:`DualFL`, :class:`FedPD`, :class:`FedDyn`, :class:`AFedPD`, ...;
* who takes part: :class:`Full`, :class:`UniformSubset`, :class:`WeightedSubset`, :class:`Bernoulli`,
  :class:`CommunicateWithProbability`, :class:`Schedule`;
* what happens before the first round: :class:`OneShotAverage`, :class:`SketchedMetric`;
* local solvers in :mod:`dualopt.solvers`, their stopping rules in :mod:`dualopt.solvers.stopping`;
* running: :func:`run`, :func:`iterate`, :class:`Trace`, :func:`certificate`;
* which method: :func:`recommend`;
* references: :func:`newton`, :func:`cvxpy`, :func:`solve`.
"""

from dualopt.engine.rounds import Snapshot, iterate
from dualopt.losses import (
    AbsoluteDeviation,
    Hinge,
    Huber,
    Logistic,
    Multinomial,
    SmoothedHinge,
    Squared,
)
from dualopt.methods import (
    GIANT,
    OPEN,
    AccSDANE,
    AFedPD,
    AFedPDSAM,
    Algorithm,
    AndersonDANE,
    AndersonFedSplit,
    APDAInexact,
    DistributedLBFGS,
    DistributedNewtonCG,
    DualAscent,
    DualFL,
    DualLBFGS,
    FedADMM,
    FedAvg,
    FedCM,
    FedDR,
    FedDualAvg,
    FedDyn,
    FedPD,
    FedProx,
    FedSAM,
    FedSpeed,
    FedSplit,
    FiveGCS,
    GradientDescent,
    LazyAFedPD,
    OptimizedDualFL,
    SampledDualFL,
    Scaffnew,
    Scaffold,
)
from dualopt.methods.participation import (
    Bernoulli,
    CommunicateWithProbability,
    Full,
    Round,
    Schedule,
    UniformSubset,
    WeightedSubset,
)
from dualopt.methods.preparation import OneShotAverage, SketchedMetric
from dualopt.objectives import (
    MLP,
    Composite,
    LinearModel,
    LocalProblem,
    NonconvexPenalty,
    Quadratic,
    SharpnessAware,
    linear_model,
    mlp,
)
from dualopt.regularisers import L1, L2
from dualopt.runs.certificates import certificate
from dualopt.runs.recommendation import Recommendation, recommend
from dualopt.runs.recording import run
from dualopt.runs.reference import NotOptimalError, Reference, cvxpy, newton, solve
from dualopt.runs.trace import Trace

__version__ = "0.1.0"

__all__ = [
    "GIANT",
    "L1",
    "L2",
    "MLP",
    "OPEN",
    "AFedPD",
    "AFedPDSAM",
    "APDAInexact",
    "AbsoluteDeviation",
    "AccSDANE",
    "Algorithm",
    "AndersonDANE",
    "AndersonFedSplit",
    "Bernoulli",
    "CommunicateWithProbability",
    "Composite",
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
    "Full",
    "GradientDescent",
    "Hinge",
    "Huber",
    "LazyAFedPD",
    "LinearModel",
    "LocalProblem",
    "Logistic",
    "Multinomial",
    "NonconvexPenalty",
    "NotOptimalError",
    "OneShotAverage",
    "OptimizedDualFL",
    "Quadratic",
    "Recommendation",
    "Reference",
    "Round",
    "SampledDualFL",
    "Scaffnew",
    "Scaffold",
    "Schedule",
    "SharpnessAware",
    "SketchedMetric",
    "SmoothedHinge",
    "Snapshot",
    "Squared",
    "Trace",
    "UniformSubset",
    "WeightedSubset",
    "certificate",
    "cvxpy",
    "iterate",
    "linear_model",
    "mlp",
    "newton",
    "recommend",
    "run",
    "solve",
]
