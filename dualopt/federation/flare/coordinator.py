"""The class that FLARE starts at the server."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from nvflare.apis.fl_constant import FLContextKey  # pyright: ignore[reportMissingImports]
from nvflare.collab import CollabCallError, collab  # pyright: ignore[reportMissingImports]
from nvflare.collab.api.exceptions import RunAborted  # pyright: ignore[reportMissingImports]

from dualopt.federation.engine import SitesEngine, UnreachableError
from dualopt.federation.project import Project
from dualopt.federation.seal import SERVER_KEY, site_key
from dualopt.federation.serving import PROGRESS, Serving

__all__ = ["Coordinator"]


class Coordinator:
    """The server's end of a job: it holds the model and never sees data.

    Parameters
    ----------
    project : str
        The project file.
    """

    def __init__(self, project: str) -> None:
        self._project = Project.from_text(project)

    @collab.main
    def main(self) -> None:
        """Run the method until it ends; what is left then is in the folder of the job."""
        context, job = collab.fl_ctx, collab.context
        kit = context.get_prop(FLContextKey.WORKSPACE_OBJECT).get_root_dir()
        result = context.get_workspace().get_run_dir(context.get_job_id())
        sites = {proxy.name: proxy for proxy in collab.clients}
        secret, names = Path(kit, SERVER_KEY).read_bytes(), self._project.sites
        keys = {site: site_key(secret, site) for site in names}
        engine = SitesEngine(names, partial(_asked, job, sites), keys=keys, deadline=self._project.deadline)
        serving = Serving(self._project, Path(kit, "state"), Path(result))
        context.get_engine().register_app_command(PROGRESS, lambda *_: serving.progress())
        try:
            serving.run(engine)
        finally:
            engine.close()


def _asked(job: Any, sites: dict[str, Any], site: str, data: bytes, seconds: float) -> bytes:
    """Call a site; an abort of the job, by FLARE, passes through.

    FLARE ends the calls that an abort finds under way as if their time were over. Taken for late ones, they would put a
    round without these clients, or without an energy, into the checkpoint from which the next job goes on.
    """
    if site not in sites:
        raise UnreachableError(f"{site} is not in the job")
    try:
        return sites[site](timeout=seconds).answer(data)
    except CollabCallError as error:
        if job.is_aborted():
            raise RunAborted("the job is aborted") from None
        if isinstance(error.cause, TimeoutError):
            raise TimeoutError(str(error)) from None
        raise UnreachableError(str(error)) from None
