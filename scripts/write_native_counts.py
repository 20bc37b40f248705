"""A plugin of pytest for `make coverage`: a process writes its native counts when its tests end.

Otherwise they are written when the process ends. But a process of pytest-xdist is killed if it does
not end in time, for example because of threads that a library has started.
"""

from __future__ import annotations

import ctypes

from pylink._native import OBJECT_PATH


def pytest_sessionfinish() -> None:
    """Write the counts; what runs afterwards is not counted."""
    ctypes.CDLL(OBJECT_PATH)["__gcov_dump"]()
