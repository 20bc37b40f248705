"""`pylink dedup`, and the public names of `pylink.mercury`, which decides what is folded."""

from __future__ import annotations

from pylink.mercury import *  # noqa: F403
from pylink.mercury import __all__ as __all__
