"""The settings of server and sites, written by ``nvflare provision`` before it signs them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from nvflare.lighter.ctx import ProvisionContext  # pyright: ignore[reportMissingImports]
from nvflare.lighter.entity import Project  # pyright: ignore[reportMissingImports]
from nvflare.lighter.spec import Builder  # pyright: ignore[reportMissingImports]

from dualopt.federation.seal import KEY_FILE, SERVER_KEY, site_key

__all__ = ["ALLOWED", "SafeSettings"]

ALLOWED = [
    "nvflare.collab.runtime.controller.CollabController",
    "nvflare.collab.runtime.executor.CollabExecutor",
    "dualopt.federation.flare.coordinator.Coordinator",
    "dualopt.federation.flare.site.Site",
]
"""All classes that a job may name. A job with code of its own is refused, whoever submits it."""

FORBIDDEN = ("byoc", "shell_commands", "server-predeployed-flwr")  # rights to run what is not installed
QUIET = ("nvflare.collab", "Proxy", "CellDispatcher", "CollabExecutor", "CollabController")


class SafeSettings(Builder):
    """Let installed classes run and no others, keep logs at the site, and what the server stores out of /tmp.

    At the end each site gets the key that it has in common with the server, and keys can be read by their owner alone.
    """

    def build(self, project: Project, ctx: ProvisionContext) -> None:
        """Rewrite the default settings of every participant, under the names that FLARE prefers to its defaults."""
        server = project.get_server()
        assert server is not None
        for one in (server, *project.get_clients()):
            folder = Path(ctx.get_local_dir(one))
            resources: dict[str, Any] = _read(folder / "resources.json.default") | {"class_allow_list": ALLOWED}
            resources["class_list_enforcement_mode"] = "enforce"
            if one is server:
                _serve(resources)
            else:
                resources["allow_log_streaming"] = False
            leaving = ("site_log_streamer", "log_receiver")
            resources["components"] = [part for part in resources["components"] if part["id"] not in leaving]
            _replace(folder, "resources.json", resources)
            rights = _read(folder / "authorization.json.default")
            rights["permissions"] = {"project_admin": _rights(rights)}
            _replace(folder, "authorization.json", rights)
            log = _read(folder / "log_config.json.default")
            log["loggers"] |= {name: {"level": "WARNING"} for name in QUIET}  # lines for each call, else
            _replace(folder, "log_config.json", log)

    def finalize(self, project: Project, ctx: ProvisionContext) -> None:
        """Derive the keys of the sites; `CertBuilder`, which comes later in the list, has done its part by now."""
        server = project.get_server()
        assert server is not None
        secret = (Path(ctx.get_ws_dir(server)) / SERVER_KEY).read_bytes()
        for site in project.get_clients():
            _write_key(Path(ctx.get_ws_dir(site)) / KEY_FILE, site_key(secret, site.name))
        for one in project.get_all_participants():
            Path(ctx.get_ws_dir(one)).chmod(0o700)  # logs are written there, and those of a site may quote its data
        state = Path(ctx.get_state_dir())
        state.chmod(0o700)
        for path in state.iterdir():
            path.chmod(0o600)


def _write_key(path: Path, key: bytes) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(key)


def _rights(defaults: dict[str, Any]) -> dict[str, Any]:
    """Return what an administrator may do: everything but to run code that is not installed."""
    names = {name for of in defaults["permissions"].values() if isinstance(of, dict) for name in of}
    return {name: "none" if name in FORBIDDEN else "any" for name in sorted(names | {*FORBIDDEN, "app_command"})}


def _serve(resources: dict[str, Any]) -> None:
    """Let the server store jobs and snapshots in its own folder, and start a job as soon as all sites are there."""
    storage = "dualopt.federation.flare.storage.KitStorage"
    resources["snapshot_persistor"]["args"]["storage"] = {"path": storage, "args": {"folder": "snapshots"}}
    for part in resources["components"]:
        if part["id"] == "job_manager":
            part["args"]["uri_root"] = "/"
        if part["id"] == "job_scheduler":  # a site that restarts is waited for, and noticed at once when it is back
            part["args"] |= {"min_schedule_interval": 1.0, "max_schedule_interval": 5.0, "max_schedule_count": 10**6}
        if part["id"] == "job_store":
            part |= {"path": storage, "args": {"folder": "jobs"}}


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())


def _replace(folder: Path, name: str, content: dict[str, Any]) -> None:
    (folder / name).write_text(json.dumps(content, indent=2) + "\n")
    (folder / f"{name}.default").unlink()
