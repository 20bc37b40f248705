"""Print what this machine lacks to build pylink, with Debian's packages; exit status 1 if any."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import sysconfig

# The oldest version of Python with which pylink works.
OLDEST = (3, 10)


def list_missing() -> list[str]:
    """A line for each thing that is missing."""
    lines = []
    if sys.version_info < OLDEST:
        lines.append(f"Python {OLDEST[0]}.{OLDEST[1]} or newer; set PYTHON=python3.x")
    # Debian ships venv without the part of it that installs pip.
    if importlib.util.find_spec("venv") is None or importlib.util.find_spec("ensurepip") is None:
        lines.append("the venv module: apt install python3-venv")
    include = sysconfig.get_path("include")
    if not os.path.exists(os.path.join(include, "Python.h")):
        lines.append("the C headers of Python: apt install python3-dev")
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(compiler) is None:
        lines.append(f"the C compiler {compiler}: apt install gcc libc6-dev")
    return lines


if __name__ == "__main__":
    lines = list_missing()
    if lines:
        sys.exit("To build pylink, this machine needs\n  " + "\n  ".join(lines))
