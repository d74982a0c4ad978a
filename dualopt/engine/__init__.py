"""Runs whose clients are elsewhere: blocks of clients in this process, MPI ranks, a federation."""

from dualopt.engine._errors import LostError, RefusedError
from dualopt.engine._host import Host, answered
from dualopt.engine._inline import Blocks, Inline
from dualopt.engine._protocol import Engine, Failed
from dualopt.engine._remote import RemoteClients
from dualopt.engine.mpi import MPI

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
