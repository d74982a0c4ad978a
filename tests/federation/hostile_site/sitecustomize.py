"""Put before everything else in the PYTHONPATH of one site: a site that questions another, and forges orders to it.

It calls the other site as FLARE lets every party of a job do, and it sends a call with the server's name on it and the
token of the server, which FLARE adds to each message that a site gets: FLARE then gives the server as the caller.
``python -m tests.federation`` shows that neither is answered. What it got is appended to the file that
``DUALOPT_HOSTILE`` names.
"""

from __future__ import annotations

import os
from typing import Any

from tests.federation.patched import when_imported

VICTIM = "basel"
CALL = 12  # at which it begins


def hostile(module: Any) -> None:
    """Change the class that FLARE starts."""
    honest, calls, tokens = module.Site.answer, [], {}

    def answer(self: Any, data: bytes) -> bytes:
        calls.append(data)
        if len(calls) == 1:
            listen(module.collab.fl_ctx.get_engine().get_cell(), tokens)
        if len(calls) == CALL:
            seal = self._answering._seal  # its own: it has no other
            for kind, found in (
                ("plain", plain(module.collab, calls, seal)),
                ("forged", forged(module.collab, calls, seal, tokens)),
            ):
                with open(os.environ["DUALOPT_HOSTILE"], "a") as out:
                    print(f"{kind}: {found}", file=out)
        return honest(self, data)

    module.Site.answer = module.collab.publish(answer)


def orders(calls: list[bytes], seal: Any) -> list[tuple[str, bytes]]:
    """What the other site is asked: its census, its gradient at a model of our choice, its states, to begin anew."""
    from dualopt.engine import _protocol as protocol
    from dualopt.engine import wire
    from dualopt.federation.seal import MARK

    (start,) = (x for data in calls for x in wire.decode_requests(data[MARK:]) if isinstance(x, protocol.Start))
    asked = [
        protocol.Describe(),
        protocol.Evaluate(start.run, CALL, 1.0 + start.theta0, True),
        protocol.States(start.run, CALL),
        start._replace(run="another run", clients=(1,)),
    ]
    return [(type(one).__name__, seal.request(wire.encode([one]))) for one in asked]


def plain(collab: Any, calls: list[bytes], seal: Any) -> list[str]:
    """Call the other site as FLARE offers it."""
    from dualopt.engine import wire

    (victim,) = (one for one in collab.clients if one.name == VICTIM)
    found = []
    for name, order in orders(calls, seal):
        try:
            said = victim(timeout=10.0).answer(order)
            found.append(f"{name} {wire._decoded(said, wire.LIMIT)[0]!r:.60}")
        except Exception as error:
            found.append(f"{name} {type(error).__name__} {error}")
    return found


def listen(cell: Any, tokens: dict[str, Any]) -> None:
    """Keep the token of the server, which is in what the server sends."""

    def keep(message: Any) -> None:
        if str(message.headers.get("client_name")).startswith("server"):
            tokens.update({key: message.headers[key] for key in ("client_name", "__token__", "__token_signature__")})

    cell.core_cell.add_incoming_filter(channel="*", topic="*", cb=keep)


def forged(collab: Any, calls: list[bytes], seal: Any, tokens: dict[str, Any]) -> list[str]:
    """Send the last of the orders with the server's name and token; the answer, if any, goes to the server."""
    from nvflare.collab.runtime import defs  # pyright: ignore[reportMissingImports]
    from nvflare.fuel.f3.cellnet.defs import MessageHeaderKey  # pyright: ignore[reportMissingImports]
    from nvflare.fuel.f3.cellnet.utils import new_cell_message  # pyright: ignore[reportMissingImports]

    cell, job = collab.fl_ctx.get_engine().get_cell(), collab.fl_ctx.get_job_id()
    name, order = orders(calls, seal)[-1]

    def forge(message: Any) -> None:
        if message.get_header(MessageHeaderKey.DESTINATION, "").startswith(VICTIM):
            message.headers.update(tokens)
            message.set_header(MessageHeaderKey.ORIGIN, f"server.{job}")

    cell.core_cell.add_outgoing_request_filter(channel="*", topic="*", cb=forge)
    head = {
        defs.CallHeaderKey.PROTOCOL_VERSION: defs.CALL_PROTOCOL_VERSION,
        defs.CallHeaderKey.TARGET_NAME: f"{VICTIM}.client",
        defs.CallHeaderKey.METHOD_NAME: "answer",
    }
    body = {
        defs.ObjectCallKey.TARGET_NAME: f"{VICTIM}.client",
        defs.ObjectCallKey.METHOD_NAME: "answer",
        defs.ObjectCallKey.KWARGS: {"data": order},
    }
    request = new_cell_message(head, body)
    reply = cell.send_request(
        channel=defs.MSG_CHANNEL, target=f"{VICTIM}.{job}", topic=defs.MSG_TOPIC, request=request, timeout=5.0
    )
    return [f"sent {name} as {tokens.get('client_name')}: {reply.headers}"]


when_imported("dualopt.federation.flare.site", hostile)
