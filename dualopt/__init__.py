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
* what is trained: :class:`Model`, :class:`Schema`, :func:`load_model`;
* references: :func:`newton`, :func:`cvxpy`, :func:`solve`;
* standard errors: :func:`inference`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

__version__ = "0.1.0"
