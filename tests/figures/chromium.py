"""A browser: Playwright's own Chromium, or the system's. Without one tests are skipped, but fail where CI=true."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

__all__ = ["chromium"]


def absent(what: str) -> None:
    """Skip a test, or fail it where it must run."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what}, and CI=true asks for the tests in a browser")
    pytest.skip(what)


@contextmanager
def chromium() -> Iterator[Any]:
    """Start the browser."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        absent("Playwright is not installed (extra: dev)")
        raise
    with sync_playwright() as running:
        own = running.chromium.executable_path
        path = own if Path(own).exists() else shutil.which("chromium") or shutil.which("google-chrome")
        if path is None:
            absent("there is no Chromium")
        made = running.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield made
        made.close()
