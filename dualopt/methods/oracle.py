"""What a method may ask of the active clients in a round: solutions of local problems, gradients, Hessian products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dualopt.arrays._checks import require
from dualopt.arrays.xp import Array, broadcast, to_numpy
from dualopt.methods.compressors import Uplink
from dualopt.methods.participation import Round
from dualopt.objectives import LocalProblem, Objective, Reweighted
from dualopt.objectives.local_problem import Evaluation
from dualopt.objectives.scales import in_own_units
from dualopt.solvers import LocalSolution, LocalSolver
from dualopt.solvers._loop import evaluated, norm, works_in_single
from dualopt.solvers.newton import conjugate_gradients
from dualopt.solvers.stopping import Stop

__all__ = ["Oracle"]


class Oracle:
    """The active clients of one call; it broadcasts, solves, evaluates, and counts what it is asked.

    Parameters
    ----------
    objective : Objective
        The ``f_j`` of the ``P`` active clients.
    solver : LocalSolver
        Their local solver.
    stop : Stop
        Its stopping rule.
    solver_state : tree of arrays
        The solver's state of these clients.
    round : Round
        The round.
    uplink : Uplink, optional
        What compresses uploads, if something does.

    Attributes
    ----------
    solver_state : tree of arrays
        The same after the latest solution.

    Examples
    --------
    >>> import numpy as np
    >>> from dualopt.objectives import Quadratic
    >>> from dualopt.methods.participation import first_round
    >>> from dualopt.solvers import Exact
    >>> from dualopt.solvers.stopping import Steps
    >>> f = Quadratic(A=np.array([[[1.0]], [[3.0]]]), b=np.array([[1.0], [6.0]]))
    >>> oracle = Oracle(f, Exact(), Steps(steps=1), (), first_round(2))
    >>> oracle.solve(start=np.zeros(1)).theta.tolist(), oracle.gradients
    ([[1.0], [2.0]], [1.0, 1.0])
    """

    def __init__(
        self,
        objective: Objective,
        solver: LocalSolver,
        stop: Stop,
        solver_state: Any,
        round: Round,
        uplink: Uplink | None = None,
    ) -> None:
        self.objective = objective
        self.solver_state = solver_state
        self._charges: list[tuple[float, ...]] = []
        self._shape = (objective.n_clients, *objective.shape)
        self._solver = solver
        self._stop = stop
        self._round = round
        self._uplink = uplink
        self._last: LocalSolution | None = None

    @property
    def gradients(self) -> list[float]:
        """Local gradients charged to each client so far."""
        return [sum(own) for own in zip(*self._charges, strict=True)] or [0.0] * self.objective.n_clients

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the model."""
        return self.objective.shape

    @property
    def mu(self) -> Array:
        """Strong convexity constants of the active clients, shape ``(P,)``."""
        return self.objective.mu

    @property
    def L(self) -> Array:
        """Smoothness constants of the active clients, shape ``(P,)``."""
        return self.objective.L

    def solve(
        self,
        start: Array,
        *,
        linear: Array | None = None,
        weight: float | Array = 0.0,
        center: Array | None = None,
        solver: LocalSolver | None = None,
        stop: Stop | None = None,
    ) -> LocalSolution:
        r"""Solve the local problems :math:`\min f_j + \langle b_j, \cdot\rangle + \frac{w_j}2 |\cdot - c_j|^2`.

        Parameters
        ----------
        start, linear, center : array, shape (P, *shape) or shape
            Where to start, ``b`` and ``c``; zero when ``linear`` or ``center`` is not given.
        weight : float or array of shape (P,), default 0
            ``w``.
        solver, stop
            Those of the method when not given. Another solver makes a first call; the state of the method's is kept.

        Returns
        -------
        LocalSolution
            With ``theta``, the ``evaluation`` there and the ``length`` of the steps.
        """
        f, own = self.objective, solver is None
        if isinstance(weight, float | int) and weight == 0:
            center = None
        elif center is None:
            center = f.zeros()
        linear = None if linear is None else broadcast(linear, self._shape)
        problem = in_own_units(LocalProblem(objective=f, linear=linear, weight=weight, center=center))
        solver, stop = self._solver if solver is None else solver, self._stop if stop is None else stop
        found = self._solved(solver, problem, broadcast(start, self._shape), stop, self.solver_state if own else ())
        if own:
            self.solver_state = found.solver_state
        return self._noted(found)

    def evaluate(self, theta: Array) -> Evaluation:
        """Return ``f_j`` and its gradient at ``theta``, shape ``(P, *shape)`` or ``shape``; one gradient.

        At the ``theta`` of the latest solution nothing is computed again, and charged only if the solver has not.
        """
        last = self._last
        if last is not None and theta is last.theta and last.evaluation is not None:
            if not last.charged:
                self._charge(self.objective.gradient_cost)
                self._last = last._replace(charged=True)
            return self._asked(last).evaluation
        problem = in_own_units(LocalProblem(objective=self.objective))
        return self._noted(evaluated(problem, broadcast(theta, self._shape))).evaluation

    def value(self, theta: Array) -> Array:
        """Return ``f_j(theta_j)`` at ``theta``, shape ``(P, *shape)`` or ``shape``; half a gradient."""
        self._charge(0.5)
        theta = broadcast(theta, self._shape)
        self._worked(theta)
        return self.objective.value(theta)

    def hessian_product(self, theta: Array, v: Array) -> Array:
        """Return ``hess f_j(theta_j) v_j``, shape ``(P, *shape)``; as much as a gradient."""
        require("hessian" in self.objective.offers, "hessian_product needs an objective that offers Hessian products")
        self._charge(1.0)
        theta = broadcast(theta, self._shape)
        self._worked(theta)
        operator = self.objective.hessian_operator(theta)  # pyright: ignore[reportAttributeAccessIssue]
        return operator(broadcast(v, self._shape))

    def newton_direction(
        self, theta: Array, b: Array, *, reduction: float, most: int, weight: float | Array = 0.0
    ) -> Array:
        r"""Return :math:`p_j \approx (\nabla^2 f_j(\theta_j) + w_j)^{-1} b_j` by conjugate gradients.

        They end where :math:`|b_j - (\nabla^2 f_j(\theta_j) + w_j)p_j| \le` ``reduction`` :math:`|b_j|`, or after
        ``most`` products, each of which costs as much as a gradient. The preconditioner is that of the objective, if it
        offers one.
        """
        theta, b = broadcast(theta, self._shape), broadcast(b, self._shape)
        problem = LocalProblem(objective=self.objective, weight=weight, center=theta)
        direction, products = conjugate_gradients(
            problem.hessian_operator(theta),
            b,
            tol=reduction * norm(b),
            max_iter=most,
            precondition=problem.preconditioner if "preconditioner" in self.objective.offers else None,
        )
        self._charges.append(tuple(map(float, to_numpy(products))))
        self._worked(theta)
        return direction

    def sent(self, x: Any, since: Array | float | None = None, *, unbiased: bool = False) -> Any:
        r"""Return what the server will receive of ``x``, for states and products that must be made from that.

        Without a compressor it is ``x`` itself. A method that never asks has its upload compressed afterwards; of one
        that does, what it uploads is what it was told here, and numbers that are not compressed.

        Parameters
        ----------
        x : array, shape (P, *shape), or a tree of such arrays and of others
            What is to be uploaded. Arrays of another shape, such as a number for each client, are sent as they are.
        since : array, shape (P, *shape) or shape, or number, optional
            What it is measured from, which both ends know; as ``upload_reference`` of the method says when not given.
        unbiased : bool, default False
            Whether :math:`r + C(x - r)` is received, whose mean is x, in place of :math:`r + C(x - r)/(1 + \omega)`,
            which is nearer to it: r is what it is measured from.
        """
        return x if self._uplink is None else self._uplink.sent(x, since, unbiased=unbiased)

    def in_single(self, x: Array) -> Array:
        """Return numbers beside vectors, a few of each client, as they are sent: in 32 bits with a compressor.

        Where a vector is compressed to a few bits for a number, products in full width would cost as much as it does.
        They are not compressed, though they may have the shape of the model.
        """
        return x if self._uplink is None else self._uplink.in_single(x)

    def _asked(self, solution: LocalSolution) -> LocalSolution:
        """Return a solution in the units of the method's clients; solvers know those of the user's alone."""
        g = self.objective
        if type(g) is not Reweighted:
            return solution
        found, mu = solution.evaluation, None if solution.mu is None else g.over_scales(solution.mu)
        bound, excess = (None if x is None else g.over_scales(x) for x in (solution.bound, solution.excess))
        evaluation = None if found is None else _OverScales(found, g.over_scales)
        return solution._replace(evaluation=evaluation, bound=bound, mu=mu, excess=excess)

    @property
    def solution(self) -> LocalSolution | None:
        """The latest solution or evaluation, or the first product or value, with all charges; None if there is none.

        Of clients that are :func:`dualopt.objectives.reweighted` it is of the ``f_j`` of the user.
        """
        last = self._last
        if last is None or (len(self._charges) == 1 and last.gradients is self._charges[0]):
            return last
        return last._replace(gradients=tuple(self.gradients))

    def _worked(self, theta: Array) -> None:
        """Note a round of products or values only, which is work too; it says nothing of local problems."""
        if self._last is None:
            status = ("converged",) * self.objective.n_clients
            self._last = LocalSolution(theta, None, None, None, self.solver_state, (), status)

    def _solved(
        self, solver: LocalSolver, problem: LocalProblem, start: Array, stop: Stop, state: Any
    ) -> LocalSolution:
        if not works_in_single(solver, problem.objective):
            return solver(problem, start, stop, state, self._round)
        from dualopt.solvers._mixed import solved  # few runs do

        return solved(solver, problem, start, stop, state, self._round)

    def _noted(self, solution: LocalSolution) -> LocalSolution:
        """Note a solution with its charges, and return it as it was asked for."""
        self._last = solution
        self._charges.append(solution.gradients)
        return self._asked(solution)

    def _charge(self, gradients: float) -> None:
        """Charge as many local gradients to every client."""
        self._charges.append((gradients,) * self.objective.n_clients)


class _OverScales:
    """An ``Evaluation`` divided by the scales of the clients, each part when somebody asks for it."""

    def __init__(self, evaluation: Any, over_scales: Callable[[Array], Array]) -> None:
        self._of_own, self._over = evaluation, over_scales

    def __getattr__(self, name: str) -> Array:
        if name not in Evaluation._fields:
            raise AttributeError(name)
        return self._over(getattr(self._of_own, name))
