"""Install tools of other CUDA releases, for the tests that compare with them.

    python scripts/install_oracle.py 13.5 13.1

These are nvcc, ptxas and nvlink; of 12.9, which has no nvlink there, ptxas and nvJitLink. Each
release goes into a folder of its own below build/oracles (PYLINK_ORACLES), where the tests
look for it; one that is there already stays. About 120 MB to fetch and 400 MB on disk for each. The
tools of 13.0.88 come with the extra `oracle`. A patch level, such as 13.2.51, has a folder as well.
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

# Of each release the versions of its tools, of the headers of the runtime, and of the C++ library.
WHEELS = {
    "13.1": ("13.1.115", "13.1.80", "13.1.115"),
    "13.2": ("13.2.86", "13.2.86", "13.2.86"),
    "13.3": ("13.3.73", "13.3.29", "13.3.5.0.6"),
    "13.4": ("13.4.92", "13.4.92", "13.3.5.0.6"),
    "13.5": ("13.5.37", "13.5.37", "13.3.5.0.6"),
}
# Of earlier patch levels the tools alone: what they assemble and link, the compiler of 13.0 makes.
PATCHES = ("13.0.48", "13.1.80", "13.2.51", "13.2.78", "13.3.33", "13.4.59")


# A newer nvJitLink, for the tests of which compilers go together.
LIBRARIES = {"13.5": ("nvidia-nvjitlink==13.5.37",)}

# Those of 12.9 have other names, and folders of their own.
EARLY_WHEELS = {
    "12.9": (
        "nvidia-cuda-nvcc-cu12==12.9.86",
        "nvidia-nvjitlink-cu12==12.9.86",
        "nvidia-cuda-runtime-cu12==12.9.79",
    )
}
LINKERS = ("nvidia/cu13/bin/nvlink", "nvidia/nvjitlink/lib/libnvJitLink.so.12")
NVJITLINK = "nvidia/cu13/lib/libnvJitLink.so.13"


def wheels(release: str) -> list[str]:
    """What pip installs for a release."""
    if release in EARLY_WHEELS:
        return list(EARLY_WHEELS[release])
    if release in PATCHES:
        return _tools(release)
    tools, runtime, cccl = WHEELS[release]
    return [
        *_tools(tools),
        f"nvidia-cuda-runtime=={runtime}",
        f"nvidia-cuda-cccl=={cccl}",
        *LIBRARIES.get(release, ()),
    ]


def _tools(version: str) -> list[str]:
    return [f"nvidia-{name}=={version}" for name in ("cuda-nvcc", "nvvm", "cuda-crt")]


def install(release: str) -> None:
    """Install one release; whole or not at all."""
    target = FOLDER / release
    wanted = wheels(release)
    if any((target / linker).exists() for linker in LINKERS):
        if release not in LIBRARIES or (target / NVJITLINK).exists():
            return
        shutil.rmtree(target)
    unfinished = FOLDER / f"{release}.unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*command, "--no-deps", "--target", str(unfinished), *wanted], check=True)
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
