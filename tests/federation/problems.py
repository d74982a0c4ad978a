"""Three sites with rows of their own, and the same federation in one process."""

from __future__ import annotations

import datetime
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dualopt import Trace, run
from dualopt.engine.rounds import resolve
from dualopt.federation import Project
from dualopt.federation.identity import CERTIFICATE, PRIVATE_KEY, ROOT
from dualopt.methods.participation import as_participation
from dualopt.objectives import Composite, Objective, linear_model

__all__ = [
    "METHODS",
    "SIZES",
    "differing",
    "elsewhere",
    "in_one_process",
    "plant",
    "project_of",
    "rows",
    "texts_in",
    "write_certificates",
    "write_shards",
]

SITES: tuple[str, ...] = ("lyon", "basel", "bern")
SIZES = (30, 70, 80)
ROW = 3  # of each site, which is looked for elsewhere
METHODS: dict[str, dict[str, Any]] = {
    "dualfl": {},
    "feddyn": {"participation": "subset=2"},
    "scaffnew": {"algorithm": "scaffnew: probability=0.5", "participation": "communicate=0.5"},
}


def project_of(algorithm: str = "dualfl", *, features: int = 20, **changes: Any) -> Project:
    """Return a project for the rows below."""
    given = {"rounds": 40, "tol": 0.0, "certify_every": 1, "mu": 0.1, "loss": "logistic", "classes": (0, 1)}
    given |= {"deadline": 30.0}
    given |= {"algorithm": algorithm} | METHODS.get(algorithm, {}) | changes
    return Project(name="trio", sites=SITES, features=features, **given)


def rows(features: int = 20) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Return features, labels, and the rows of each site."""
    rng = np.random.default_rng(7)
    X, y = rng.standard_normal((sum(SIZES), features)), rng.integers(0, 2, sum(SIZES))
    return X, y, np.split(np.arange(sum(SIZES)), np.cumsum(SIZES)[:-1])


def write_shards(folder: Path, features: int = 20) -> dict[str, Path]:
    """Write a file for each site."""
    X, y, cuts = rows(features)
    paths = {site: folder / f"{site}.npz" for site in SITES}
    for path, cut in zip(paths.values(), cuts, strict=True):
        np.savez(path, X=X[cut], y=y[cut])
    return paths


def write_certificates(folder: Path, sites: tuple[str, ...] = SITES, root: Any = None) -> Any:
    """Give each site a private key and a certificate of one root, as ``nvflare provision`` does; return the root."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    now = datetime.datetime.now(datetime.UTC)

    def certificate(name: str, key: Any, issuer: Any) -> Any:
        named = [x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, of)]) for of in (name, "root")]
        built = x509.CertificateBuilder().subject_name(named[0]).issuer_name(named[1]).public_key(key.public_key())
        built = built.serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(1))
        return built.not_valid_after(now + datetime.timedelta(1)).sign(issuer, SHA256())

    key = generate_private_key(SECP256R1())
    signer, top = root or (key, certificate("root", key, key))
    for site in sites:
        own = generate_private_key(SECP256R1())
        (folder / site / "startup").mkdir(parents=True, exist_ok=True)
        (folder / site / ROOT).write_bytes(top.public_bytes(Encoding.PEM))
        (folder / site / CERTIFICATE).write_bytes(certificate(site, own, signer).public_bytes(Encoding.PEM))
        text = own.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        (folder / site / PRIVATE_KEY).write_bytes(text)
    return signer, top


def plant(data: Path) -> list[bytes]:
    """Put a row of numbers that occur nowhere else into the data of a site; return how files may show them."""
    found = dict(np.load(data))
    X = found["X"]
    X[ROW] = 4711.08150815 + np.arange(X.shape[1]) / 7.0
    np.savez(data, X=X, y=found["y"])
    return [*shown(X[ROW]), *(np.float32(x).tobytes() for x in X[ROW])]


def shown(row: np.ndarray) -> list[bytes]:
    """Return how files may show the numbers of a row: with four bytes each, some would be there by chance."""
    return [form for x in row for form in (x.tobytes(), f"{x:.8g}".encode())]


def elsewhere(folder: Path, **planted: list[bytes]) -> list[Path]:
    """Return the files below a folder that show a row of a site, or what is planted in it, and are not its own."""
    found = set()
    files = {path: texts_in(path) for path in folder.rglob("*") if path.is_file()}
    for data in folder.glob("*.npz"):
        site, own = data.stem, list(folder.rglob(f"prod_00/{data.stem}"))
        forms = shown(np.load(data)["X"][ROW]) + planted.get(site, [])
        for path, texts in files.items():
            its = path.name == data.name or any(path.is_relative_to(kit) for kit in own)
            if not its and any(form in text for text in texts for form in forms):
                found.add(path)
    return sorted(found)


def texts_in(path: Path) -> list[bytes]:
    """Return what is in a file, and in those that are packed in it."""
    if not zipfile.is_zipfile(path):
        return [path.read_bytes()]
    with zipfile.ZipFile(path) as packed:
        return [packed.read(name) for name in packed.namelist()]


def whole(project: Project) -> Objective:
    """Return the objective that one process has."""
    X, y, cuts = rows(project.features)
    clients = [cut.tolist() for cut in cuts]
    f = linear_model(
        X,
        2.0 * y - 1.0,
        loss=project.loss_object,
        mu=project.mu,
        clients=clients,
        intercept=project.intercept,
        class_weight={1: 3.0} if project.class_weight == "1=3.0" else None,
        client_weights=project.client_weights,
        precision=project.precision,
    )
    if project.regulariser is None:
        return f
    return Composite(objective=f, regulariser=project.regulariser_object)


def in_one_process(project: Project, who: Any = None) -> Trace:
    """Run the project where all data are at hand; ``who``, if given, takes part in place of those that it draws."""
    f, drawn = whole(project), as_participation(project.participation)
    return run(
        resolve(project.method, f, drawn),
        f,
        rounds=project.rounds,
        tol=project.tol,
        certify_every=project.certify_every,
        measure_every=max(1, project.certify_every),
        participation=who or drawn,
        seed=project.seed,
    )


def differing(found: Trace, expected: Trace) -> list[str]:
    """Name what is not equal bit for bit: the model, the status, the length, or columns other than the time."""
    if len(found) != len(expected):
        return [f"length {len(found)}, not {len(expected)}"]
    parts: Mapping[str, bool] = {
        "theta": np.array_equal(found.theta, expected.theta),
        "status": found.status == expected.status,
        **{n: np.array_equal(found[n], x, equal_nan=True) for n, x in expected.columns.items() if n != "seconds"},
    }
    return [name for name, equal in parts.items() if not equal]
