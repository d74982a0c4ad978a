"""The job that FLARE runs: the names of installed classes and the project file, no code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dualopt.federation.project import Project

__all__ = ["write_job"]

COLLAB = "nvflare.collab.runtime"
OURS = "dualopt.federation.flare"


def write_job(project: Project, folder: str | Path) -> Path:
    """Write what is submitted into a folder; return the job's own folder in it.

    Examples
    --------
    >>> import tempfile
    >>> p = Project(name="two", sites=("lyon", "basel"), loss="logistic", classes=(0, 1), features=30)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     job = write_job(p, folder)
    ...     job.name == p.run_name, sorted(str(f.relative_to(job)) for f in job.rglob("*.json"))
    (True, ['meta.json', 'server/config/config_fed_server.json', 'sites/config/config_fed_client.json'])
    """
    job = Path(folder, project.run_name)
    sites = list(project.sites)
    meta = {
        "name": project.run_name,
        "resource_spec": {},
        "min_clients": len(sites),
        "mandatory_clients": sites,
        "deploy_map": {"server": ["server"], "sites": sites},
    }
    controller = {"server_obj_id": "_server", "collab_obj_ids": [], "sync_task_timeout": 60}
    executor = {"path": f"{COLLAB}.executor.CollabExecutor", "args": {"client_obj_id": "_client", "collab_obj_ids": []}}
    server = {
        "format_version": 2,
        "workflows": [{"id": "controller", "path": f"{COLLAB}.controller.CollabController", "args": controller}],
        "components": [
            {"id": "_server", "path": f"{OURS}.coordinator.Coordinator", "args": {"project": project.to_text()}}
        ],
    }
    site = {
        "format_version": 2,
        "executors": [{"tasks": ["*"], "executor": executor}],
        "components": [{"id": "_client", "path": f"{OURS}.site.Site", "args": {}}],
    }
    _write(job / "meta.json", meta)
    _write(job / "server" / "config" / "config_fed_server.json", server)
    _write(job / "sites" / "config" / "config_fed_client.json", site)
    return job


def _write(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2) + "\n")
