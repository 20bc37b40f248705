"""`pylink cmake-dir`: the directory of the CMake module by which builds use `pylink dlink`."""

from __future__ import annotations

import argparse
import os
import sys

from pylink.diagnostics.stream import write
from pylink.terminal.running import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

CMAKE_DIRECTORY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cmake")


def parser() -> argparse.ArgumentParser:
    return argparse.ArgumentParser(
        prog="pylink cmake-dir",
        description="Print the directory of PylinkDeviceLink.cmake, with which the device-link "
        "steps of a CMake build are done by pylink.",
    )


def main(argv: Sequence[str]) -> int:
    """Run the command."""
    return run(parser(), argv, _main)


def _main(options: argparse.Namespace) -> int:
    if sys.stdout is not None:  # None if the process was started with it closed
        write(sys.stdout, f"{CMAKE_DIRECTORY}\n")
    return 0
