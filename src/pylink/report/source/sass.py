"""Disassembly of a cubin by `nvdisasm`, where it is installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

_FUNCTION = re.compile(r"^\.section\s+\.text\.(\S+?),")
_INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;")
_PREDICATE = re.compile(r"(@!?U?P\w+)\s+")
_SECONDS = 60


def disassemble(cubin: bytes, starts: Mapping[str, int]) -> dict[int, str]:
    """{address: instruction}; `starts` are the addresses of functions.

    As in Nsight Compute, a predicate takes the first 6 columns. Targets of branches stay labels.
    Empty without `nvdisasm`, or when it refuses the cubin.
    """
    tool = _find()
    if tool is None:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "code.cubin"
        path.write_bytes(cubin)
        try:
            result = subprocess.run(
                [tool, "-c", str(path)],
                capture_output=True,
                text=True,
                timeout=_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return {}
    return _read(result.stdout, starts) if result.returncode == 0 else {}


def _find() -> str | None:
    folder = os.environ.get("CUDA_HOME")
    return shutil.which("nvdisasm") or (
        shutil.which("nvdisasm", path=os.path.join(folder, "bin")) if folder else None
    )


def _read(text: str, starts: Mapping[str, int]) -> dict[int, str]:
    found: dict[int, str] = {}
    start = None
    for line in text.splitlines():
        if function := _FUNCTION.match(line):
            start = starts.get(function[1].strip('"'))
        elif start is not None and (instruction := _INSTRUCTION.match(line)):
            found[start + int(instruction[1], 16)] = _columns(instruction[2])
    return found


def _columns(instruction: str) -> str:
    predicate = _PREDICATE.match(instruction)
    if predicate is None:
        return f"{'':6}{instruction} "
    return f"{predicate[1]:6}{instruction[predicate.end() :]} "
