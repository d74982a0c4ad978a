"""Discovery of losses, solvers and algorithms."""

from __future__ import annotations

import importlib

import pytest

import dualopt.losses
import dualopt.methods
import dualopt.regularisers
import dualopt.solvers
from dualopt.spec import Spec
from dualopt.spec.discover import discover, summary

PACKAGES = [dualopt.methods, dualopt.losses, dualopt.regularisers, dualopt.solvers]


def package_with(tmp_path, monkeypatch, name, **sources):
    """Make an importable package whose modules have the given sources."""
    folder = tmp_path / name
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    for module, source in sources.items():
        (folder / f"{module}.py").write_text("from dataclasses import dataclass\n" + source)
    monkeypatch.syspath_prepend(tmp_path)
    return importlib.import_module(name)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda p: p.__name__)
def test_every_class_is_exported_and_documented(package):
    found = discover(package)
    assert found, "a package without modules would make every other test empty"
    for name, cls in found.items():
        assert name == cls.__module__.rpartition(".")[2].replace("_", "-")
        assert cls.__name__ in package.__all__
        assert cls.__doc__ is not None
        assert cls.__doc__.strip().partition("\n")[0].endswith(".")


@pytest.mark.parametrize("package", PACKAGES, ids=lambda p: p.__name__)
def test_summaries_are_plain_text(package):
    for cls in discover(package).values():
        line = summary(cls)
        assert len(line) > 10
        assert not set(line) & set("\\`\n")
        assert ":math:" not in line


def test_a_new_file_is_found_and_private_ones_are_not(tmp_path, monkeypatch):
    source = (
        "__all__ = ['New', 'helper']\ndef helper(): ...\n@dataclass\nclass State: ...\n@dataclass\nclass New: ...\n"
    )
    package = package_with(tmp_path, monkeypatch, "found_package", brand_new=source, _private="raise AssertionError")
    assert {name: cls.__name__ for name, cls in discover(package).items()} == {"brand-new": "New"}


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("two_classes", "__all__ = ['A', 'B']\n@dataclass\nclass A: ...\n@dataclass\nclass B: ...\n"),
        ("no_class", "__all__ = ['f']\ndef f(): ...\n"),
        ("borrowed_class", "from dualopt.losses import Huber\n__all__ = ['Huber']\n"),
    ],
)
def test_a_module_without_exactly_one_class_is_refused(tmp_path, monkeypatch, name, source):
    package = package_with(tmp_path, monkeypatch, f"refused_{name}", module=source)
    with pytest.raises(TypeError, match="exactly one public dataclass"):
        discover(package)


def test_a_name_that_is_unknown_proposes_a_close_name():
    assert Spec("huber").target("loss") is dualopt.losses.Huber
    with pytest.raises(ValueError, match=r"^loss must be one of .*huber.*; not 'hubert' \(did you mean huber\?\)\.$"):
        Spec("hubert").target("loss")
    with pytest.raises(ValueError, match=r"^solver must be one of .*; not 'zzz'\.$"):
        Spec("zzz").target("solver")


@pytest.mark.parametrize(
    ("doc", "plain"),
    [
        (r"Loss, :math:`\phi(z; y) = \log(1 + e^{-y z})`.", "Loss, phi(z; y) = log(1 + e^(-y z))."),
        (r"Step ``1/L``, :math:`\theta \leftarrow \theta - \text{step}\, \nabla F(\theta)`.",
         "Step 1/L, theta <- theta - step grad F(theta)."),
        ("A label in {-1, +1}.\n\nMore.", "A label in {-1, +1}."),
    ],
)  # fmt: skip
def test_summary_writes_formulas_in_plain_text(doc, plain):
    assert summary(type("Documented", (), {"__doc__": doc})) == plain
