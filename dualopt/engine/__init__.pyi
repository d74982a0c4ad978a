from ._errors import ContradictionError as ContradictionError, LostError as LostError, RefusedError as RefusedError
from ._host import Host as Host, answered as answered
from ._inline import Blocks as Blocks, Inline as Inline
from ._protocol import Engine as Engine, Failed as Failed
from ._remote import RemoteClients as RemoteClients
from .mpi import MPI as MPI
from .secure_sums import SecureBlocks as SecureBlocks, SecureHost as SecureHost, SecureSums as SecureSums
