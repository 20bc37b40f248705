"""`python -m pylink`: the command line without an installed script."""

from __future__ import annotations

import os
import sys


def _forget_working_directory() -> None:
    """Remove the working directory from `sys.path`, where -m has put it.

    Modules there, stray or planted, must not be imported; pylink itself is imported by now.
    """
    if getattr(sys.flags, "safe_path", False) or not sys.path:
        return
    try:
        directory = os.getcwd()
    except OSError:  # it was deleted
        directory = ""
    if sys.path[0] in ("", directory):
        del sys.path[0]


if __name__ == "__main__":
    _forget_working_directory()
    from pylink.startup.program import run

    run()
