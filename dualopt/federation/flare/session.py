"""The administrator's connection to the server."""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nvflare.fuel.flare_api.flare_api import new_secure_session  # pyright: ignore[reportMissingImports]

from dualopt.federation.provision import ADMIN
from dualopt.federation.serving import PROGRESS
from dualopt.federation.submission import DisconnectedError

__all__ = ["FlareSession"]


class FlareSession:
    """What `dualopt.federation.submission` needs of FLARE; whatever fails there is a `DisconnectedError`.

    Parameters
    ----------
    kit : str or Path
        The administrator's folder, with the certificate.
    seconds : float, default 10
        How long to try to reach the server.
    """

    def __init__(self, kit: str | Path, *, seconds: float = 10.0) -> None:
        with _lost():
            self._session = new_secure_session(ADMIN, str(kit), timeout=seconds, auto_login_max_tries=5)

    def find(self, name: str) -> str | None:
        """Return the number of a job of this name that has not ended."""
        with _lost():
            jobs = self._session.list_jobs(name_prefix=name)
        alive = [job for job in jobs if job.get("name", job.get("job_name")) == name and not _ended(job)]
        return str(alive[-1]["job_id"]) if alive else None

    def connected(self) -> list[str]:
        """Return the sites that are connected."""
        with _lost():
            return [one.name for one in self._session.get_connected_client_list()]

    def submit(self, job: Path) -> str:
        """Submit a job; return its number."""
        with _lost():
            return self._session.submit_job(str(job.resolve()))

    def status(self, job: str) -> str:
        """Return the status of a job, in FLARE's words."""
        with _lost():
            return str(self._session.get_job_status(job))

    def progress(self, job: str) -> dict[str, Any]:
        """Return what a job that runs says of itself; empty where it does not run."""
        with _lost():
            return self._session.do_app_command(job, PROGRESS, None)

    def result(self, job: str, folder: Path) -> Path:
        """Fetch what a job has left; return the folder."""
        with _lost():
            return Path(self._session.download_job_result(job, str(folder.resolve())), "workspace")

    def abort(self, job: str) -> None:
        """End a job."""
        with _lost():
            self._session.abort_job(job)

    def close(self) -> None:
        """End the session: its threads would keep the program alive."""
        with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()):
            self._session.close()


def _ended(job: dict[str, Any]) -> bool:
    return str(job.get("status")).startswith("FINISHED")


@contextlib.contextmanager
def _lost() -> Iterator[None]:
    """Turn FLARE's errors, of many types, into one; and keep what it prints to itself."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    except Exception as error:
        logging.getLogger(__name__).debug("session", exc_info=True)
        raise DisconnectedError(f"{type(error).__name__}: {error}") from error
