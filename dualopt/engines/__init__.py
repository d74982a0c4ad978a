"""Runs whose clients are elsewhere: blocks of clients in this process, MPI ranks, a federation."""

from dualopt.engines._errors import LostError, RefusedError
from dualopt.engines._host import Host, answered
from dualopt.engines._inline import Blocks, Inline
from dualopt.engines._protocol import Engine, Failed
from dualopt.engines._remote import RemoteClients
from dualopt.engines.mpi import MPI

__all__ = [
    "MPI",
    "Blocks",
    "Engine",
    "Failed",
    "Host",
    "Inline",
    "LostError",
    "RefusedError",
    "RemoteClients",
    "answered",
]

ENGINES = {"blocks": Blocks}  # by name
