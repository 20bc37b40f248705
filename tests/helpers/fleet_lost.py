"""Tasks whose workers are lost in the middle of them."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from pylink.fleet.parts import Part
from pylink.fleet.update import make_named


def lost_marks(root: bytes) -> Path:
    """The folder with a file for each task that loses its worker, until it has."""
    return Path(os.fsdecode(root)).parent / "to-be-lost"


def named_unless_lost(part: Part) -> tuple[Part, dict[str, bytes]]:
    """Do the task; if it is marked, its worker is killed instead, with the work done in vain."""
    made = make_named(part)
    try:
        (lost_marks(part.files[0].root) / str(part.number)).unlink()
    except FileNotFoundError:
        return made
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("nobody survives this")
