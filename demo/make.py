"""Make demo/sources and demo/cubins from demo/program.py, and demo/linked with what nvlink makes.

Needs the CUDA 13.0.88 compiler and nvlink: pip install '.[oracle]'.
"""

from __future__ import annotations

import json
import platform
import re
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "tests")]

from helpers import oracle
from program import file_name, sources

ARCHES = ("90a", "100")
RUNS = 80
FLAGS = ["-lineinfo"]

# What the compiler calls the file that it was given.
COMPILED_FILE = re.compile(r'(\.file\s+\d+ ")[^"]*\.cu"')


def ptx(source: str, arch: str, file: str) -> str:
    """The PTX of a source, whose lines are said to be in demo/sources."""
    text = oracle.compile_ptx(source, oracle.PTX_ARCH[arch], FLAGS, name=file)
    return COMPILED_FILE.sub(rf'\1demo/sources/{file}"', text)


def main() -> None:
    """Compile and link for every arch."""
    milliseconds: dict[str, float] = {}
    for made in ("linked", "sources"):
        (HERE / made).mkdir(exist_ok=True)
    for arch in ARCHES:
        folder = HERE / "cubins" / f"sm_{arch}"
        folder.mkdir(parents=True, exist_ok=True)
        for name, source in sources().items():
            (HERE / "sources" / file_name(name)).write_text(source)
            cubin = oracle.assemble(ptx(source, arch, file_name(name)), arch, FLAGS)
            (folder / f"{name}.cubin").write_bytes(cubin)
        files = sorted(f"cubins/sm_{arch}/{name}.cubin" for name in sources())
        target = f"linked/sm_{arch}.cubin"
        argv = [f"-arch=sm_{arch}", *files, "-o", target]
        best = float("inf")
        for _ in range(RUNS):
            start = time.perf_counter()
            done = oracle.run_nvlink(argv, HERE)
            elapsed = time.perf_counter() - start
            if done.code:
                sys.exit(done.stderr)
            best = min(best, elapsed)
        milliseconds[f"sm_{arch}"] = round(best * 1000, 1)
    recorded = {"machine": platform.machine(), "milliseconds": milliseconds}
    (HERE / "linked" / "nvlink.json").write_text(json.dumps(recorded, indent=2) + "\n")


if __name__ == "__main__":
    main()
