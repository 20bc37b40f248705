"""`python -m pylink`: the command line without an installed script."""

from __future__ import annotations

from pylink.command.cli import run

if __name__ == "__main__":
    run()
