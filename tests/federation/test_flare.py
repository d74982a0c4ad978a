"""A federation of three sites on this machine, with certificates on both sides, is one process bit for bit.

``python -m tests.federation`` has the long version, with more kills.
"""

from __future__ import annotations

import shutil
import socket
import ssl
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from dualopt import Trace
from dualopt.federation.identity import CERTIFICATE, PRIVATE_KEY
from dualopt.federation.seal import KEY_FILE
from tests.federation.loopback import Loopback, processes_of
from tests.federation.problems import SITES, differing, in_one_process, project_of, write_certificates

pytestmark = pytest.mark.skipif(find_spec("nvflare") is None, reason='needs nvflare: pip install "dualopt[federation]"')


@pytest.fixture(scope="module")
def loopback(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loopback]:
    folder = tmp_path_factory.mktemp("federation")
    try:
        with Loopback(folder, project_of()) as found:
            yield found
        assert processes_of(folder) == []
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("algorithm", ["feddyn", "scaffnew"])
def test_a_federation_is_one_process_bit_for_bit(loopback: Loopback, algorithm: str) -> None:
    loopback.agree(project := project_of(algorithm))
    code, said = loopback.run_with()
    assert code == 0, said
    assert differing(Trace.from_npz(loopback.out / "trace.npz"), in_one_process(project)) == []
    assert "bytes sent" in said


def test_a_job_of_a_site_that_is_killed_is_submitted_again(loopback: Loopback) -> None:
    loopback.agree(project := project_of("dualfl", rounds=150))
    code, said = loopback.run_with(lambda it: it.kill_job("basel"), 20)
    assert code == 0, said
    assert "submitted 2 times" in said
    assert differing(Trace.from_npz(loopback.out / "trace.npz"), in_one_process(project)) == []


@pytest.mark.parametrize("aborted", [True, False])
def test_an_abort_is_not_taken_for_a_late_site(aborted: bool) -> None:
    """FLARE gives the calls that it breaks off as timeouts: one would be an absence in the checkpoint."""
    from nvflare.collab import CollabCallError  # pyright: ignore[reportMissingImports]
    from nvflare.collab.api.exceptions import RunAborted  # pyright: ignore[reportMissingImports]

    from dualopt.federation.flare.coordinator import _asked

    class Proxy:
        def __call__(self, timeout: float) -> Proxy:
            return self

        def answer(self, data: bytes) -> bytes:
            raise CollabCallError("bern.client", "answer", TimeoutError("timed out after 30 seconds"))

    class Job:
        def is_aborted(self) -> bool:
            return aborted

    with pytest.raises(RunAborted if aborted else TimeoutError):
        _asked(Job(), {"bern": Proxy()}, "bern", b"", 30.0)


def test_keys_and_storage_are_for_their_owner_alone(loopback: Loopback) -> None:
    state = loopback.kits.parent / "state"
    secrets = [*loopback.kits.rglob("*.key"), *state.iterdir()]
    assert {path.name for path in secrets} >= {"server.key", "client.key", "dualopt.key", "cert.json"}
    assert len(secrets) >= 9  # three of sites, two of each, server, administrator and what signs
    assert {path.stat().st_mode & 0o777 for path in secrets} == {0o600}
    folders = [state, loopback.kits / "server" / "storage", *(loopback.kits / site / "state" for site in SITES)]
    folders += [path for path in loopback.kits.iterdir() if path.is_dir()]
    assert {path.stat().st_mode & 0o777 for path in folders if path.exists()} == {0o700}
    assert folders[1].exists()
    assert len({(loopback.kits / site / KEY_FILE).read_bytes() for site in SITES}) == 3


def test_who_has_no_certificate_of_ours_is_refused(loopback: Loopback) -> None:
    ours = loopback.kits / "lyon" / "startup"
    assert greeted(loopback.port, ours / "client.crt", ours / "client.key")
    assert not greeted(loopback.port)
    strange, key = strangers_certificate(loopback.folder)
    assert not greeted(loopback.port, strange, key)


def greeted(port: int, certificate: Path | None = None, key: Path | None = None) -> bool:
    """Tell whether the server keeps a connection open that shows this certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if certificate is not None:
        context.load_cert_chain(certificate, key)
    with socket.create_connection(("127.0.0.1", port), timeout=5) as raw:
        try:
            with context.wrap_socket(raw) as secure:
                secure.settimeout(3)
                return secure.recv(1) != b""
        except TimeoutError:
            return True  # it waits for us to speak
        except OSError:
            return False


def strangers_certificate(folder: Path) -> tuple[Path, Path]:
    """Make out a certificate to a name of ours, signed by nobody that we know."""
    write_certificates(folder / "stranger", ("lyon",))
    return folder / "stranger" / "lyon" / CERTIFICATE, folder / "stranger" / "lyon" / PRIVATE_KEY
