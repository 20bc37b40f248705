"""`python -m pylink`: the command line without an installed script."""

from __future__ import annotations

import os
import sys


def forget_working_directory() -> None:
    """Take the working directory out of the places for modules, where -m has put it.

    What lies there by chance, or for a trap, is none of the program; pylink itself is found by now.
    """
    if getattr(sys.flags, "safe_path", False) or not sys.path:
        return
    try:
        here = os.getcwd()
    except OSError:  # it was deleted
        here = ""
    if sys.path[0] in ("", here):
        del sys.path[0]


if __name__ == "__main__":
    forget_working_directory()
    from pylink.startup.program import run

    run()
