"""Where the server keeps jobs and their results: in the folder from which it is started, not in /tmp for all to see."""

from __future__ import annotations

import sys
from pathlib import Path

from nvflare.app_common.storages.filesystem_storage import FilesystemStorage  # pyright: ignore[reportMissingImports]

__all__ = ["KitStorage"]


class KitStorage(FilesystemStorage):
    """FLARE's storage in files, below the folder that ``start.sh`` passes to the server as its workspace.

    Parameters
    ----------
    folder : str
        Where in ``storage`` of that folder.

    Raises
    ------
    ValueError
        If the process was started in another way.
    """

    def __init__(self, folder: str) -> None:
        words = sys.argv
        if "-m" not in words[:-1]:
            raise ValueError("the server must be started with start.sh of its folder, which names its workspace.")
        kit = Path(words[words.index("-m") + 1]).resolve()
        (kit / "storage").mkdir(mode=0o700, exist_ok=True)
        super().__init__(root_dir=str(kit / "storage" / folder))
