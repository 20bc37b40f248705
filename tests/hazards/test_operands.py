"""What instructions read and write is what nvdisasm says in its life ranges."""

from __future__ import annotations

import pytest
from differential.test_whole_programs import PROGRAMS
from helpers import older_sources, oracle, programs

from hazards import check, liferanges, operands
from hazards.sass import parse

pytestmark = oracle.needs_oracle

ARCHS = ("75", "80", "86", "89", "90a", "100", "103", "110", "120")
# At these, life ranges show what the other function may change, or the ABI keeps.
LEAVES = frozenset({"CALL", "RET", "BRX", "BRXU", "JMP", "JMX", "EXIT"})
# nvdisasm does not say which predicates a mask selects.
MASKS = frozenset({"P2R", "R2P"})


@pytest.mark.parametrize("arch", ARCHS)
def test_operands_are_those_of_life_ranges(arch: str) -> None:
    sources: list[tuple[str, tuple[str, ...]]] = [
        (text, ()) for text in (older_sources.EVERYTHING, *PROGRAMS.values())
    ]
    sources += [(m.source, m.flags) for seed in (3, 5) for m in programs.generate(seed).modules]
    seen, wrong = set(), []
    for text, flags in sources:
        image = oracle.compile(text, arch, flags)
        said = {(range_.function, range_.at): range_ for range_ in liferanges.read(image)}
        for flow in check.flows(image)[1]:
            for step in flow.steps:
                base = step.instruction.base
                found = said.get((flow.name, step.at))
                if found is None or base in LEAVES | MASKS:  # NOPs at the end have none
                    continue
                seen.add(base)
                used = step.registers
                if set(used.read) != found.read or set(used.written) != found.written:
                    wrong.append(f"{step.instruction.text}: nvdisasm says {found}")
    assert wrong == []
    assert {"FCHK", "IMAD", "LDG", "STG", "DFMA", "ISETP"} <= seen
    assert len(seen) > 50


@pytest.mark.parametrize(
    ("text", "read", "written"),
    [
        ("FCHK P0, R4, R6", "R4 R6", "P0"),
        ("IMAD.HI R5, R4, -0x6db6db6d, R6", "R4 R6 R7", "R5"),
        ("LDG.E.SYS R3, [R2]", "R2 R3", "R3"),
        ("LDGSTS.E.BYPASS.128 [R18], desc[UR8][R8.64]", "R18 R8 R9 UR8 UR9", ""),
        ("LDGSTS.E.BYPASS.128 [R18], [R8.64]", "R18 R8 R9", ""),
        ("LDSM.16.M88 R9, [R48]", "R48", "R9"),
        ("LDSM.16.M88.4 R8, [R48+UR4]", "R48 UR4", "R8 R9 R10 R11"),
        ("P2R R23, PR, RZ, 0x5", "P0 P2", "R23"),
        ("R2P PR, R0, 0x3", "R0", "P0 P1"),
        ("@!P1 UIMAD.WIDE.U32 UR6, UR4, UR8, UR10", "UR4 UR8 UR10 UR11 P1", "UR6 UR7"),
    ],
)
def test_one_instruction(text: str, read: str, written: str) -> None:
    found = operands.registers(parse(text))
    assert sorted(map(operands.name, found.read)) == sorted(read.split())
    assert sorted(map(operands.name, found.written)) == sorted(written.split())


def test_what_has_no_known_form_is_an_error() -> None:
    with pytest.raises(operands.UnknownOperands, match="HMMA"):
        operands.registers(parse("HMMA.9999.F32 R4, R8, R10, R4"))
    with pytest.raises(operands.UnknownOperands, match="F2F"):
        operands.registers(parse("F2F R4, R8"))
