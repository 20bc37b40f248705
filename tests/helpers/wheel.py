"""An environment with the wheel of this checkout installed, outside of the checkout."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
DEPENDENCIES = ("lz4", "xxhash", "zstandard")


def install(folder: Path) -> Path:
    """Build the wheel, install it without extras, and return the folder with its programs.

    Its dependencies are linked from the environment of the tests, so that no index is needed.
    """
    with (ROOT / "build" / "wheel.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
        command += ["--no-build-isolation", "--disable-pip-version-check", "--wheel-dir"]
        subprocess.run([*command, str(folder / "wheels"), str(ROOT)], check=True)
    (wheel,) = (folder / "wheels").glob("*.whl")
    venv.create(folder / "venv", with_pip=False, symlinks=True)
    programs = folder / "venv" / "bin"
    command = [sys.executable, "-m", "pip", "--python", str(programs / "python"), "install"]
    command += ["--quiet", "--no-deps", "--no-index", "--disable-pip-version-check", str(wheel)]
    subprocess.run(command, check=True)
    needed = folder / "needed"
    needed.mkdir()
    for name in DEPENDENCIES:
        (needed / name).symlink_to(Path(sysconfig.get_path("platlib")) / name)
    (site,) = (folder / "venv" / "lib").glob("python*/site-packages")
    (site / "needed.pth").write_text(f"{needed}\n")
    return programs


def environment(programs: Path, *folders: str) -> dict[str, str]:
    """Return the environment of a shell with these programs first in PATH, not the tests' own."""
    path = os.pathsep.join([str(programs), *folders, "/usr/bin", "/bin"])
    return {"PATH": path, "HOME": str(programs.parents[1]), "LANG": "C.UTF-8"}
