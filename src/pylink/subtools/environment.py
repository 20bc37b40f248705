"""What programs that pylink starts get of its environment."""

from __future__ import annotations

import os


def search_path() -> str:
    """PATH without its empty and relative elements, also for what programs start themselves."""
    search = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(filter(os.path.isabs, search))
