"""What the clients of all hosts must have in common, and their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dualopt.engine import _protocol as protocol

__all__ = ["numbered", "require_agreement"]


def require_agreement(found: Sequence[protocol.ClientInfo], hosts: Sequence[Any], project: str) -> None:
    """Refuse hosts whose clients are of another project, or differ in what must be the same everywhere."""
    for h, other in enumerate(found):  # first of all: other differences come from this one
        if other.project != project:
            raise ValueError(
                f"project must be the same everywhere, but it is {project!r} here and {other.project!r} "
                f"on host {hosts[h]}."
            )
    first = _common(found[0])
    for h, other in enumerate(found):
        for name, value in _common(other).items():
            if value != first[name]:
                where = f"host {hosts[0]} and {value} on host {hosts[h]}"
                raise ValueError(f"clients must agree on {name}, but it is {first[name]} on {where}.")


def _common(info: protocol.ClientInfo) -> dict[str, Any]:
    """Return what must be the same on all hosts."""
    names = ("offers", "usual_weight", "gradient_cost", "n_features", "is_sparse", "linear_ridge", "classes")
    told = {name: getattr(info, name) for name in names}
    return {"shape": tuple(info.zero.shape), "dtype": str(info.zero.dtype).rpartition(".")[2]} | told


def numbered(found: Sequence[protocol.ClientInfo], hosts: Sequence[Any]) -> list[tuple[int, ...]]:
    """Return the numbers of the clients of each host: those that hosts know, or in the order of the hosts."""
    if all(x.clients is None for x in found):
        first, blocks = 0, []
        for x in found:
            blocks.append(tuple(range(first, first + x.n_clients)))
            first += x.n_clients
        return blocks
    for h, x in enumerate(found):
        if x.clients is None:
            raise ValueError(f"clients of host {hosts[h]} have no numbers, and those of others have.")
        if len(x.clients) != x.n_clients:
            raise ValueError(f"clients of host {hosts[h]} must be {x.n_clients} numbers.")
    blocks = [x.clients or () for x in found]
    ids = sorted(j for own in blocks for j in own)
    if ids != list(range(len(ids))):
        raise ValueError(f"clients of all hosts together must have the numbers 0 to {len(ids) - 1}, each once.")
    return blocks
