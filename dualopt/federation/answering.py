"""A site's end: bytes in, bytes out, and a sentence in place of an error."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from pathlib import Path
from threading import Lock
from typing import Any

from dualopt.arrays._files import InUseError, locked
from dualopt.engine import Host, answered
from dualopt.engine import _protocol as protocol
from dualopt.engine.wire import WireError, decode_requests, encode
from dualopt.federation.project import Project
from dualopt.federation.settings import SiteSettings, site_objective

__all__ = ["Answering"]

log = logging.getLogger(__name__)


class Answering:
    """Answers the server's requests with the data and the state of one site.

    The data are loaded with the first request. What goes wrong is written in full into the log of the site; the server
    gets one sentence without paths, and never a traceback.

    Parameters
    ----------
    kit : str or Path
        The folder that the site got from ``nvflare provision``, with the settings in it.
    site : str
        The name of the site.
    """

    def __init__(self, kit: str | Path, site: str) -> None:
        self._kit, self._site = Path(kit), site
        self._host: Any = None
        self._settings: SiteSettings | None = None
        self._held = ExitStack()
        self._lock = Lock()

    def __call__(self, data: bytes) -> bytes:
        """Answer a message; one at a time, because a request that came too late may still be at work."""
        with self._lock:
            try:
                requests = decode_requests(data)
                if self._host is None:
                    self._host = self._open()
                found = answered(self._host, requests)
                if isinstance(found, protocol.Failed):
                    return self._refusal(found.reason, final=found.final)
                return encode(found)
            except InUseError:
                return self._refusal("another process of this site is at work on the run", final=False)
            except WireError as error:
                return self._refusal(str(error), final=False)
            except (ValueError, ModuleNotFoundError) as error:
                return self._refusal(str(error), final=True)
            except OSError as error:
                return self._refusal(f"a file cannot be used: {error.strerror or type(error).__name__}", final=False)
            except Exception as error:
                log.exception("the request could not be answered")
                return self._refusal(f"the site failed with {type(error).__name__}; its log says why", final=True)

    def close(self) -> None:
        """Give the state of the site back."""
        self._held.close()

    def _open(self) -> Any:
        """Return the host: settings, project, data and state are read once."""
        self._settings = settings = SiteSettings.read(self._kit)
        project = Project.read(settings.project)
        objective = site_objective(project, self._site, settings.data, label=settings.label)
        file = settings.state_file(project)
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._held.enter_context(locked(file.parent, file.name, wait=False))
        try:
            number = project.sites.index(self._site)
            return Host(objective, number, file=file, project=project.fingerprint)
        except BaseException:
            self._held.close()
            raise

    def _refusal(self, sentence: str, *, final: bool) -> bytes:
        log.error("refused: %s", sentence)
        settings = self._settings
        for path, word in () if settings is None else ((settings.data, "its data"), (settings.project, "its project")):
            sentence = sentence.replace(f"data {path!r}", word).replace(f"project {path!r}", word).replace(path, word)
        sentence = sentence.replace(str(self._kit), "its folder").rstrip(".")
        return encode([protocol.Failed(sentence[:500], final)])
