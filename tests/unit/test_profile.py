"""The profile of a link: complete, true to the files, and harmless."""

from __future__ import annotations

import gc
import io
import os
import struct
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import SymbolTableSection
from helpers import oracle
from helpers.cubin_builder import one_kernel
from helpers.dedup_sources import TEMPLATES
from helpers.demo import ARCHES, cubins
from helpers.tables import merged, objects

import pylink
from pylink._native import counts, elfread, hardware, inputfiles
from pylink._native.results import PlacedTables
from pylink.facts.relocations import relocation_name
from pylink.phases.init import Job
from pylink.profile.clock import Clock, cost_between, read_counter
from pylink.profile.model import Profile
from pylink.report import read_report
from pylink.rowformats import FILE_COUNT, KIND_COUNT, TIME

PHASES = ["init", "read", "merge", "layout", "relocate", "finalize", "write"]


def profiled(arch: str, **options: Any) -> tuple[Profile, bytes]:
    result = pylink.link(cubins(arch), arch=arch, profile=True, **options)
    assert result.profile is not None
    return result.profile, result.image


def relocations(image: bytes) -> Counter[int]:
    """Relocation entries of a file by type, as pyelftools reads them."""
    found: Counter[int] = Counter()
    for section in ELFFile(io.BytesIO(image)).iter_sections():
        if isinstance(section, RelocationSection):
            found.update(entry["r_info_type"] for entry in section.iter_relocations())
        elif section.name.startswith(".nv.merc.rela"):
            found.update(row[1] for row in struct.iter_unpack("<QIIq", section.data()))
    return found


def test_a_plain_link_has_no_profile() -> None:
    assert pylink.link([one_kernel().build()], arch="sm_80").profile is None
    assert pylink.link([one_kernel().build()], arch="sm_80", profile=False).profile is None


@pytest.mark.parametrize("arch", ARCHES)
def test_the_output_does_not_depend_on_being_profiled(arch: str) -> None:
    assert profiled(arch)[1] == pylink.link(cubins(arch), arch=arch).image


@pytest.mark.parametrize("arch", ARCHES)
def test_phases_come_in_order_and_lie_within_the_link(arch: str) -> None:
    before = time.time() - 0.001
    profile, _ = profiled(arch)
    assert [phase.tag for phase in profile] == PHASES
    assert len(profile) == len(PHASES)
    at = profile.cost.start_ns
    for phase in profile:
        assert phase.cost.start_ns >= at
        at = phase.cost.start_ns + phase.wall_ns
        assert phase.cpu_ns >= 0
        steps = [step.cost for step in phase.steps]
        assert sum(step.wall_ns for step in steps) <= phase.wall_ns
        assert all(a.start_ns + a.wall_ns == b.start_ns for a, b in pairwise(steps))
    assert at <= profile.cost.start_ns + profile.wall_ns
    assert before <= profile.created <= time.time() - profile.wall_ns / 1e9 + 0.001
    assert profile["merge"] is profile.phases[2]
    with pytest.raises(KeyError):
        profile["nothing"]


@pytest.mark.parametrize("arch", ARCHES)
def test_inputs_are_counted_as_pyelftools_reads_them(arch: str) -> None:
    profile, _ = profiled(arch)
    for file, path in zip(profile.files, cubins(arch), strict=True):
        data = path.read_bytes()
        elf = ELFFile(io.BytesIO(data))
        assert file.name == str(path)
        assert file.size == len(data)
        assert file.sections == elf.num_sections()
        symbols = elf.get_section_by_name(".symtab")
        assert isinstance(symbols, SymbolTableSection)
        assert file.symbols == symbols.num_symbols()
        named = [
            symbol
            for symbol in symbols.iter_symbols()
            if symbol.name and symbol["st_info"]["type"] != "STT_SECTION"
        ]
        undefined = sum(symbol["st_shndx"] == "SHN_UNDEF" for symbol in named)
        assert (file.undefined, file.defined) == (undefined, len(named) - undefined)
        here = [symbol["st_info"] for symbol in named if symbol["st_shndx"] != "SHN_UNDEF"]
        assert file.functions == sum(info["type"] == "STT_FUNC" for info in here)
        assert file.weak == sum(info["bind"] == "STB_WEAK" for info in here)
        assert file.relocations == sum(relocations(data).values())
        assert file.read_ns > 0
        assert file.parse_ns > 0
        assert file.read_start_ns >= profile["read"].cost.start_ns
    read = profile["read"]
    assert read.bytes_read == sum(path.stat().st_size for path in cubins(arch))
    assert read.bytes_read == profile.input_bytes
    assert read.sections == sum(file.sections for file in profile.files)


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("relocatable", [False, True])
def test_kept_relocations_are_those_of_the_output(arch: str, relocatable: bool) -> None:
    profile, image = profiled(arch, relocatable_link=relocatable)
    kept = {row.number: row.kept for row in profile.relocations if row.kept}
    assert kept == relocations(image)
    families = sum(family.relocations_kept for family in profile.families)
    assert families == sum(kept.values()) == profile["relocate"].relocations_kept
    applied = sum(family.relocations_applied for family in profile.families)
    relocate = profile["relocate"]
    assert applied == relocate.relocations_applied
    assert relocate.relocations == applied + families
    assert all(row.name == relocation_name(row.number) for row in profile.relocations)


@pytest.mark.parametrize("arch", ARCHES)
def test_output_sections_are_those_of_the_file(arch: str) -> None:
    profile, image = profiled(arch)
    elf = ELFFile(io.BytesIO(image))
    output = sum(family.output_sections for family in profile.families)
    assert output + 1 == elf.num_sections()  # the null section belongs to no family
    table = elf.get_section_by_name(".symtab")
    assert isinstance(table, SymbolTableSection)
    symbols = table.num_symbols() - 1
    for phase in (profile["layout"], profile["finalize"]):
        assert (phase.sections, phase.symbols) == (output, symbols)
    steps = {step.name: (step.size, step.unit) for step in profile["finalize"].steps}
    assert steps["write_tables"] == (symbols, "symbols")
    by_name = {family.name: family for family in profile.families}
    text = [
        iter_section
        for iter_section in elf.iter_sections()
        if iter_section.name.startswith(".text.")
    ]
    assert by_name[".text.*"].output_sections == len(text)
    assert by_name[".text.*"].output_bytes == sum(section["sh_size"] for section in text)
    for family in profile.families:
        assert family.kept_sections <= family.input_sections
        assert family.copied_bytes <= family.input_bytes


def test_given_bytes_are_copied_and_files_are_read(tmp_path: Path) -> None:
    data = one_kernel().build()
    (tmp_path / "a.cubin").write_bytes(data)
    out = tmp_path / "out.cubin"
    given = pylink.link([data], arch="sm_80", profile=True).profile
    read = pylink.link([tmp_path / "a.cubin"], arch="sm_80", output=out, profile=True).profile
    assert given is not None
    assert read is not None
    assert (given["read"].bytes_copied, given["read"].bytes_read) == (len(data), 0)
    assert (read["read"].bytes_copied, read["read"].bytes_read) == (0, len(data))
    assert given["write"].bytes_written == 0
    assert read["write"].bytes_written == out.stat().st_size == read.output_bytes


@oracle.needs_oracle
def test_deduplication_is_counted_by_pair() -> None:
    copies = [oracle.compile(TEMPLATES, "100", ("-G",))] * 3
    profile = pylink.link(copies, arch="sm_100", profile=True).profile
    assert profile is not None
    assert profile.folding is not None
    stats = profile.folding.stats
    assert len(profile.pairs) == stats.pairs == 2
    assert [pair.code for pair in profile.pairs] == [0, 0]
    assert sum(pair.stats.bytes_compared for pair in profile.pairs) == stats.bytes_compared > 0
    assert sum(pair.stats.memcmp_calls for pair in profile.pairs) == stats.memcmp_calls
    assert profile["merge"].bytes_compared == stats.bytes_compared
    assert profile["merge"].bytes_hashed == stats.digest_bytes
    folded = [file.folded_bytes for file in profile.files]
    assert folded[0] == 0
    assert folded[1] == folded[2] > 0
    assert sum(folded) == sum(family.folded_bytes for family in profile.families)
    off = pylink.link(copies, arch="sm_100", profile=True, merc_dedup="off").profile
    assert off is not None
    assert off.folding is None
    assert off.pairs == []


def test_a_failing_link_leaves_no_descriptor_behind(tmp_path: Path) -> None:
    before = set(os.listdir("/proc/self/fd"))
    with pytest.raises(pylink.LinkError):
        pylink.link([b"no cubin"], arch="sm_80", profile=True)
    assert len(set(os.listdir("/proc/self/fd"))) == len(before)


@pytest.mark.parametrize("option", ["profile", "profile_aprof", "time_trace", "Map", "depfile"])
def test_what_a_watched_link_made_goes_at_its_end(tmp_path: Path, option: str) -> None:
    def jobs() -> int:
        return sum(isinstance(each, Job) for each in gc.get_objects())

    gc.collect()
    before = jobs()
    gc.disable()  # it would find the job, the inputs and the tables sooner or later
    try:
        asked: dict[str, Any] = {option: True if option == "profile" else tmp_path / "watched"}
        pylink.link(cubins("sm_100"), arch="sm_100", output=tmp_path / "out", **asked)
        assert jobs() == before
    finally:
        gc.enable()


def test_times_of_another_size_are_refused() -> None:
    data = one_kernel().build()
    with pytest.raises(ValueError, match="1 items need 32 bytes"):
        inputfiles.read_files([None], [len(data)], [data], bytearray(31))
    times = bytearray(TIME.size)
    arena, extents, _, _ = inputfiles.read_files([None], [len(data)], [data], times)
    assert TIME.unpack(times)[0] > 0
    with pytest.raises(ValueError, match="1 items need 32 bytes"):
        elfread.parse(arena, extents, bytearray(64))


def test_counting_checks_its_tables() -> None:
    homeless = merged(
        objects(sections=[{}]), section_function=bytes(4), section_resolution=bytes(1)
    )
    with pytest.raises(ValueError, match="0 homes of sections for 1 rows"):
        counts.count_sections(PlacedTables(homeless))
    with pytest.raises(ValueError, match="4 stand-ins for 0 rows"):
        counts.count_sections(PlacedTables(merged(stand_ins=bytes(16))))
    with pytest.raises(ValueError, match="1 indices of sections for 0 rows"):
        counts.count_relocations(PlacedTables(merged(), section_index=bytes(4)))
    past = merged(objects(files=[{"first_section": 1}]))
    with pytest.raises(IndexError, match="file 0 runs past"):
        counts.count_sections(PlacedTables(past))
    files, sums, kinds = counts.count_sections(PlacedTables(merged()))
    assert files == b""
    assert sums == bytes(FILE_COUNT.size)
    assert len(kinds) % KIND_COUNT.size == 0
    assert not any(kinds)


def test_a_counter_that_cannot_be_had_reads_as_none() -> None:
    assert hardware.open_counter(12345) < 0
    assert read_counter(-2) is None
    clock = Clock()
    start = clock.now()
    cost = cost_between(start, clock.now())
    clock.close()
    assert cost.wall_ns > 0
    assert cost.cycles is None or cost.cycles > 0


def test_a_shared_counter_is_scaled() -> None:
    reading, writing = os.pipe()
    os.write(writing, struct.pack("<3Q", 100, 40, 10))
    os.write(writing, struct.pack("<3Q", 100, 40, 0))
    assert read_counter(reading) == 400
    assert read_counter(reading) is None
    os.close(reading)
    os.close(writing)


@pytest.mark.parametrize(("flags", "expected"), [(("-G",), 2), (("-lineinfo",), 0)])
@oracle.needs_oracle
def test_debug_data_of_g_is_told_from_lines(
    flags: tuple[str, ...], expected: int, tmp_path: Path
) -> None:
    names = []
    for name in ("one", "two"):
        text = f"__global__ void {name}(int* p) {{ *p = 1; }}"
        names.append(tmp_path / f"{name}.cubin")
        names[-1].write_bytes(oracle.compile(text, "100", flags, name=f"{name}.cu"))
    path = tmp_path / "link.ncu-rep"
    pylink.link(names, arch="sm_100", profile=path)
    (read,) = [action for action in read_report(path).actions if action.function_name == "read"]
    assert read.number("file__with_debug_info.sum") == expected
    assert read.number("file__debug_bytes_by_option.sum") == read.number("file__debug_bytes.sum")
    assert [each.id for each in read.metrics["file__debug_bytes_by_option.sum"].instances] == list(
        flags
    )
    assert 0 < (read.number("link__debug_cpu_time_share.pct") or 0) < 100
