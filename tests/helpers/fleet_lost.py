"""Tasks during which the worker is killed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from pylink.fleet.fragment import Fragment, make_fragment
from pylink.fleet.parts import Part


def lost_marks(root: bytes) -> Path:
    """Return the directory with a file for each task whose worker will be killed, until then."""
    return Path(os.fsdecode(root)).parent / "to-be-lost"


def made_unless_lost(part: Part) -> Fragment:
    """Do the task; if it is marked, kill the worker before the result is returned."""
    fragment = make_fragment(part)
    try:
        (lost_marks(part.files.file(0).root) / str(part.number)).unlink()
    except FileNotFoundError:
        return fragment
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("nobody survives this")
