"""Python files outside any package as modules, which every process can import by their name alone.

The name of the module holds the path of the file and a hash of its contents. So objects of its classes pickle: another
process, a worker of ``dualopt tune`` for one, imports the same file, or refuses if it has changed meanwhile. No two
files share a name, and none hides a module of the standard library. No bytecode is written beside the file.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, ModuleType

__all__ = ["digest", "module_of"]

__path__: list[str] = []  # so that the finder below is asked for what lies under this module
NAME = re.compile(r"[a-zA-Z0-9]*_([0-9a-f]+)_([0-9a-f]{64})")


def module_of(path: Path) -> ModuleType:
    """Return the file as a module; imported once, and again when its contents have changed.

    Files beside it can be imported by it.

    Raises
    ------
    OSError
        If it cannot be read.
    Exception
        Whatever its own statements raise.
    """
    path = path.absolute()
    stem = re.sub(r"[^a-zA-Z0-9]", "", path.stem)
    return importlib.import_module(f"{__name__}.{stem}_{str(path).encode().hex()}_{digest(path)}")


def digest(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


class _Loader(importlib.machinery.SourceFileLoader):
    """Compiles the file itself every time: cached bytecode is told from newer one by whole seconds."""

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)

    def exec_module(self, module: ModuleType) -> None:
        folder = str(Path(self.path).parent)
        if folder not in sys.path:
            sys.path.append(folder)  # behind everything else
        super().exec_module(module)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        parent, _, name = fullname.rpartition(".")
        found = NAME.fullmatch(name)
        if parent != __name__ or found is None:
            return None
        file = Path(bytes.fromhex(found[1]).decode())
        if digest(file) != found[2]:
            raise ImportError(f"file {str(file)!r} has changed since it was imported.", name=fullname)
        return importlib.util.spec_from_file_location(fullname, file, loader=_Loader(fullname, str(file)))


sys.meta_path.append(_Finder())
