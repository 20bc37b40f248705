"""Disassembles code with `nvdisasm`, if it is installed."""

from __future__ import annotations

import re

from pylink.subtools.programs import find_cuda_tool
from pylink.subtools.runner import Command, run_all

_INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;")
_PREDICATE = re.compile(r"(@!?U?P\w+)\s+")
_TIMEOUT_SECONDS = 20
_MAX_TEXT_SIZE = 1 << 28


def disassemble(code: bytes, sm: int, start: int) -> dict[int, str]:
    """Return {address: instruction} for the code of a section at address `start`, of target `sm`.

    As in Nsight Compute, a predicate takes the first 6 columns. Empty without `nvdisasm`, or if it
    does not know the target. `nvdisasm` gets only the code: it does not terminate for the symbols
    and line tables of a cubin with load addresses.
    """
    tool = find_cuda_tool("nvdisasm")
    if tool is None:
        return {}
    argv = [tool, "--binary", f"SM{sm}", "--base-address", hex(start)]
    command = Command(argv, code, prints=True, limit=_MAX_TEXT_SIZE)
    (outcome,) = run_all([command], timeout=_TIMEOUT_SECONDS)
    return {} if outcome.failure else _read(outcome.log, start)


def _read(text: str, start: int) -> dict[int, str]:
    functions = {}
    for line in text.splitlines():
        instruction = _INSTRUCTION.match(line)
        if instruction is not None:
            address = int(instruction[1], 16)
            functions[address if address >= start else start + address] = _columns(instruction[2])
    return functions


def _columns(instruction: str) -> str:
    predicate = _PREDICATE.match(instruction)
    if predicate is None:
        return f"{'':6}{instruction} "
    return f"{predicate[1]:6}{instruction[predicate.end() :]} "
