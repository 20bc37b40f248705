"""Remarks of links of compiled programs, held against the linked file."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from helpers import oracle, programs
from helpers.linked import functions, kernels
from helpers.remark_programs import SCALE, Program, args, cubins, size_of
from helpers.remarked import line, remarks_of

import pylink
from pylink.inspect import document
from pylink.inspect.image import Image

pytestmark = oracle.needs_oracle

ARCHS = ("80", "90", "100", "120")
FAMILIES = ("75", "90a", "100")
# Program 10 does not link: a kernel may not have the registers of its callee.
SEEDS = tuple(seed for seed in range(15) if seed != 10)


@pytest.fixture(params=ARCHS, scope="module")
def program(request: pytest.FixtureRequest) -> Program:
    arch: str = request.param
    return Program(cubins(arch, "-lineinfo"), arch)


@pytest.fixture(params=[(seed, arch) for seed in SEEDS for arch in FAMILIES], ids=str)
def generated(request: pytest.FixtureRequest) -> Program:
    seed, arch = request.param
    program = programs.generate(seed)
    made = {
        f"{module.name}.cubin": oracle.compile(module.source, arch, module.flags, name=module.name)
        for module in program.modules
    }
    return Program(made, arch)


def test_remarks_of_generated_programs(generated: Program) -> None:
    check_stacks(generated)
    check_registers(generated)
    check_shared(generated)
    check_kept(generated)
    check_debug(generated)
    check_removed(generated)


def attributes(image: Image, name: str) -> dict[str, int]:
    """Function -> value of an attribute that .nv.info gives each."""
    tables: Any = document.info(image)
    return {
        row["symbol"]: row["value"]
        for table in tables
        if not table["section"].startswith(".nv.merc")
        for row in table["rows"]
        if row["attribute"] == name
    }


def check_stacks(program: Program) -> None:
    """Every kernel has a remark, and the stack of the file."""
    stacks = attributes(program.image, "EIATTR_MIN_STACK_SIZE")
    told = {
        remark.function: int(args(remark)["Stack"]) for remark in program.with_names("KernelStack")
    }
    assert told == {name: stacks[name] for name in told}
    unknown = {remark.function for remark in program.with_names("StackUnknown")}
    assert kernels(program.image.data) == told.keys() | unknown
    assert not told.keys() & unknown


def test_stacks_are_those_of_the_file(program: Program) -> None:
    check_stacks(program)
    told = {remark.function for remark in program.with_names("KernelStack")}
    assert told == {"_Z2k1Pf", "_Z2k3Pf"}
    (unknown,) = program.with_names("StackUnknown")
    assert unknown.function == "_Z2k2Pf"
    assert args(unknown)["Cycle"] == "_Z3reci -> _Z3reci"


def test_register_counts_are_those_of_the_file(program: Program) -> None:
    check_registers(program)


def check_registers(program: Program) -> None:
    counts = attributes(program.image, "EIATTR_REGCOUNT")
    for remark in program.with_names("KernelRaised"):
        assert counts[remark.function] == int(args(remark)["Registers"])
        assert args(remark)["Chain"].endswith(args(remark)["Callee"])


def test_shared_memory_has_the_size_of_its_section(program: Program) -> None:
    check_shared(program)
    assert len(program.with_names("KernelShared")) == 3


def check_shared(program: Program) -> None:
    told = {
        remark.function: int(args(remark)["Size"]) for remark in program.with_names("KernelShared")
    }
    for name, size in told.items():
        assert size_of(program.image, f".nv.shared.{name}") == size
    for remark in program.with_names("VariablePlaced"):
        values = args(remark)
        end = int(values["Offset"]) + int(values["Size"])
        assert end <= told[remark.function]


def test_kept_relocations_fill_their_tables(program: Program) -> None:
    check_kept(program)


def check_kept(program: Program) -> None:
    told: Counter[str] = Counter()
    for remark in program.with_names("RelocationsKept"):
        told[args(remark)["Table"]] += int(args(remark)["Kept"])
    tables = {
        section.name: section.size // section.entsize
        for section in program.image.sections
        if section.name.startswith((".rel", ".nv.merc.rela."))
        and section.size
        and not section.name.startswith(".nv.rel")
    }
    assert told == tables


def test_every_relocation_of_live_code_is_applied_or_kept(program: Program) -> None:
    told: Counter[str] = Counter()
    for remark in program.with_names("RelocationsKept", "RelocationsApplied"):
        if remark.function.startswith(".text."):
            told[remark.function] += int(args(remark).get("Kept") or args(remark)["Applied"])
    wanted: Counter[str] = Counter()
    for name in ("main.cubin", "other.cubin"):
        for section in Image(program.cubins[name]).sections:
            for prefix in (".rel.text", ".rela.text"):
                if section.name.startswith(prefix + "."):
                    function = section.name.removeprefix(prefix)
                    wanted[f".text{function}"] += section.size // section.entsize
    assert told == wanted


def test_debug_sections_have_the_bytes_told(program: Program) -> None:
    check_debug(program)


def check_debug(program: Program) -> None:
    pieces: defaultdict[str, int] = defaultdict(int)
    for remark in program.with_names("DebugPiece"):
        pieces[remark.function] += int(args(remark)["Bytes"])
    sections = program.with_names("DebugSection")
    debug = [s for s in program.image.sections if "debug_" in s.name and ".rel" not in s.name]
    assert {remark.function for remark in sections} == {section.name for section in debug}
    for remark in sections:
        values = args(remark)
        assert size_of(program.image, remark.function) == int(values["OutputBytes"])
        assert pieces[remark.function] == int(values["InputBytes"])


def test_removed_functions_are_not_in_the_file(program: Program) -> None:
    check_removed(program)
    assert [remark.function for remark in program.with_names("FunctionRemoved")] == ["_Z6unusedf"]


def check_removed(program: Program) -> None:
    """What an input has as code and the output has not was removed; nothing else was."""
    removed = {remark.function for remark in program.with_names("FunctionRemoved")}
    had = set().union(*map(functions, program.cubins.values()))
    assert removed == had - functions(program.image.data)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("option", ["debug", "preserve_relocs"])
def test_variables_lie_where_their_symbols_say(arch: str, option: str) -> None:
    program = Program(cubins(arch, "-G"), arch, **{option: True})
    tables: Any = document.symbols(program.image)
    values = {
        row["name"]: row["value"]
        for table in tables
        if table["section"] == ".symtab"
        for row in table["rows"]
    }
    placed = [args(remark) for remark in program.with_names("VariablePlaced")]
    assert {row["Variable"] for row in placed} == {"_ZZ2k1PfE3own", "common1", "common2"}
    for row in placed:
        assert int(row["Offset"]) == values[row["Variable"]]


def test_weak_copies_and_places_in_the_source(program: Program) -> None:
    told = program.with_names("WeakKept", "WeakReplaced")
    assert len(told) == 3
    assert {remark.function for remark in told} == {"_Z5scaleILi3EEff"}
    assert [Path(remark.file or "").name for remark in told] == ["other.cu", "scale.cu", "scale.cu"]
    assert {remark.line for remark in told} <= {3, 4, 5}


def test_remarks_change_no_byte(program: Program, tmp_path: Path) -> None:
    inputs = list(program.cubins.items())
    arch = f"sm_{program.image.sm}"
    plain = pylink.link(inputs, arch=arch).image
    told = pylink.link(inputs, arch=arch, pass_remarks_output=str(tmp_path / "r.yaml")).image
    assert told == plain


def test_without_line_information_the_cubin_is_the_place() -> None:
    remarks = remarks_of({"main.cubin": oracle.compile(SCALE, "80")}, "80", "dce")
    assert [line(remark) for remark in remarks] == [
        "Passed FunctionRemoved _Z5scaleILi3EEff main.cubin:0:0 256 | removed _Z5scaleILi3EEff, "
        "256 bytes of code: no kernel reaches it"
    ]
