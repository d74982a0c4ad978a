"""What certificates are made from: the participants, in the form that ``nvflare provision`` reads."""

from __future__ import annotations

import json
import re
from pathlib import Path

from dualopt.arrays._checks import require, require_integers
from dualopt.arrays._files import write_atomically
from dualopt.federation.project import Project

__all__ = ["ADMIN", "SERVER", "provision_text", "write_provision"]

ADMIN = "admin@dualopt.org"  # a name in a certificate, not an address
SERVER = "server"
HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,252}[A-Za-z0-9])?")
BUILDERS = """\
builders:
  - path: nvflare.lighter.impl.workspace.WorkspaceBuilder
    args: {template_file: [master_template.yml]}
  - path: nvflare.lighter.impl.static_file.StaticFileBuilder
    args: {config_folder: config, scheme: SCHEME}
  - path: dualopt.federation.flare.builder.SafeSettings  # which classes a job may use, no logs that leave a site
  - path: nvflare.lighter.impl.cert.CertBuilder
  - path: nvflare.lighter.impl.signature.SignatureBuilder
"""


def provision_text(project: Project, host: str, port: int, *, scheme: str = "tcp") -> str:
    r"""Return a description of all participants for ``nvflare provision``.

    Parameters
    ----------
    project : Project
        The sites; their certificates are made out to their names.
    host : str
        Name or address under which the sites reach the server.
    port : int
        Where it listens, for the sites and for the administrator.
    scheme : str, default "tcp"
        tcp, grpc or http; all of them within TLS, with certificates on both sides.

    Examples
    --------
    >>> p = Project(name="two", sites=("lyon", "basel"), loss="logistic", classes=(0, 1), features=30)
    >>> print(*provision_text(p, "fl.example.org", 8002).splitlines()[:4], sep="\n")
    api_version: 3
    name: two
    description: federation of dualopt
    participants:
    """
    require(HOST.fullmatch(host), "host must be the name or the address of the server", host)
    require_integers(port=port)
    require(0 < port < 2**16, "port must be between 1 and 65535", port)
    require(scheme in ("tcp", "grpc", "http"), "scheme must be tcp, grpc or http", scheme)
    server = {"name": SERVER, "type": "server", "org": "server", "fed_learn_port": port, "admin_port": port}
    server |= {"host_names": [host], "default_host": host}
    people = [
        server,
        *({"name": site, "type": "client", "org": _organisation(site)} for site in project.sites),
        {"name": ADMIN, "type": "admin", "org": "server", "role": "project_admin"},
    ]
    head = f"api_version: 3\nname: {project.name}\ndescription: federation of dualopt\nparticipants:\n"
    return head + "".join(f"  - {json.dumps(one)}\n" for one in people) + BUILDERS.replace("SCHEME", scheme)


def write_provision(project: Project, path: str | Path, host: str, port: int, *, scheme: str = "tcp") -> None:
    """Write the description into a file, whole or not at all."""
    text = provision_text(project, host, port, scheme=scheme)
    write_atomically(path, lambda file: file.write(text))


def _organisation(site: str) -> str:
    return re.sub(r"\W", "_", site)
