"""Tasks whose workers are lost in the middle of them."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from pylink.fleet.fragment import Fragment, make_fragment
from pylink.fleet.parts import Part


def lost_marks(root: bytes) -> Path:
    """The folder with a file for each task that loses its worker, until it has."""
    return Path(os.fsdecode(root)).parent / "to-be-lost"


def made_unless_lost(part: Part) -> Fragment:
    """Do the task; if it is marked, its worker is killed instead, with the work done in vain."""
    made = make_fragment(part)
    try:
        (lost_marks(part.files.file(0).root) / str(part.number)).unlink()
    except FileNotFoundError:
        return made
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("nobody survives this")
