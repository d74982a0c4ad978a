"""What follows from the project alone: what the server can hold a site to, and a site the server."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np

from dualopt.arrays._checks import require
from dualopt.engine import Host, RefusedError
from dualopt.engine import _protocol as protocol
from dualopt.engine.secure_sums import _messages as sums
from dualopt.federation.preparing import Prepared
from dualopt.federation.project import Project
from dualopt.federation.settings import example_of
from dualopt.methods.compressors._uplink import or_none
from dualopt.methods.participation import Full, WeightedSubset, as_participation
from dualopt.objectives._weights import parse_numbers, unequal
from dualopt.regularisers import Zero
from dualopt.spec import Spec

__all__ = ["require_agreed_client_info", "require_agreed_requests"]


def require_agreed_client_info(
    project: Project, found: Sequence[protocol.ClientInfo], prepared: Prepared | None = None
) -> None:
    """Refuse a site whose constants are not those that any data would have.

    ``mu_j`` and its rounding, on which certificates rest, do not depend on data. ``L_j`` and, where the project gives
    none, the number of rows do: these are believed. How rows are ``prepared`` says how many features there are.

    Raises
    ------
    ValueError
        If something is not as the project has it; the sentence names it, and the site.
    """
    (expected,) = Host(example_of(project, prepared=prepared), 0).answer([protocol.Describe()])
    for number, (site, info) in enumerate(zip(project.sites, found, strict=True)):
        _require_like(expected, info, site)
        of, rows = f"of site {site} must be", info.sizes
        require(info.clients == (number,), f"clients {of} its place among the sites, {number}", info.clients)
        weights = example_of(project, number, prepared).weights
        if project.client_weights == "rows":
            weights = None if rows is None else tuple(map(float, rows))
            if project.class_weight is not None:  # the sum of what rows count, which follows from labels
                weights = info.weights
        require(info.weights == weights, f"client weight {of} what follows from the project, {weights}", info.weights)
        if project.rows:
            require(rows == (project.rows[number],), f"sizes {of} what the project says, {project.rows[number]}", rows)
        if project.storage != "auto":
            sparse = project.storage == "sparse"
            require(info.is_sparse == sparse, f"storage {of} what the project says, {project.storage}")


def _require_like(expected: protocol.ClientInfo, info: protocol.ClientInfo, site: str) -> None:
    for name in ("mu", "mu_rounding", "zero"):
        there, here = getattr(info, name), getattr(expected, name)
        same = there.dtype == here.dtype and np.array_equal(there, here)
        require(same, f"{name} of site {site} must be {here.tolist()}, which follows from the project", there.tolist())
    for name in protocol.KIND:
        there, here = getattr(info, name), getattr(expected, name)
        require(there == here, f"{name} of site {site} must be {here}, which follows from the project", there)
    finite = bool(np.isfinite(info.L).all())
    smooth = bool(np.isfinite(expected.L).all())
    require(finite == smooth, f"L of site {site} must be {'finite' if smooth else 'infinite'} for this loss")


def require_agreed_requests(project: Project, number: int, requests: Sequence[Any]) -> None:
    """Refuse what a server that follows the project does not ask of the site with this number.

    The method must be that of the project, with its parameters; those that the project leaves open follow from
    constants of all sites, so that a site cannot know them. States are for the checkpoints of runs whose sites live and
    die with the server: a site keeps its own.

    Raises
    ------
    RefusedError
        If there is such a request.
    """
    adding = [request.request for request in requests if isinstance(request, sums.Add)]
    if any(isinstance(request, tuple(sums.ANSWERS)) for request in requests) and project.secure == "none":
        raise RefusedError("the project has no secure sums", code="asked")
    for request in [*requests, *adding]:
        if isinstance(request, protocol.States | protocol.Restore):
            raise RefusedError(f"{type(request).__name__} is not for sites, which keep their states", code="asked")
        if isinstance(request, protocol.Information) and not project.inference:
            raise RefusedError("Hessians are not asked for in the project, which has inference = false", code="asked")
        if isinstance(request, protocol.Start):
            _require_start(project, number, request)
        if not 0 <= (n := getattr(request, "n", 0)) <= project.rounds:
            raise RefusedError(f"round {n} is not one of the {project.rounds} of the project", code="asked")
        if isinstance(request, protocol.Propose):
            agreed = request.n_clients == project.n_clients and request.seed == project.seed
            if not agreed or request.clients not in (None, (number,)):
                raise RefusedError("a round must be one of all sites, with the seed of the project", code="asked")
            if (drawn := _draws(project, number)) is not None and drawn(request.n) != (True, request.communicate):
                raise RefusedError(f"the participation of the project has no such round {request.n}", code="asked")
        if project.secure == "none" and getattr(request, "partial_sums", False):
            raise RefusedError("sums over clients are not for sites, which have one each", code="asked")


@lru_cache(maxsize=4)
def _draws(project: Project, number: int) -> Callable[[int], tuple[bool, bool]] | None:
    """Return what tells whether a site takes part in a round, and whether it ends with a message; None if unknown.

    The rounds follow from participation and seed, but where clients are drawn by weights of which only the server
    knows.
    """
    who = as_participation(project.participation)
    if isinstance(who, WeightedSubset) and who.weights is None:
        weights = parse_numbers(project.client_weights)
        if project.scales != "none" or weights == "rows":
            return None
        who = replace(who, weights=unequal(None if isinstance(weights, str) else tuple(weights)))
    rounds, known = (who or Full()).rounds(project.n_clients, project.seed), []

    def drawn(n: int) -> tuple[bool, bool]:
        for round in islice(rounds, max(0, n + 1 - len(known))):
            known.append((number in round.clients, round.communicate))
        return known[n]

    return drawn


def _require_start(project: Project, number: int, request: protocol.Start) -> None:
    if request.project != project.fingerprint:
        return  # the host says so
    if request.n_clients != project.n_clients or request.clients != (number,):
        raise RefusedError(f"the site is client {number} of {project.n_clients}", code="clients")
    if not request.run.startswith(f"{project.run_name} "):
        raise RefusedError(f"the run must be one of {project.run_name}", code="asked")
    if project.scales == "none" and request.scales is not None:
        raise RefusedError("clients have no scales in the project", code="asked")
    agreed = or_none(project.compressor_object)
    if request.compressor != (None if agreed is None else json.dumps(Spec.of(agreed, full=True).to_json())):
        raise RefusedError("uploads go through another compressor in the project", code="asked")
    if reason := _other_method(project, request.method):
        raise RefusedError(f"the method is not that of the project: {reason}", code="method")


def _other_method(project: Project, text: str) -> str | None:
    """Say in what a method is not that of the project; None where it may be."""
    try:
        method, agreed = Spec.from_json(text, "method").build("algorithm", ()), project.method
    except ValueError as error:
        return str(error)
    if project.regulariser is not None and getattr(agreed, "regulariser", None) == Zero():  # the method takes it in
        agreed = replace(agreed, **{"regulariser": project.regulariser_object})
    return _other(method, agreed, "it")


def _other(found: Any, agreed: Any, what: str) -> str | None:
    """Say in what an object is not the one that was agreed on, whose open parameters may be anything."""
    if not is_dataclass(agreed):
        return None if agreed is None or found == agreed else f"{what} is {found!r}, not {agreed!r}"
    if type(found) is not type(agreed):
        return f"{what} is {type(found).__name__}, not {type(agreed).__name__}"
    each = (_other(getattr(found, f.name), getattr(agreed, f.name), f"its {f.name}") for f in fields(agreed))
    return next((sentence for sentence in each if sentence is not None), None)
