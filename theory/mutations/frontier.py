"""Wrong variants of what goes beyond the papers: sampling, compression, restarts, and methods with more memory."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np

from dualopt.methods import (
    GIANT,
    AccSDANE,
    AdaptiveAccSDANE,
    AdaptiveDualFL,
    AFedPD,
    AndersonDANE,
    AndersonFedSplit,
    CorrectedOptimizedDualFL,
    DistributedLBFGS,
    DualLBFGS,
    FedADMM,
    FedDyn,
    FedPD,
    FedSplit,
    FiveGCS,
    GapRestartedDualFL,
    GradientDescent,
    GrowingFedDyn,
    SampledDualFL,
)
from dualopt.methods._anderson import mixing_weights
from dualopt.methods._estimate import growth
from dualopt.methods.adaptive_acc_s_dane import FALL
from dualopt.methods.anderson_dane import SOLUTION
from dualopt.methods.compressors import CoordinateCohorts, NaturalCompression, RandK
from dualopt.methods.giant import DIRECTION
from dualopt.objectives import LinearModel, Quadratic
from dualopt.objectives.coordinates import InCoordinates, Metric, in_coordinates
from dualopt.objectives.local_problem import per_client
from dualopt.solvers import Gradient
from dualopt.solvers.stopping import Steps
from theory.frontier._compressed import through
from theory.frontier.anderson import Wild
from theory.frontier.rounded import Moments
from theory.mutations import feddyn, scales, splitting
from theory.mutations._edits import OtherMethodError, Variant, change, edit, edited, first_client, instead, parameters

__all__ = ["ANDERSON", "DANE", "METRIC", "MOMENTUM", "MUTATIONS", "RESTARTS", "SIMILAR"]


# Sampling and compression.


def with_compressor(base: type, *texts: str, caught: str) -> Variant:
    """Return the row of an edited compressor, wherever a case has it."""

    def wrong(right: Any) -> Any:
        if type(right) is not base:
            raise OtherMethodError(f"a mutation of {base.__name__}.")
        return edited(base, *texts)(**{f.name: getattr(right, f.name) for f in fields(right)})

    def of(case: Any) -> Any:
        if isinstance(case, Moments):
            return replace(case, compressor=wrong(case.compressor))
        return through(wrong(getattr(case, "known", {}).get("compressor")), case)

    return change(of, caught)


def own_weights(method: Any, right: Any, c: Any, *arguments: Any) -> Any:
    """Solve local problems with one nu for the clients of the user."""
    return right(c._replace(zeta=c.zeta / per_client(scales.scales_of(arguments[1]), c.zeta)), *arguments)


def one_step(method: Any, right: Any, c: Any, message: Any, oracle: Any, round: Any) -> Any:
    """Take proximal steps of one length for the clients of the user."""
    weight = 1.0 / (method.step * scales.scales_of(oracle))
    x = oracle.solve(start=c.x, weight=weight, center=2.0 * message - c.z).theta
    change = 2.0 * (x - message)
    return c._replace(z=c.z + change, x=x), change


def first_round(method: Any, right: Any, c: Any, message: Any, oracle: Any, round: Any) -> Any:
    """Do what the clients do in the first round."""
    return right(c, message, oracle, replace(round, n=0))


STEP = (FedSplit, "local", "2.0 * (x - message)")
W = (SampledDualFL, "local", "weight=self.nu * (1.0 / t - 1.0), center=w")
GROWTH = "growing_feddyn"
ROUNDED = (NaturalCompression, "compress", "draws * (high - low) < size - low")
LOGARITHM = "draws < xp.log2(xp.where(low > 0, size, 1.0) / xp.where(low > 0, low, 1.0))"


MUTATIONS: dict[str, Variant] = {
    **{
        f"FedDyn: {name}": feddyn.MUTATIONS[name].but("sampled_feddyn")
        for name in (
            *("1/P for 1/N in h", "no h", "wrong sign of h", "no memory", "half the memory"),
            "one client for the mean",
        )
    },
    **{
        f"{name}, with the ridge": splitting.MUTATIONS[name].but("sampled_fivegcs")
        for name in ("5GCS: N/C forgotten", "5GCS: dual N times too large", "5GCS: wrong sign of the dual")
    },
    **{
        f"{name}, all clients": splitting.MUTATIONS[name].but("full_fivegcs")
        for name in ("5GCS: dual N times too large", "5GCS: wrong sign of the dual")
    },
    **{
        f"{name}, cohorts": splitting.MUTATIONS[name].but("cohorts_of_fivegcs")
        for name in ("5GCS: N/C forgotten", "5GCS: dual N times too large", "5GCS: wrong sign of the dual")
    },
    "5GCS: twice gamma*": parameters(
        FiveGCS, lambda method, case: {"gamma": 2.0 * method.gamma, "tau": 0.5 * method.tau}, "sampled_fivegcs"
    ),
    "FedDyn: half of alpha*": parameters(FedDyn, lambda method, case: {"alpha": 0.5 * method.alpha}, "sampled_feddyn"),
    "GrowingFedDyn: growth of the server alone": instead(GrowingFedDyn, "local", first_round, GROWTH),
    "GrowingFedDyn: weight of the last round": edit(
        GrowingFedDyn, "server", "self.alpha_of(round.n + 1)", "self.alpha_of(round.n)", caught=GROWTH
    ),
    "GrowingFedDyn: three times the growth": parameters(
        GrowingFedDyn, lambda method, case: {"growth": 3.0 * method.growth}, GROWTH
    ),
    **{
        f"SampledDualFL: {name}": edit(SampledDualFL, *texts, caught="sampled_dualfl_potential")
        for name, texts in {
            "no momentum": ("server", "w = (1.0 - t) * theta + t * v", "w = theta"),
            "t from 1": ("init", "self.least", "1.0"),
            "P/N forgotten in v": ("server", "moved / server.t", "moved / round.fraction / server.t"),
            "the first weight always": (*W[1:], "weight=self.nu * (1.0 / self.least - 1.0), center=w"),
            "no 1/t in the dual step": ("local", "self.nu / t * (w - theta)", "self.nu * (w - theta)"),
            "proximal term at zero": (*W[1:], "weight=self.nu * (1.0 / t - 1.0), center=0.0 * w"),
        }.items()
    },
    "FedSplit: half the step": edit(*STEP, "(x - message)", caught="sampled_fedsplit"),
    **{
        f"{of.__name__}: {name}": edit(of, *texts, caught="averaged_reflections")
        for of, name, texts in (
            (FedPD, "half the dual step", ("local", "(theta - c.x0) / self.eta", "0.5 * (theta - c.x0) / self.eta")),
            (FedDyn, "half the memory", ("local", "c.gradient - self", "c.gradient - 0.5 * self")),
            (AFedPD, "mean dual forgotten", ("server", "mean + dual / self.rho", "mean")),
            (FedADMM, "1/P for 1/N", ("server", "round.fraction if", "1.0 if")),
            (FedADMM, "dual step of the wrong sign", ("local", "c.dual + self.rho", "c.dual - self.rho")),
        )
    },
    "OptimizedDualFL: weights forgotten": instead(CorrectedOptimizedDualFL, "local", scales.forgotten, "scaled_dualfl"),
    "OptimizedDualFL: one nu in the local problems": instead(
        CorrectedOptimizedDualFL, "local", own_weights, "scaled_dualfl"
    ),
    "Compressed FedSplit: 1/(1 + omega) forgotten": edit(
        *(FedSplit, "local", "(x - message))", "(x - message), unbiased=True)"),
        caught="compressed_fedsplit rounded_fedsplit",
    ),
    "Compressed FedSplit: the client keeps the whole change": edit(
        *(FedSplit, "local", "c.z + change, x)", "c.z + 2.0 * (x - message), x)"),
        caught="compressed_fedsplit rounded_fedsplit",
    ),
    **{
        f"Compressed gradient descent: {name}": edit(GradientDescent, *texts, caught="gradient_descent_with_memory")
        for name, texts in {
            "no memory": (
                "local",
                "oracle.evaluate(message).grad_f",
                "oracle.sent(oracle.evaluate(message).grad_f, 0.0)",
            ),
            "the step of the server a tenth longer": ("server", "self.step * mean", "1.1 * self.step * mean"),
        }.items()
    },
    "Compressed FedSplit: twice what arrives": edit(
        *(FedSplit, "local", "c.z + change, x)", "c.z + 2.0 * change, x)"), caught="contractive_fedsplit"
    ),
    "Compressed FedDyn: the whole memory": edit(
        *(FedDyn, "local", "theta = oracle.sent(", "whole, theta = theta, oracle.sent("),
        *("local", "self._memory(round) * (theta - message)", "self.alpha * (whole - message)"),
        caught="compressed_feddyn",
    ),
    "Compressed FedDyn: 1/(1 + omega) forgotten": instead(
        FedDyn, "_memory", lambda method, right, round: method.alpha, "compressed_feddyn"
    ),
    "Compressed FedDyn: N for c": edit(
        *(FedDyn, "server", "theta = x - h /"),
        "theta = server.theta + round.kept * (x - server.theta) - h /",
        caught="compressed_feddyn",
    ),
    "Rounded FedSplit: the nearest power": with_compressor(
        *(*ROUNDED, "0.5 * (high - low) < size - low"), caught="rounded_fedsplit compressor_moments"
    ),
    "Rounded FedSplit: a coin in the logarithm": with_compressor(
        *(*ROUNDED, LOGARITHM), caught="rounded_fedsplit compressor_moments"
    ),
    "Compressed FedSplit: always the same coordinates": with_compressor(
        RandK, "compress", "rng.permutation(d)", "np.arange(d)", caught="compressed_fedsplit"
    ),
    "Compressed FedSplit: cohorts not scaled": with_compressor(
        CoordinateCohorts, "compress", "scale * x", "x", caught="compressed_fedsplit compressed_feddyn"
    ),
    "FedSplit: weights forgotten": instead(FedSplit, "local", scales.forgotten, "sampled_fedsplit"),
    "FedSplit: one step for all in the local problems": instead(FedSplit, "local", one_step, "sampled_fedsplit"),
    "FedSplit: P/N for the weight of the cohort": edit(
        FedSplit, "server", "round.fraction", "round.turnout", caught="sampled_fedsplit"
    ),
    "FedSplit: 1/P for 1/N": edit(FedSplit, "server", "round.fraction * mean", "mean", caught="sampled_fedsplit"),
}


# Mixtures of points.


def equal_weights(method: Any, right: Any, gram: Any, known: int, rounding: float) -> tuple[float, ...]:
    """Return the mean of all points."""
    return (0.0,) * (method.memory + 1 - known) + (1.0 / known,) * known


def longer_weights(method: Any, right: Any, *arguments: Any) -> tuple[float, ...]:
    """Return weights with the sum 1.01."""
    return tuple(1.01 * a for a in right(*arguments))


def largest(method: Any, right: Any, gram: Any, known: int, rounding: float) -> tuple[float, ...]:
    """Return the largest mixture for the smallest."""
    found = mixing_weights(np.linalg.pinv(gram[-known:, -known:]))
    return (0.0,) * (method.memory + 1 - known) + tuple(map(float, found))


def first_solution(method: Any, right: Any, c: Any, message: Any, *arguments: Any) -> Any:
    """Upload the solution of the first client for those of all: its inverse Hessian alone."""
    asked = message.asks == SOLUTION
    return first_client(method, right, c, message, *arguments) if asked else right(c, message, *arguments)


QUADRATIC, SAFE = "anderson_quadratics", "anderson_safeguard"
MIXED = (AndersonFedSplit, "_mixed")
PRODUCTS = (AndersonFedSplit, "local", "Upload(r, oracle.in_single(products))")
JUDGED = (Wild, "server", "self._judged(server.history, mean.products)")
AGE = "age=min(server.history.age, 1) if self.memory > 1 else 0"
ANDERSON: dict[str, Variant] = {
    "weights with sum 1.01": instead(*MIXED, longer_weights, QUADRATIC),
    "equal weights": instead(*MIXED, equal_weights, QUADRATIC),
    "the first client's Gram matrix": edit(*PRODUCTS, "Upload(r, 0.0 * products + products[:1])", caught=QUADRATIC),
    "products in the wrong order": edit(
        *(*PRODUCTS, "Upload(r, np.concatenate([products[:, -2::-1], products[:, -1:]], axis=1))"), caught=QUADRATIC
    ),
    "the largest residual": instead(*MIXED, largest, QUADRATIC),
    "points for images": edit(
        AndersonFedSplit, "local", "(*c.images[1:], z + r)", "(*c.images[1:], z)", caught=f"{QUADRATIC} {SAFE}"
    ),
    "another consensus": edit(
        *(AndersonFedSplit, "server", "mixture(weights, images)", "images[-1]"), caught=QUADRATIC
    ),
    "another consensus, wild weights": edit(Wild, "server", "mixture(weights, images)", "images[-1]", caught=SAFE),
    "nothing refused": edit(
        *(*JUDGED, "self._judged(server.history._replace(least=np.inf), mean.products)"), caught=SAFE
    ),
    # Weights that are not refused and do not help, and no plain step but after a refusal.
    "no plain steps": edit(
        *(*JUDGED, f"self._judged(server.history._replace({AGE}), mean.products)"),
        *("_mixed", "tuple(map(float, drawn))", "(1.0,) + (0.0,) * (known - 1)"),
        caught=SAFE,
    ),
    "plain steps from the newest point": instead(Wild, "_plain", lambda method, right, best: right(0), SAFE),
    "the model of refused points": edit(Wild, "server", "server.theta if refused else ", "", caught=SAFE),
    "local problems not solved": parameters(
        AndersonFedSplit, lambda method, case: {"solver": Gradient(), "stop": Steps(steps=1)}, f"{QUADRATIC} {SAFE}"
    ),
}
DANE: dict[str, Variant] = {
    "the usual inner product": edit(
        *(
            AndersonDANE,
            "server",
            "_products(residuals, gradients)",
            "_products(residuals, tuple(-p for p in residuals))",
        ),
        caught="anderson_dane_quadratics",
    ),
    "one client's solution": instead(AndersonDANE, "local", first_solution, "anderson_dane_quadratics"),
    "own gradients kept": edit(
        *(AndersonDANE, "local", "message.vector - c.gradient", "message.vector - 0.0 * c.gradient"),
        caught="anderson_dane_quadratics",
    ),
    "three times the step": edit(
        *(AndersonDANE, "server", "mixture(weights, points) + eta", "mixture(weights, points) + 3.0 * eta"),
        caught="anderson_dane_quadratics",
    ),
    "weights with sum 1.01": instead(AndersonDANE, "_mixed", longer_weights, "anderson_dane_quadratics"),
    "equal weights": instead(AndersonDANE, "_mixed", equal_weights, "anderson_dane_quadratics"),
    "plain steps are refused": edit(
        *(AndersonDANE, "_accepted_or_not", "max(server.values), slope", "server.values[-1], 1e4 * slope"),
        caught="anderson_dane_quadratics",
    ),
}


# Clients that are alike.


def first_direction(method: Any, right: Any, c: Any, message: Any, *arguments: Any) -> Any:
    """Upload the direction of the first client for those of all."""
    asked = message.asks == DIRECTION
    return first_client(method, right, c, message, *arguments) if asked else right(c, message, *arguments)


def nothing_judged(method: Any, right: Any, server: Any, mean: Any) -> Any:
    """Let the weight fall, and the share be alpha, whatever the solutions are."""
    new, message = right(server, mean._replace(excess=0.0 * np.asarray(mean.excess)))
    search = new.search._replace(weight=server.search.weight * FALL, accepted=True)
    return new._replace(search=search), message._replace(weight=search.weight)


def old_weight(method: Any, right: Any, server: Any, mean: Any) -> Any:
    """Let the gradient of the bound, and the point that follows, belong to the weight before."""
    return right(server._replace(search=server.search._replace(weight=server.search.weight / FALL)), mean)


def point_of_the_old_weight(method: Any, right: Any, server: Any, mean: Any) -> Any:
    """Make the next point for the weight that has just been judged."""
    new, message = right(server, mean)
    alpha, _ = growth(new.b, server.search.weight, method.mu)
    point = (1.0 - alpha) * new.theta + alpha * new.v
    return new._replace(point=point), message._replace(vector=point)


def full_share(method: Any, right: Any, server: Any, mean: Any) -> Any:
    """Make a refused step in full."""
    new, message = right(server, mean)
    if new.search.accepted is not False:
        return new, message
    full = right(server, mean._replace(excess=0.0 * np.asarray(mean.excess)))[0]
    return full._replace(search=new.search._replace(share=full.search.share)), message


def plain_steps(times: float, method: Any, right: Any, gram: Any, rounding: Any) -> Any:
    """Take plain steps of another length."""
    step = right(gram, rounding)
    return step if np.any(step[:-1]) else times * step


def old_pairs(method: Any, right: Any, gram: Any, rounding: Any) -> Any:
    """Leave out the newest pair."""
    wrong, newest = gram.copy(), [method.history - 1, 2 * method.history - 1]
    wrong[newest, :] = 0.0
    wrong[:, newest] = 0.0
    return right(wrong, rounding)


LINE, SENT = (GIANT, "server", "step = t *"), (GIANT, "server", "step=-mean, asked=SLOPES), Message(mean, SLOPES)")
ADAPTIVE = "acc_s_dane_adaptive"
SIMILAR: dict[str, Variant] = {
    "GIANT: DANE's step": edit(
        *(
            GIANT,
            "server",
            "step = t * (1.0 - self.relaxation * max(0.0, 1.0 - t)) * server.step",
            "step = server.step",
        ),
        caught="giant_quadratics",
    ),
    "GIANT: a third of the step": edit(*LINE, "step = t / 3.0 *", caught="giant_quadratics"),
    "GIANT: steps far too short": edit(*LINE, "step = 1e-3 * t *", caught="giant_descent"),
    "GIANT: the first client's direction": instead(GIANT, "local", first_direction, "giant_quadratics"),
    "GIANT: own gradients": edit(
        *(GIANT, "local", "message.vector, weight=self", "oracle.evaluate(c.theta).grad_f, weight=self"),
        caught="giant_quadratics giant_descent",
    ),
    "GIANT: another relaxation": edit(GIANT, "server", "self.relaxation *", "0.6 *", caught="giant_quadratics"),
    "GIANT: twice the direction": edit(
        *SENT, "step=-2.0 * mean, asked=SLOPES), Message(2.0 * mean, SLOPES)", caught="giant_descent"
    ),
    "GIANT: a fifth of the direction": edit(
        *SENT, "step=-0.2 * mean, asked=SLOPES), Message(0.2 * mean, SLOPES)", caught="giant_descent"
    ),
    "GIANT: everything is accepted": edit(
        *(*LINE, "step = 4.0 * t *"),
        *("_judged", "accepts(server.value, server.gradient, server.step, new)", "True"),
        caught="giant_descent",
    ),
    "Acc-S-DANE: own gradients kept": edit(
        *(AccSDANE, "local", "message.vector - c.gradient", "message.vector - 0.0 * c.gradient"), caught="acc_s_dane"
    ),
    "Acc-S-DANE with a weight that adapts: own gradients kept": edit(
        *(AdaptiveAccSDANE, "local", "message.vector - c.gradient", "message.vector - 0.0 * c.gradient"),
        caught=ADAPTIVE,
    ),
    "Acc-S-DANE: no momentum": edit(AccSDANE, "server", "extrapolated(mean, v, b, w, mu)", "mean", caught="acc_s_dane"),
    "Acc-S-DANE: half the weight": edit(
        AccSDANE, "local", "weight=self.weight", "weight=0.5 * self.weight", caught="acc_s_dane"
    ),
    "Acc-S-DANE: the third vector forgotten": edit(
        AccSDANE, "server", "mu * mean - w * (y - mean)", "mu * mean", caught="acc_s_dane"
    ),
    "Acc-S-DANE: three times mu": edit(
        AccSDANE, "server", "self.weight, self.mu, server", "self.weight, 3.0 * self.mu, server", caught="acc_s_dane"
    ),
    "Acc-S-DANE: sign of the distances": edit(
        AdaptiveAccSDANE, "_judged", "- float(mean.excess)", "+ float(mean.excess)", caught=ADAPTIVE
    ),
    "Acc-S-DANE: nothing is judged": instead(AdaptiveAccSDANE, "_judged", nothing_judged, ADAPTIVE),
    "Acc-S-DANE: the old weight": instead(AdaptiveAccSDANE, "_judged", old_weight, ADAPTIVE),
    "Acc-S-DANE: the point of the old weight": instead(AdaptiveAccSDANE, "_judged", point_of_the_old_weight, ADAPTIVE),
    "Acc-S-DANE: never raised": edit(AdaptiveAccSDANE, "_judged", "RISE if not", "FALL if not", caught=ADAPTIVE),
    "Acc-S-DANE: raised too far": edit(
        AdaptiveAccSDANE, "_judged", "RISE if not", "8.0 * RISE if not", caught=ADAPTIVE
    ),
    "Acc-S-DANE: always taken": edit(
        AdaptiveAccSDANE, "_judged", "else (server.theta, search.energy)", "else (new, search.energy)", caught=ADAPTIVE
    ),
    "Acc-S-DANE: the full share": instead(AdaptiveAccSDANE, "_judged", full_share, ADAPTIVE),
    "L-BFGS on the dual: short plain steps": instead(
        DualLBFGS, "_direction", partial(plain_steps, 0.2), "dual_lbfgs_descent"
    ),
    "L-BFGS on the dual: long plain steps": instead(
        DualLBFGS, "_direction", partial(plain_steps, 2.5), "dual_lbfgs_is_central"
    ),
    "L-BFGS on the dual: nothing is refused": edit(
        *(DualLBFGS, "server", "accepted = server.plain", "accepted = True"),
        *("_direction", "return -inverse", "return -3.0 * inverse"),
        caught="dual_lbfgs_descent",
    ),
    "L-BFGS on the dual: half of the mean": edit(
        *(DualLBFGS, "local", "q = c.theta - message.theta", "q = c.theta - 0.5 * message.theta"),
        *("local", "moved = theta - message.theta", "moved = theta - 0.5 * message.theta"),
        caught="dual_lbfgs_descent dual_lbfgs_is_central",
    ),
    "L-BFGS on the dual: the shift of the mean forgotten": edit(
        DualLBFGS, "server", "mean.theta - server.latest", "0.0 * mean.theta", caught="dual_lbfgs_is_central"
    ),
    "L-BFGS on the dual: old pairs": instead(DualLBFGS, "_direction", old_pairs, "dual_lbfgs_is_central"),
}


# Restarts of DualFL.


def first_point(method: Any, right: Any, *arguments: Any) -> Any:
    """Upload the first client's point where the mean belongs, and the scalars of all."""
    c, sent = right(*arguments)
    return c, sent._replace(theta=np.broadcast_to(sent.theta[:1], sent.theta.shape))


BETA = (GapRestartedDualFL, "server", "Message(theta, beta")
RESTARTS: dict[str, Variant] = {
    "momentum kept at a restart": edit(
        GapRestartedDualFL, "server", "(1.0, 0.0) if again", "(1.0, 0.9) if again", caught="restart_gap"
    ),
    "no momentum": edit(*BETA, "Message(theta, 0.0", caught="restart_gap"),
    "the first client for the mean": instead(GapRestartedDualFL, "local", first_point, "restart_gap"),
    "the mean without weights": instead(GapRestartedDualFL, "local", scales.forgotten, "restart_gap"),
    "momentum beyond 1": edit(*BETA, "Message(theta, 1.3", caught="restart_energy"),
    "epochs that end after any fall": edit(
        GapRestartedDualFL,
        "server",
        "0.0) if again else",
        "0.0) if again or round.n % 3 == 2 else",
        caught="restart_epochs",
    ),
}


# Momentum that follows the curvature.


def adapting(old: str, new: str, caught: str) -> Variant:
    """Return an edit of the server."""
    return edit(AdaptiveDualFL, "server", old, new, caught=caught)


FORGOTTEN = "gap=gap), Message(theta, 0.0, t)"
MOMENTUM: dict[str, Variant] = {
    "estimates that nothing refutes": adapting("> server.left *", "> 1e9 * server.left *", "adaptive_rounds"),
    "a tenth of the curvature met": adapting("min(server.s, met)", "min(server.s, 0.1 * met)", "adaptive_rounds"),
    "the square root of the estimate": adapting("s / (1.0 + s))", "s**0.5 / (1.0 + s))", "adaptive_gap"),
    "momentum that is not forgotten": adapting(FORGOTTEN, FORGOTTEN.replace("0.0", "0.9"), "adaptive_gap"),
    "growing momentum of 1.3": adapting("momentum(server.t, 0.0)", "(server.t + 0.5, 1.3)", "adaptive_gap"),
    "estimates that fall too far": adapting("max(0.5 * s, LEAST)", "1e-4 * s", "adaptive_rounds"),
    "epochs that begin with any gap": adapting("gap <= server.gap and", "round.n > 1 or", "adaptive_rounds"),
    "the mean without weights": instead(AdaptiveDualFL, "local", scales.forgotten, "adaptive_gap"),
}


# Coordinates of a metric.


class GradientsLeft(InCoordinates):
    """Points are changed, and gradients are not."""

    def value_and_gradient(self, theta):
        """Return those of the user."""
        return self.objective.value_and_gradient(self.model(theta))

    def gradient(self, theta):
        """Return those of the user."""
        return self.value_and_gradient(theta)[1]


def in_metric(power: float) -> Any:
    """Return what changes clients to the coordinates of a power of the metric."""
    return lambda f, M: in_coordinates(f, M._replace(values=M.values**power, rest=M.rest**power))


def gradients_left(f: Any, M: Metric) -> Any:
    """Change points alone."""
    return GradientsLeft(objective=f, metric=M) if isinstance(f, LinearModel) else in_coordinates(f, M)


def linear_term_left(f: Any, M: Metric) -> Any:
    """Change matrices alone."""
    changed = in_coordinates(f, M)
    return replace(changed, b=f.b) if isinstance(f, Quadratic) else changed


IN_METRIC, LBFGS = "fedsplit_in_the_metric lbfgs_in_the_metric", "lbfgs_in_the_metric"
KEPT = (DistributedLBFGS, "server", "mean.gradient, step, s, y), theta + step")
METRIC: dict[str, Variant] = {
    name: change(lambda case, changed=changed: case.but(changed=changed), IN_METRIC)
    for name, changed in {
        "no metric": in_metric(0.0),
        "the metric squared": in_metric(2.0),
        "the inverse metric": in_metric(-1.0),
        "gradients left as they are": gradients_left,
        "linear terms left as they are": linear_term_left,
    }.items()
} | {
    "half the step": parameters(FedSplit, lambda method, case: {"step": 0.5 * method.step}, "fedsplit_in_the_metric"),
    "twice the step": parameters(FedSplit, lambda method, case: {"step": 2.0 * method.step}, "fedsplit_in_the_metric"),
    "the newest pair is forgotten": edit(
        *(*KEPT, "mean.gradient, step, (*s[:-1], 0.0 * s[-1]), y), theta + step"), caught=LBFGS
    ),
    # No matrix of BFGS gives twice the step where there is a pair.
    "twice the step of L-BFGS": edit(
        *(DistributedLBFGS, "server", "step = -_product", "step = -(1.0 + np.any(y[-1])) * _product"), caught=LBFGS
    ),
}
