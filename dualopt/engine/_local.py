"""All clients on one host in this process: where those of an ordinary run are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dualopt.engine._host import Host

__all__ = ["LocalHost"]


class LocalHost:
    """An engine with one host, which is an object of this process; what fails in it is not caught.

    Parameters
    ----------
    host : Host
        It is called 0.
    """

    hosts: Sequence[int] = (0,)
    in_process = True
    partial_sums = False

    def __init__(self, host: Host) -> None:
        self.host = host

    def call(self, requests: Mapping[int, Sequence[Any]]) -> dict[int, Any]:
        """Call the host."""
        return {0: self.host.answer(requests[0])}
