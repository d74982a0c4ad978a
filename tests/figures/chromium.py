"""A browser: Playwright's own Chromium, or the system's."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

__all__ = ["chromium"]


@contextmanager
def chromium() -> Iterator[Any]:
    """Start the browser; a test is skipped where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed (extra: browser)")
    with playwright.sync_playwright() as running:
        own = running.chromium.executable_path
        path = own if Path(own).exists() else shutil.which("chromium") or shutil.which("google-chrome")
        if path is None:
            pytest.skip("there is no Chromium")
        made = running.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield made
        made.close()
