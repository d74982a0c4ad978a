"""Hosts that are sites of a federation: requests and answers travel as bytes, each within a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from dualopt.arrays.codec import CodecError
from dualopt.engine._protocol import Describe, Failed, Prepare
from dualopt.engine.wire import decode_answers, encode, payload
from dualopt.federation.refusals import said
from dualopt.federation.seal import MARK, Seal

__all__ = ["SitesEngine", "UnreachableError"]

LOADING = 3600.0  # seconds for the first answer, before which a site loads its data
PAUSE = 0.5  # seconds before a site that cannot be reached is tried again


class UnreachableError(Exception):
    """A site that the transport cannot reach at the moment."""


class SitesEngine:
    """An engine whose hosts are sites, each asked in a thread of its own.

    Parameters
    ----------
    hosts : sequence of str
        Names of the sites, in the order of the clients.
    ask : callable
        ``ask(site, data, seconds)`` returns what the site answers to some bytes. It raises ``TimeoutError`` where
        nothing comes in time, and `UnreachableError` where the site is not there; then the same bytes are sent again
        until the deadline, because a connection may come back. Any other exception ends the run.
    keys : mapping of str to bytes
        The key that each site has in common with the server, and nobody else.
    deadline : float
        Seconds that a site has for an answer.

    Attributes
    ----------
    bytes_up, bytes_down : int
        Bytes of all messages so far, from and to the sites.
    numbers_up, numbers_down : int
        Those of them that are arrays.
    unreachable : set of str
        The sites that were not there in the latest call.

    Examples
    --------
    >>> from dualopt.engine import _protocol as protocol
    >>> from dualopt.engine.wire import encode
    >>> from dualopt.federation.seal import Seal
    >>> def lyon(site, data, seconds):
    ...     return Seal(b"key").answer(data, encode([protocol.Committed("run", 0)]))
    >>> engine = SitesEngine(["lyon"], lyon, keys={"lyon": b"key"}, deadline=1.0)
    >>> engine.call({"lyon": [protocol.Commit("run", 0, False, None, 0, None)]})
    {'lyon': [Committed(run='run', n=0)]}
    >>> engine.numbers_up, engine.bytes_up > 12
    (0, True)
    >>> engine.close()
    """

    in_process = False
    partial_sums = False

    def __init__(
        self,
        hosts: Sequence[str],
        ask: Callable[[str, bytes, float], bytes],
        *,
        keys: Mapping[str, bytes],
        deadline: float,
    ) -> None:
        self.hosts: Sequence[Any] = list(hosts)
        self.deadline = deadline
        self.bytes_up = self.bytes_down = self.numbers_up = self.numbers_down = 0
        self.unreachable: set[str] = set()
        self._ask = ask
        self._seals = {host: Seal(keys[host]) for host in hosts}
        self._pool = ThreadPoolExecutor(max(1, len(self.hosts)), thread_name_prefix="dualopt_site")

    def call(self, requests: Mapping[Any, Sequence[Any]]) -> dict[Any, Any]:
        """Ask all sites that are named at once; one that did not answer in time, or not properly, has its exception."""
        data = {host: self._seals[host].request(encode(parts)) for host, parts in requests.items()}
        loading = any(isinstance(part, Describe | Prepare) for parts in requests.values() for part in parts)
        seconds = max(self.deadline, LOADING) if loading else self.deadline
        found = dict(
            zip(requests, self._pool.map(lambda h: self._answered(h, data[h], seconds), requests), strict=True)
        )
        self.unreachable = {host for host, answer in found.items() if isinstance(answer, UnreachableError)}
        answers: dict[Any, Any] = {}
        for host, answer in found.items():
            self.bytes_down += len(data[host])
            self.numbers_down += payload(data[host][MARK:])
            if isinstance(answer, bytes):
                self.bytes_up += len(answer)
                answer = self._seals[host].opened_answer(data[host], answer)
                self.numbers_up += 0 if answer is None else payload(answer)
            answers[host] = _decoded(answer, requests[host])
        return answers

    def close(self) -> None:
        """End the threads; what they still wait for is thrown away."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _answered(self, host: str, data: bytes, seconds: float) -> bytes | Exception:
        end = time.monotonic() + seconds
        while True:
            left = end - time.monotonic()
            try:
                return self._ask(host, data, max(left, 0.001))
            except TimeoutError:
                return TimeoutError(f"nothing came within {seconds:g} s")
            except UnreachableError as error:
                if left <= PAUSE:
                    return error
                time.sleep(PAUSE)


def _decoded(answer: bytes | Exception | None, requests: Sequence[Any]) -> Any:
    if answer is None:
        return CodecError("its answer does not carry its mark: its folder is of another provision, or it is forged.")
    if isinstance(answer, Exception):
        return answer
    try:
        answers = decode_answers(answer, requests)
    except CodecError as error:
        return error
    return said(answers[0]) if len(answers) == 1 and isinstance(answers[0], Failed) else answers
