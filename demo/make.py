"""Compile demo/sources to demo/cubins, and link these with nvlink to demo/linked.

Needs the CUDA 13.0.88 compiler and nvlink: pip install '.[oracle]'.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
SOURCES = HERE / "sources"
sys.path[:0] = [str(HERE.parent / "tests")]

from helpers import oracle

ARCHES = ("90a", "100")
FLAGS = ["-lineinfo"]

# The modules of the program: source file, and further options of the compiler.
MODULES = {
    "random": ("random.cu", []),
    "reduction": ("reduction.cu", []),
    "smoothing_a": ("smoothing.cu", []),
    "smoothing_b": ("smoothing.cu", []),
    "step": ("step.cu", []),
    **{f"force_{number}": ("force.cu", [f"-DFORCE={number}"]) for number in range(8)},
}

# The name of the source file in the compiler's PTX.
COMPILED_FILE = re.compile(r'(\.file\s+\d+ ")[^"]*\.cu"')


def ptx(module: str, arch: str) -> str:
    """Return the PTX of a module, with line information that names a file in demo/sources."""
    file, options = MODULES[module]
    flags = [*FLAGS, *options, f"-I{SOURCES}"]
    source = (SOURCES / file).read_text()
    text = oracle.compile_ptx(source, oracle.PTX_ARCH[arch], flags, name=file)
    return COMPILED_FILE.sub(rf'\1demo/sources/{file}"', text)


def main() -> None:
    """Compile and link for every arch."""
    (HERE / "linked").mkdir(exist_ok=True)
    for arch in ARCHES:
        folder = HERE / "cubins" / f"sm_{arch}"
        folder.mkdir(parents=True, exist_ok=True)
        for name in MODULES:
            cubin = oracle.assemble(ptx(name, arch), arch, FLAGS)
            (folder / f"{name}.cubin").write_bytes(cubin)
        files = sorted(f"cubins/sm_{arch}/{name}.cubin" for name in MODULES)
        target = f"linked/sm_{arch}.cubin"
        done = oracle.run_nvlink([f"-arch=sm_{arch}", *files, "-o", target], HERE)
        if done.code:
            sys.exit(done.stderr)


if __name__ == "__main__":
    main()
