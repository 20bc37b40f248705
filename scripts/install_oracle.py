"""Install tools of other CUDA releases, for the tests that compare with them.

    python scripts/install_oracle.py 13.5 13.1

The tools are nvcc, ptxas and nvlink; for 12.9, whose wheels contain no nvlink, ptxas and nvJitLink.
Each release or patch level, such as 13.2.51, is installed in a folder of its own in build/oracles
(PYLINK_ORACLES), where the tests look for it, unless it exists. Each needs a download of about 120
MB and 400 MB on disk. The tools of 13.0.88 are installed by the extra `oracle`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = Path(os.environ.get("PYLINK_ORACLES") or ROOT / "build" / "oracles")

# By release: versions of the wheels with its tools, with the headers of the runtime, and with the
# C++ library.
WHEELS = {
    "13.1": ("13.1.115", "13.1.80", "13.1.115"),
    "13.2": ("13.2.86", "13.2.86", "13.2.86"),
    "13.3": ("13.3.73", "13.3.29", "13.3.5.0.6"),
    "13.4": ("13.4.92", "13.4.92", "13.3.5.0.6"),
    "13.5": ("13.5.37", "13.5.37", "13.3.5.0.6"),
}
# Earlier patch levels, of which only the tools are installed: tests compile with the compiler of
# 13.0, and assemble and link with these tools.
PATCHES = ("13.0.48", "13.1.80", "13.2.51", "13.2.78", "13.3.33", "13.4.59")


# Further wheels: a newer nvJitLink, for tests that choose compilers that fit together.
LIBRARIES = {"13.5": ("nvidia-nvjitlink==13.5.37",)}

# Wheels of 12.9, which have other names and directories.
EARLY_WHEELS = {
    "12.9": (
        "nvidia-cuda-nvcc-cu12==12.9.86",
        "nvidia-nvjitlink-cu12==12.9.86",
        "nvidia-cuda-runtime-cu12==12.9.79",
    )
}
# Files of which one shows that a release is installed, and the file of a newer nvJitLink.
LINKERS = ("nvidia/cu13/bin/nvlink", "nvidia/nvjitlink/lib/libnvJitLink.so.12")
NVJITLINK = "nvidia/cu13/lib/libnvJitLink.so.13"


def list_wheels(release: str) -> list[str]:
    """Return the wheels that pip installs for a release or patch level."""
    if release in EARLY_WHEELS:
        return list(EARLY_WHEELS[release])
    if release in PATCHES:
        return _tool_wheels(release)
    tools, runtime, cccl = WHEELS[release]
    return [
        *_tool_wheels(tools),
        f"nvidia-cuda-runtime=={runtime}",
        f"nvidia-cuda-cccl=={cccl}",
        *LIBRARIES.get(release, ()),
    ]


def _tool_wheels(version: str) -> list[str]:
    """Return pip's requirements for the wheels of the tools, of this version of theirs."""
    return [f"nvidia-{name}=={version}" for name in ("cuda-nvcc", "nvvm", "cuda-crt")]


def install(release: str) -> None:
    """Install one release atomically, unless it is installed."""
    target = FOLDER / release
    packages = list_wheels(release)
    if any((target / linker).exists() for linker in LINKERS):
        if release not in LIBRARIES or (target / NVJITLINK).exists():
            return
        shutil.rmtree(target)
    unfinished = FOLDER / f"{release}.unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*command, "--no-deps", "--target", str(unfinished), *packages], check=True)
    unfinished.rename(target)
    print(f"CUDA {release} is in {target}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("releases", nargs="+", choices=(*EARLY_WHEELS, *WHEELS, *PATCHES))
    for release in parser.parse_args().releases:
        try:
            install(release)
        except subprocess.CalledProcessError:
            print(f"CUDA {release} cannot be installed", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
