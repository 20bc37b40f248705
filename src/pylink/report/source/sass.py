"""Disassembles code with `nvdisasm`, if it is installed."""

from __future__ import annotations

import re

from pylink.subtools.programs import find_cuda_tool
from pylink.subtools.runner import Command, run_all

# A line of `nvdisasm`'s output: an address and an instruction. The predicate of an instruction.
_INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;")
_PREDICATE = re.compile(r"(@!?U?P\w+)\s+")
_PREDICATE_WIDTH = 6
_TIMEOUT_SECONDS = 20
_MAX_TEXT_SIZE = 1 << 28  # bytes of the output


def disassemble(code: bytes, sm: int, start: int) -> dict[int, str]:
    """Return {address: instruction} for the code of a section at address `start`, of target `sm`.

    As in Nsight Compute, a predicate takes the first 6 columns. Empty without `nvdisasm`, or if it
    fails, as for a target that it does not know. `nvdisasm` gets only the code: with a whole cubin
    whose symbols have load addresses, it does not terminate.
    """
    tool = find_cuda_tool("nvdisasm")
    if tool is None:
        return {}
    argv = [tool, "--binary", f"SM{sm}", "--base-address", hex(start)]
    command = Command(argv, code, prints=True, limit=_MAX_TEXT_SIZE)
    (outcome,) = run_all([command], timeout=_TIMEOUT_SECONDS)
    return {} if outcome.failure else _read_output(outcome.log, start)


def _read_output(text: str, start: int) -> dict[int, str]:
    """Return {address: instruction} for a disassembly; an address below `start` is an offset."""
    instructions = {}
    for line in text.splitlines():
        instruction = _INSTRUCTION.match(line)
        if instruction is not None:
            address = int(instruction[1], 16)
            instructions[address if address >= start else start + address] = _align_columns(
                instruction[2]
            )
    return instructions


def _align_columns(instruction: str) -> str:
    """Return an instruction with its predicate, or blanks, in the first columns."""
    predicate = _PREDICATE.match(instruction)
    if predicate is None:
        return f"{'':{_PREDICATE_WIDTH}}{instruction} "
    return f"{predicate[1]:{_PREDICATE_WIDTH}}{instruction[predicate.end() :]} "
