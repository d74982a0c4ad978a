"""Odd files: damaged, of another kind, with strange numbers, or larger than they look; a module for each format."""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz_inputs._archives import archive, clients, damaged_archive, members
from tests.fuzz_inputs._case import Case
from tests.fuzz_inputs._libsvm import compressed, libsvm, whole_file
from tests.fuzz_inputs._parquet import parquet
from tests.fuzz_inputs._rows import Rng
from tests.fuzz_inputs._searches import tune_record
from tests.fuzz_inputs._sizes import bomb, extreme, flat
from tests.fuzz_inputs._tables import table

__all__ = ["FAMILIES"]

FAMILIES: tuple[Callable[[Rng], Case], ...] = (
    libsvm,
    libsvm,
    whole_file,
    compressed,
    archive,
    archive,
    members,
    damaged_archive,
    clients,
    extreme,
    extreme,
    flat,
    bomb,
    table,
    table,
    parquet,
    parquet,
    tune_record,
)
