"""Objects of older releases of CUDA: PTX of the 13.0 compiler, assembled by their ptxas.

The tools are beside those of `oracle`, each release in a folder of its own in build/oracles (or
PYLINK_ORACLES); one command installs each:

    pip install --target build/oracles/12.9 --no-deps nvidia-cuda-nvcc-cu12==12.9.86

and nvidia-cuda-nvcc-cu11==11.8.89 for 11.8. The tools of 13.x are those of `oracle`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from helpers import oracle
from helpers.programs import Module

# The newest version of PTX that ptxas of each release before 13.0 accepts.
PTX_VERSIONS = {
    "11.8": "7.8",
    "12.0": "8.0",
    "12.1": "8.1",
    "12.2": "8.2",
    "12.4": "8.4",
    "12.6": "8.5",
    "12.8": "8.7",
    "12.9": "8.8",
}


class CannotAssemble(Exception):
    """The older ptxas does not know an architecture or an instruction."""


def ptx_version(release: str) -> str:
    """Return the newest PTX version that ptxas of a release accepts: 9.2 for 13.2 and 13.2.51."""
    return PTX_VERSIONS.get(release) or f"9.{release.split('.')[1]}"


def find(release: str) -> Path | None:
    """Return the path of the ptxas of a release; None if it is not installed."""
    if release in (*oracle.VERSIONS, *oracle.PATCHES):
        toolchain = oracle.find_release(release)
        return toolchain.bin / "ptxas" if toolchain else None
    root = os.environ.get("PYLINK_ORACLES")
    folder = Path(root) if root else oracle.ROOT / "build" / "oracles"
    path = folder / release / "nvidia/cuda_nvcc/bin/ptxas"
    return path if path.is_file() else None


def assemble(ptx: str, arch: str, flags: Sequence[str], release: str) -> bytes:
    """Return a relocatable cubin from a release's ptxas, cached; CannotAssemble if refused."""
    ptxas = find(release)
    if ptxas is None:
        raise oracle.OracleError(f"no ptxas {release} below build/oracles (PYLINK_ORACLES)")
    text = oracle.PTX_VERSION.sub(rf"\g<1>{ptx_version(release)}", ptx, count=1)
    try:
        return oracle.assemble(text, arch, flags, ptxas=str(ptxas))
    except oracle.OracleError as error:
        raise CannotAssemble(str(error)) from None


def compile_module(module: Module, arch: str, release: str) -> bytes:
    """Return the cubin of a module by a release's ptxas, or by the tools of `oracle` if empty."""
    if not release:
        return oracle.compile(module.source, arch, module.flags, name=module.name)
    if module.name.endswith(".ptx"):
        return assemble(module.source, arch, module.flags, release)
    text = oracle.compile_ptx(module.source, oracle.PTX_ARCH[arch], module.flags, name=module.name)
    flags = [flag for flag in module.flags if not flag.startswith("-D")]
    return assemble(text, arch, flags, release)
