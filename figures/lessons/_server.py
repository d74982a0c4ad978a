"""The server of the lessons: the standard library's, bound to 127.0.0.1."""

from __future__ import annotations

import contextlib
import json
import threading
from collections import OrderedDict
from collections.abc import Iterator
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import ModuleType
from urllib.parse import parse_qs, urlsplit

from figures.lessons import _find
from figures.lessons._page import index, page

__all__ = ["Answers", "Server"]

MOST_KEPT = 4096  # answers; a few ten kilobytes each


class Answers:
    """Scenes as JSON: computed once, those of the sliders' neighbours ahead of the question.

    One scene is computed at a time. A question waits for at most one neighbour that is being computed: they are
    computed by one thread that stops for questions and forgets the neighbours of older positions.
    """

    def __init__(self, *, ahead: bool = True) -> None:
        self._kept: OrderedDict[tuple[str, tuple[int, ...]], bytes] = OrderedDict()
        self._computing = threading.Lock()
        self._waiting = 0  # questions
        self._next: Iterator[tuple[str, tuple[int, ...]]] = iter(())
        self._wake = threading.Event()
        if ahead:
            threading.Thread(target=self._compute_ahead, daemon=True, name="lessons: neighbours").start()

    def __call__(self, name: str, position: tuple[int, ...]) -> bytes:
        """Return the scene at a position, or ``{"error": "one sentence"}``."""
        key = name, position
        if key not in self._kept:
            self._waiting += 1
            try:
                with self._computing:
                    self._compute(key)
            finally:
                self._waiting -= 1
        self._next = _neighbours(key)
        self._wake.set()
        return self._kept[key]

    def has(self, name: str, position: tuple[int, ...]) -> bool:
        """Tell whether an answer is there already."""
        return (name, position) in self._kept

    def _compute(self, key: tuple[str, tuple[int, ...]]) -> None:
        if key in self._kept:
            return
        name, position = key
        try:
            found = _find.answer(_find.load(name), position)
        except Exception as error:  # whatever a lesson raises is shown: the page goes on with the next position
            found = {"error": _sentence(error)}
        self._kept[key] = json.dumps(found, separators=(",", ":"), allow_nan=False).encode()
        if len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)

    def _compute_ahead(self) -> None:
        while True:
            self._wake.wait()
            key = next(self._next, None)
            if key is None:
                self._wake.clear()
            elif self._waiting:
                self._wake.clear()  # the question sets it again, with its own neighbours
            else:
                with self._computing:
                    self._compute(key)


def _neighbours(key: tuple[str, tuple[int, ...]]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the positions one and two steps away along every slider."""
    name, position = key
    sliders = _find.load(name).SLIDERS
    for step in (1, -1, 2, -2):
        for k, slider in enumerate(sliders):
            i = position[k] + step
            if 0 <= i < len(slider.values):
                yield name, (*position[:k], i, *position[k + 1 :])


def _sentence(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return text[0] if isinstance(error, ValueError) and text else f"{type(error).__name__}: {' '.join(text)}"


class Server(ThreadingHTTPServer):
    """Serves every lesson at ``/NAME``, their scenes at ``/NAME/scene?at=3-0-12`` and an index at ``/``.

    Parameters
    ----------
    port : int, default 0
        Where to listen; 0 takes any free port.
    ahead : bool, default True
        Whether neighbours are computed ahead.

    Raises
    ------
    ValueError
        If the port is taken or is none.
    """

    daemon_threads = True

    def __init__(self, port: int = 0, *, ahead: bool = True) -> None:
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except (OSError, OverflowError) as error:
            raise ValueError(f"port {port} cannot be used: {getattr(error, 'strerror', error)}.") from None
        self.answers = Answers(ahead=ahead)

    def url(self, name: str = "") -> str:
        """Return the address of a lesson, or of the index."""
        return f"http://127.0.0.1:{self.server_address[1]}/{name}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # a late acknowledgement would cost 40 ms
    server: Server

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        name, _, rest = parts.path.strip("/").partition("/")
        status, kind = 200, "text/html; charset=utf-8"
        try:
            if not name:
                body = index(_all()).encode()
            elif rest == "scene":
                kind = "application/json"
                body = self.server.answers(name, _position(parse_qs(parts.query).get("at", [""])[0]))
            elif not rest:
                body = _live(name).encode()
            else:
                raise ValueError(f"there is no page {parts.path}.")
        except (ValueError, ImportError) as error:
            status, body = 404, str(error).encode()
            if kind == "application/json":
                body = json.dumps({"error": str(error)}).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        with contextlib.suppress(ConnectionError):  # the reader has left
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Stay silent."""


@cache
def _live(name: str) -> str:
    described = _find.described(name, _find.load(name))
    for slider in described["sliders"]:
        slider["offered"] = list(range(len(slider["values"])))
    return page(described)


def _all() -> dict[str, ModuleType | Exception]:
    found: dict[str, ModuleType | Exception] = {}
    for name in _find.discover():
        try:
            found[name] = _find.load(name)
        except ImportError as error:  # a lesson may need an extra that is not installed
            found[name] = error
    return found


def _position(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(i) for i in text.split("-")) if text else ()
    except ValueError:
        raise ValueError(f"at must be indices with hyphens between them, not {text!r}.") from None
