"""Tests of missing permissions, also where they run as root, whom nothing is forbidden."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

NOBODY = 65534


@contextmanager
def ordinary_user() -> Iterator[None]:
    """Have no more rights than an ordinary user."""
    if os.geteuid():
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
