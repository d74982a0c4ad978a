"""Data sets and their partitions among clients.

`load` reads a data set, `encode_labels` makes its labels fit a loss, `partition` deals its rows out to clients. A
module here that defines ``NAMES`` (name to description) and ``load(name, ...)`` adds data sets, one that defines
``PARTITIONS`` (name to function) adds rules for `partition`; no list is edited.
"""

from __future__ import annotations

from dualopt.problem.data._dataset import Dataset, RawData
from dualopt.problem.data._registry import available, load
from dualopt.problem.data.label_priors import dirichlet_clients
from dualopt.problem.data.labels import class_count, class_names, encode_labels
from dualopt.problem.data.partitions import (
    by_label,
    check_partition,
    consecutive,
    dirichlet,
    iid,
    lognormal_sizes,
    natural,
    partition,
    partition_rules,
    subsample,
)
from dualopt.problem.data.replacement import dirichlet_replacement
from dualopt.problem.data.scaling import scale

__all__ = [
    "Dataset",
    "RawData",
    "available",
    "by_label",
    "check_partition",
    "class_count",
    "class_names",
    "consecutive",
    "dirichlet",
    "dirichlet_clients",
    "dirichlet_replacement",
    "encode_labels",
    "iid",
    "load",
    "lognormal_sizes",
    "natural",
    "partition",
    "partition_rules",
    "scale",
    "subsample",
]
