r"""FedDyn as a primal-dual iteration on the mean of the active models and the clients' memories.

The state is :math:`(x, u_1, \dots, u_N)`: x is the mean of the models of the last active clients, :math:`u_j` the
memory of the gradient of :math:`f_j`. With :math:`\gamma = 1/\alpha` the server sends :math:`\theta = x -
\gamma\bar u`, where :math:`\bar u = \frac1N\sum_j u_j`, and a client that is active solves

.. math:: y_j = \arg\min f_j - \langle u_j, \cdot\rangle + \tfrac1{2\gamma}|\cdot - \theta|^2,
          \qquad y_j + \gamma\tilde u_j = \theta + \gamma u_j, \quad \tilde u_j \in \partial f_j(y_j). \tag{1}

Then :math:`u_j^+ = \tilde u_j` for the active clients S and :math:`x^+ = \frac1P\sum_S y_j`. At the solution :math:`x =
y_j = x^*` and :math:`u_j = u_j^* \in \partial f_j(x^*)` with :math:`\bar u^* = 0`.

**One identity.** Write :math:`d_j = y_j - x^*`, :math:`e_j = \tilde u_j - u_j^*`, :math:`b_j = u_j - u_j^*`, and
:math:`[\,\cdot\,]` for the mean over all clients. By (1), :math:`d_j + \gamma e_j = (\theta - x^*) + \gamma b_j` with
:math:`\theta - x^* = (x - x^*) - \gamma[b]`, so that the inner products of :math:`x - x^*` and :math:`[b]` cancel:

.. math:: [|d|^2] + 2\gamma[\langle d, e\rangle] + \gamma^2[|e|^2] = |x - x^*|^2 - \gamma^2|[b]|^2 + \gamma^2[|b|^2].
          \tag{2}

**A uniform cohort** of P = pN clients has, by Jensen's inequality, and because a memory is renewed with probability p,

.. math:: \mathbb E|x^+ - x^*|^2 \le [|d|^2], \qquad \mathbb E[|b^+|^2] = (1 - p)[|b|^2] + p[|e|^2]. \tag{3}

**One weight for each client**, :math:`\gamma_j = 1/\alpha_j`, and weights :math:`\omega_j` with the sum 1 and
:math:`\omega_j\gamma_j = \Gamma/N` for all j; :math:`\theta = x - \Gamma\bar u`. Again the inner products of
:math:`x - x^*` and :math:`[b]` cancel, in :math:`\sum_j\omega_j|d_j + \gamma_je_j|^2`:

.. math:: \sum_j\omega_j\bigl(|d_j|^2 + 2\gamma_j\langle d_j, e_j\rangle + \gamma_j^2|e_j|^2\bigr)
          = |x - x^*|^2 - \Gamma^2|[b]|^2 + \sum_j\omega_j\gamma_j^2|b_j|^2. \tag{4}

Theorems A and C add what the clients' convexity says of :math:`\langle d, e\rangle`. The Lyapunov function is written
as the squared norm of :func:`feddyn_errors`, so that its growth is known for all states.
"""

from __future__ import annotations

import math

import numpy as np

from dualopt.arrays.xp import Array
from dualopt.engine.rounds import State, initial_state
from dualopt.objectives.local_problem import per_client
from theory._cases import Case
from theory.baselines.contraction import Errors

__all__ = ["feddyn_errors"]


def feddyn_errors(case: Case, dual: float | Array, *, alpha: float | None = None) -> Errors:
    r"""Return :math:`x - x^*` and :math:`\sqrt{\text{dual}/N}\,(u_j - u_j^*)` for states before a round with ``alpha``.

    ``alpha`` is that of the method when not given; ``dual`` is a number, or one for each client, shape (N,). The
    :math:`u_j` are those of the plain clients, memories times their masses.
    """
    f, method = case.objective, case.algorithm
    size, shape = math.prod(f.shape), case.subgradients.shape
    scale = np.reshape(np.sqrt(np.asarray(dual) / f.n_clients), (-1, *(1,) * len(f.shape)))
    scale, weight = scale * per_client(case.masses, case.subgradients), method.alpha if alpha is None else alpha
    start = initial_state(method, f, case.theta)

    def of(state: State) -> Array:
        x = state.server.theta + state.server.h / weight
        memories = scale * (state.clients.gradient - case.subgradients)
        return np.concatenate([np.ravel(x - case.theta), np.ravel(memories)])

    def state(e: Array) -> State:
        x, u = case.theta + e[:size].reshape(f.shape), case.subgradients + e[size:].reshape(shape) / scale
        h = f.mean(u)
        theta = x - h / weight
        return State(start.server._replace(theta=theta, h=h), theta, start.clients._replace(gradient=u))

    return Errors(size + case.subgradients.size, of, state)
