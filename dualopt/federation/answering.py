"""A site's end: bytes in, bytes out, and a word from a table in place of an error."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from dualopt.arrays._files import locked
from dualopt.engine import Host, RefusedError, SecureHost
from dualopt.engine._protocol import Prepare
from dualopt.engine.wire import decode_requests, encode
from dualopt.federation.agreed import require_agreed_requests
from dualopt.federation.preparing import SitePreparing
from dualopt.federation.project import Project
from dualopt.federation.questions import Questions, of_intercept
from dualopt.federation.refusals import refusal, refusing
from dualopt.federation.seal import KEY_FILE, Seal
from dualopt.federation.settings import SiteSettings, prepared_objective, site_rows

__all__ = ["Answering"]

log = logging.getLogger(__name__)


class _Opened(NamedTuple):
    """What a site has read before it answers."""

    project: Project
    file: Path  # of the client's state
    preparing: SitePreparing
    questions: Questions


class Answering:
    """Answers the server's requests, and nobody else's, with the data and the state of one site.

    The data are loaded with the first request. What goes wrong is written in full into the log of the site, and stays
    there: the server gets a word of `dualopt.federation.refusals`.

    Parameters
    ----------
    kit : str or Path
        The folder that the site got from ``nvflare provision``, with the settings in it.
    site : str
        The name of the site.
    """

    def __init__(self, kit: str | Path, site: str) -> None:
        self._kit, self._site = Path(kit), site
        self._opened_site: _Opened | None = None
        self._host: Host | SecureHost | None = None
        self._seal: Seal | None = None
        self._held = ExitStack()
        self._lock = Lock()

    def __call__(self, data: bytes) -> bytes:
        """Answer a message; one at a time, because a request that came too late may still be at work."""
        with self._lock:
            opened: bytes | None = None
            try:
                opened = self._opened(data)
                answer = encode(self._answers(opened))
            except BaseException as error:  # an exit too would leave with its words
                found = refusal(error)
                log.error("refused (%s)", found.reason, exc_info=True)
                answer = encode([found])
            return answer if self._seal is None or opened is None else self._seal.answer(data, answer)

    def close(self) -> None:
        """Give the state of the site back."""
        self._held.close()

    def _opened(self, data: bytes) -> bytes:
        """Return what the server has sent, and refuse what another has."""
        if self._seal is None:
            with refusing("settings"):
                self._seal = Seal((self._kit / KEY_FILE).read_bytes())
        if (opened := self._seal.opened_request(data)) is None:
            raise RefusedError("a request does not carry the mark of the server", code="caller")
        return opened

    def _answers(self, data: bytes) -> list[Any]:
        requests = decode_requests(data)
        if self._opened_site is None:
            self._opened_site = self._open()
        site = self._opened_site
        preparing = [request for request in requests if isinstance(request, Prepare)]
        if preparing:
            if len(preparing) < len(requests):
                raise RefusedError("rows are prepared before the first round", code="order")
            return [site.preparing.answer(request) for request in preparing]
        if self._host is None:
            try:
                self._host = self._made_host(site)
            except BaseException:  # the data are given up by now: the next request reads them anew
                self._held.close()
                self._opened_site = None
                raise
        require_agreed_requests(site.project, site.project.sites.index(self._site), requests)
        site.questions.require_few(requests)
        return self._host.answer(requests)

    def _open(self) -> _Opened:
        """Return what a site has: settings, project, data and state are read once."""
        with refusing("settings"):
            settings = SiteSettings.read(self._kit)
        with refusing("project-file"):
            project = Project.read(settings.project)
        rows = site_rows(project, self._site, settings.data, label=settings.label)
        file = settings.state_file(project)
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._held.enter_context(locked(file.parent, file.name, wait=False))
        try:
            with refusing("state"):
                preparing = SitePreparing(project, rows, settings.prepared_file(project))
                allowed = settings.questions + of_intercept(project)
                questions = Questions(settings.questions_file(project), allowed)
            found = _Opened(project, file, preparing, questions)
            if preparing.found is not None and not preparing.asks:
                self._host = self._made_host(found)
            return found
        except BaseException:
            self._held.close()
            raise

    def _made_host(self, site: _Opened) -> Host | SecureHost:
        """Return the host, whose rows are prepared."""
        project, prepared = site.project, site.preparing.found
        if prepared is None:
            raise RefusedError("rows are not prepared yet", code="order")
        objective = prepared_objective(project, self._site, site.preparing.given_up(), prepared)
        with refusing("state"):
            host = Host(objective, project.sites.index(self._site), file=site.file, project=project.fingerprint)
            return host if project.secure == "none" else self._secured(host, project, site.file)

    def _secured(self, host: Host, project: Project, file: Path) -> SecureHost:
        """Return the host as one whose numbers leave it in sums alone."""
        from dualopt.federation.identity import KitIdentity

        with refusing("settings"):
            identity = KitIdentity(self._kit)
        given = {"largest": project.secure_range, "identity": identity, "file": file.with_suffix(".sums")}
        return SecureHost(host, self._site, project.sites, **given)
