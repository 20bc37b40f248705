"""The part of the environment that is changed for programs that pylink starts."""

from __future__ import annotations

import os


def search_path() -> str:
    """Return PATH without empty and relative elements; tools that pylink starts get this PATH."""
    search = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(filter(os.path.isabs, search))
