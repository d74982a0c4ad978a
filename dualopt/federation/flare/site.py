"""The class that FLARE starts at a site."""

from __future__ import annotations

from nvflare.apis.fl_constant import FLContextKey  # pyright: ignore[reportMissingImports]
from nvflare.collab import collab  # pyright: ignore[reportMissingImports]

from dualopt.federation.answering import Answering

__all__ = ["Site"]


class Site:
    """A site's end of a job: it lives as long as the job, and so do the data in its memory."""

    def __init__(self) -> None:
        self._answering: Answering | None = None

    @collab.init
    def init(self) -> None:
        """Find the folder of the site; nothing is read before the server asks."""
        kit = collab.fl_ctx.get_prop(FLContextKey.WORKSPACE_OBJECT).get_root_dir()
        self._answering = Answering(kit, collab.site_name)

    @collab.final
    def final(self) -> None:
        """Give the state of the site back."""
        if self._answering is not None:
            self._answering.close()

    @collab.publish
    def answer(self, data: bytes) -> bytes:
        """Answer requests of the server, as `dualopt.engine.wire` writes them; FLARE lets anybody call."""
        assert self._answering is not None
        return self._answering(data)
