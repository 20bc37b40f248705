"""Disassembly of code by `nvdisasm`, where it is installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

_INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;")
_PREDICATE = re.compile(r"(@!?U?P\w+)\s+")
_SECONDS = 20


def disassemble(code: bytes, sm: int, start: int) -> dict[int, str]:
    """{address: instruction} for the code of a section that lies at `start`, of target `sm`.

    As in Nsight Compute, a predicate takes the first 6 columns. Empty without `nvdisasm`, or when
    it does not know the target. It is given bare code: at the symbols and line tables of a cubin
    with load addresses it does not end.
    """
    tool = _find()
    if tool is None:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "code"
        path.write_bytes(code)
        try:
            result = subprocess.run(
                [tool, "--binary", f"SM{sm}", "--base-address", hex(start), str(path)],
                capture_output=True,
                text=True,
                timeout=_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return {}
    return _read(result.stdout, start) if result.returncode == 0 else {}


def _find() -> str | None:
    folder = os.environ.get("CUDA_HOME")
    return shutil.which("nvdisasm") or (
        shutil.which("nvdisasm", path=os.path.join(folder, "bin")) if folder else None
    )


def _read(text: str, start: int) -> dict[int, str]:
    found = {}
    for line in text.splitlines():
        instruction = _INSTRUCTION.match(line)
        if instruction is not None:
            at = int(instruction[1], 16)
            found[at if at >= start else start + at] = _columns(instruction[2])
    return found


def _columns(instruction: str) -> str:
    predicate = _PREDICATE.match(instruction)
    if predicate is None:
        return f"{'':6}{instruction} "
    return f"{predicate[1]:6}{instruction[predicate.end() :]} "
