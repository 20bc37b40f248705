"""The functions of a cubin: code, where it can be entered, where its indirect branches go."""

from __future__ import annotations

from dataclasses import dataclass, field

from emulator.cubin import Cubin as File

EXECUTABLE = 4  # SHF_EXECINSTR
PROGBITS = 1
FUNCTION = 2  # STT_FUNC
INDIRECT_TARGETS = 0x34  # EIATTR_INDIRECT_BRANCH_TARGETS


@dataclass
class Function:
    """One code section. Offsets are bytes from its start."""

    name: str
    code: bytes
    entries: set[int] = field(default_factory=lambda: {0})
    indirect: dict[int, tuple[int, ...]] = field(default_factory=dict)


@dataclass
class Cubin:
    """What the checker needs of a cubin."""

    arch: str  # "80", "100"
    functions: list[Function]


def read(data: bytes) -> Cubin:
    """The functions of one cubin, relocatable or linked."""
    file = File(data)
    functions = {
        section.index: Function(section.name.removeprefix(".text."), section.data)
        for section in file.sections
        if section.type == PROGBITS and section.flags & EXECUTABLE
    }
    for symbol in file.symbols:
        if symbol.type == FUNCTION and symbol.section in functions:
            functions[symbol.section].entries.add(symbol.value)
    by_name = {function.name: function for function in functions.values()}
    for section in file.sections:
        if section.name.startswith(".nv.info.") and (found := by_name.get(section.name[9:])):
            for attribute in file.attributes(section):
                if attribute.number == INDIRECT_TARGETS:
                    found.indirect.update(_indirect(attribute.words()))
    return Cubin(str(file.sm), list(functions.values()))


def _indirect(words: tuple[int, ...]) -> dict[int, tuple[int, ...]]:
    """Offsets of indirect branches and of their targets: offset, two words, count, targets."""
    found: dict[int, tuple[int, ...]] = {}
    at = 0
    while at + 3 <= len(words):
        offset, _, count = words[at : at + 3]
        found[offset] = words[at + 3 : at + 3 + count]
        at += 3 + count
    return found
