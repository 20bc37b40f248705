"""Findings in a cubin: registers touched too early.

    for finding in check.cubin(image): print(finding)

What is checked, and what is not, is in `docs/proof.md`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from hazards import cubins, flow, operands, sass, tables
from hazards.flow import Flow
from hazards.stalls import Stalls, own_waits
from hazards.units import ASYNCHRONOUS
from hazards.waits import Waits

# Cycles until a scoreboard that an instruction sets counts: ptxas waits so soon on every chip.
OWN_WAIT = 2
MARGIN = 1  # cycles behind the longest stall that is known

SAYS = {
    "read": "reads {register} before it waits for",
    "overwrite": "overwrites {register} before it waits for",
    "source": "overwrites {register}, which may not have been read yet by",
    "fence": "touches memory before it waits for",
    "call": "leaves the function before it waits for",
}


@dataclass(frozen=True)
class Finding:
    """A hazard: two instructions of a function, what is wrong, and the register or -1."""

    function: str
    kind: str
    first: int  # bytes from the start of the function
    second: int
    register: int
    text: str

    def __str__(self) -> str:
        return f"{self.function}+{self.second:#x}: {self.text}"


def function(found: Flow, table: tables.Table) -> Iterator[Finding]:
    """The hazards of one function, by the table of its architecture."""
    steps = found.steps
    seen = set()
    for access in Waits(found, table).accesses():
        first, second = steps[access.first], steps[access.second]
        key = (access.kind, access.first, access.second)
        if key in seen:
            continue
        seen.add(key)
        register = operands.name(access.register) if access.register >= 0 else ""
        said = SAYS[access.kind].format(register=register)
        text = f"'{second.instruction.text}' {said} '{first.instruction.text}' at {first.at:#x}"
        yield Finding(found.name, access.kind, first.at, second.at, access.register, text)
    window = MARGIN + max((n for row in table.stalls.values() for n in row.values()), default=0)
    for distance in Stalls(found, table.variable, window).distances():
        first, second = steps[distance.first], steps[distance.second]
        needed = table.needed(distance.kind, first.instruction, second.instruction)
        if needed is None or distance.cycles >= needed:
            continue
        key = ("stall", distance.first, distance.second)
        if key in seen:
            continue
        seen.add(key)
        verb = "overwrites" if distance.kind == "overwrite" else "reads"
        text = (
            f"'{second.instruction.text}' {verb} {operands.name(distance.register)} "
            f"{distance.cycles} cycles after '{first.instruction.text}' at {first.at:#x}; "
            f"ptxas leaves {needed}"
        )
        yield Finding(found.name, "stall", first.at, second.at, distance.register, text)
    for index, waiting, cycles in own_waits(found):
        first, second = steps[index], steps[waiting]
        needed = min(OWN_WAIT, table.waits.get(first.instruction.base, OWN_WAIT))
        if cycles < needed:
            text = (
                f"'{second.instruction.text}' waits for '{first.instruction.text}' at "
                f"{first.at:#x} {cycles} cycles after it; ptxas leaves {needed}"
            )
            yield Finding(found.name, "wait", first.at, second.at, -1, text)


def asynchronous(found: Flow) -> Counter[str]:
    """How many instructions there are whose order groups and mbarriers keep, by name.

    Their scoreboards are checked, what goes on after these is not.
    """
    bases = (step.instruction.base for step in found.steps)
    return Counter(base for base in bases if base in ASYNCHRONOUS)


def flows(image: bytes) -> tuple[str, list[Flow]]:
    """The architecture of a cubin and the control flow of its functions."""
    file = cubins.read(image)
    decoder = sass.decoder(file.arch)
    decoder.learn(part.code for part in file.functions)
    return file.arch, [flow.build(part, decoder) for part in file.functions]


def cubin(image: bytes) -> list[Finding]:
    """The hazards of a cubin."""
    arch, found = flows(image)
    table = tables.load(arch)
    return [finding for part in found for finding in function(part, table)]
