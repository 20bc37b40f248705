"""Print what this machine lacks to build pylink, with Debian's packages; exit status 1 if any.

With the argument `tests`, also what tests with the CUDA compiler need.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import sysconfig

# The oldest version of Python with which pylink works.
OLDEST = (3, 10)


def list_missing(*, tests: bool = False) -> list[str]:
    """Return a line for each thing that is missing, with `tests` also for tests with CUDA."""
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
    if tests:
        lines += [
            f"{tool}: apt install {tool}" for tool in ("g++", "git") if shutil.which(tool) is None
        ]
    return lines


if __name__ == "__main__":
    for_tests = "tests" in sys.argv[1:]
    lines = list_missing(tests=for_tests)
    if lines:
        purpose = "build and test" if for_tests else "build"
        sys.exit(f"To {purpose} pylink, this machine needs\n  " + "\n  ".join(lines))
