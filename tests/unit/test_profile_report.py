"""The report of `--profile`: the link's numbers, as our reader and the real tools see them."""

from __future__ import annotations

import io
import json
import sys
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from helpers import demo, ncu, oracle
from helpers.cubin_builder import IN_CONSTANT, Cubin, Section, Symbol
from helpers.dedup_sources import TEMPLATES
from helpers.ncu_dump import dump
from helpers.report_files import of_section, rule_text, section_text

import pylink
import pylink.report
import pylink.size
from pylink.command.inspection import main as inspect
from pylink.demangle import demangle
from pylink.facts.relocations import relocation_name
from pylink.profile.estimates import disk_wait_ns
from pylink.profile.groups import group_rows, pattern, skeleton
from pylink.profile.model import Profile
from pylink.profile.phase import Cost, Phase
from pylink.profile.report import MAX_PAIRS, link_report
from pylink.profile.sites import field_bytes
from pylink.report import IContext, load_report, read_report
from pylink.report.api.descriptions import describe
from pylink.report.display import (
    COMPUTE_CAPABILITY_MAJOR,
    COMPUTE_CAPABILITY_MINOR,
    GRID_SIZE,
    add_display_metrics,
)
from pylink.report.model import Action, Report
from pylink.report.sections.filters import matches, target_of
from pylink.report.view.bytetree import MAX_PARTS, Node, byte_tree
from pylink.report.view.command import main as report
from pylink.report.view.numbers import format_value

GOLDEN = Path(__file__).parents[1] / "golden"
_LEVELS = "part", "function"
SHT_CONSTANT3 = 0x70000067
ABS32_32 = 55
PHASES = ["init", "read", "merge", "layout", "relocate", "finalize", "write"]


@pytest.fixture(scope="module", params=["sm_90a", "sm_100"])
def linked(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, pylink.LinkResult]:
    folder = tmp_path_factory.mktemp("report")
    cubins = demo.cubins(request.param)
    path = folder / "link.ncu-rep"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYLINK_SECTIONS", str(folder / "sections"))
        result = pylink.link(cubins, arch=request.param, output=folder / "out.cubin", profile=path)
    return path, result


def phases_of(report: Report) -> list[Action]:
    """The actions of phases, without those of comparisons."""
    return [action for action in report.launches() if action.function_name in PHASES]


def by_phase(report: Report) -> dict[str, Action]:
    return {action.function_name: action for action in report.launches()}


def test_each_phase_is_an_action(linked: tuple[Path, pylink.LinkResult]) -> None:
    path, result = linked
    report = read_report(path)
    actions = phases_of(report)
    assert [action.function_name for action in actions] == PHASES
    (whole,) = report.ranges()
    profile = result.profile
    assert profile is not None
    assert whole.value("link__time_duration.sum") == profile.wall_ns
    for action, phase in zip(actions, profile, strict=True):
        assert action.value("link__time_duration.sum") == phase.wall_ns
        assert action.value("link__cpu_time_duration.sum") == phase.cpu_ns
        steps = action.metrics["link__step_time_duration.sum"].by_id()
        assert steps == {step.name: step.wall_ns for step in phase.steps}
        share = 100 * phase.wall_ns / profile.wall_ns
        assert action.value("link__time_share.pct") == pytest.approx(share)
    assert profile.wall_ns / 2 < sum(phase.wall_ns for phase in profile) <= profile.wall_ns
    (reading,) = [step for step in profile["read"].steps if step.name == "read_files"]
    floor = reading.wall_ns + profile["write"].wall_ns
    # Both were measured again, and the least counts.
    least = whole.number("link__copy_floor_time_duration.sum")
    assert least is not None
    assert 0 < least <= floor
    parts = str(whole.value("breakdown:link__time_share.pct")).split(",")
    assert sum(whole.number(name) or 0 for name in parts) == pytest.approx(100)
    ratio = whole.value("link__time_per_copy_floor.ratio")
    assert ratio == pytest.approx(profile.wall_ns / least)


def test_instances_are_those_of_the_profile(linked: tuple[Path, pylink.LinkResult]) -> None:
    path, result = linked
    profile = result.profile
    assert profile is not None
    actions = by_phase(read_report(path))
    read = actions["read"].metrics["file__bytes_read.sum"]
    assert read.by_id() == {file.name: file.size for file in profile.files}
    assert read.value == sum(file.size for file in profile.files)
    for name, attribute in (("symbols", "input"), ("weak", "weak"), ("functions", "functions")):
        counted = sum(getattr(file, name) for file in profile.files)
        assert actions["read"].value(f"sym__{attribute}.sum") == counted
    applied = actions["relocate"].metrics["reloc__applied.sum"].by_id()
    assert applied == {row.name: row.applied for row in profile.relocations if row.applied}
    left = actions["relocate"].metrics["reloc__left_dynamic.sum"].by_id()
    assert left == {row.name: row.kept for row in profile.relocations if row.kept}
    sections = actions["merge"].metrics["sect__input_bytes.sum"].by_id()
    assert sections == {
        family.name: family.input_bytes for family in profile.families if family.input_bytes
    }
    written = actions["write"].value("elf__bytes_written.sum")
    assert written == (path.parent / "out.cubin").stat().st_size


@pytest.mark.parametrize(
    ("sm", "capability"), [(75, 75), (88, 87), (90, 90), (100, 90), (121, 90), (35, 40)]
)
def test_tools_are_told_the_newest_capability_that_they_know(sm: int, capability: int) -> None:
    action = Action("read")
    action.set(GRID_SIZE, 7)
    add_display_metrics(action, sm, f"sm_{sm}", items=3)
    names = (COMPUTE_CAPABILITY_MAJOR, COMPUTE_CAPABILITY_MINOR)
    assert tuple(map(action.value, names)) == divmod(capability, 10)
    assert action.value(GRID_SIZE) == 7  # what is there stays


def test_bytes_that_no_cache_had() -> None:
    profile = pylink.link(demo.cubins("sm_90a"), arch="sm_90a", profile=True).profile
    assert profile is not None
    read = profile["read"]
    (reading,) = (step for step in read.steps if step.name == "read_files")
    read.cost.disk_bytes = 3 * read.bytes_read  # pylink's own modules, which are no inputs
    for disk, cold in ((0, 0), (read.bytes_read // 4, 25), (2 * read.bytes_read, 100)):
        reading.cost.disk_bytes = disk
        action = by_phase(link_report(profile))["read"]
        assert action.value("file__disk_bytes.sum") == min(disk, read.bytes_read)
        assert action.number("file__cache_hit.pct") == pytest.approx(100 - cold, abs=0.01)


def test_nvtx_stacks_lead_to_the_phase(linked: tuple[Path, pylink.LinkResult]) -> None:
    context = load_report(str(linked[0]))
    assert isinstance(context, IContext)
    (everything,) = context
    names = [action.name() for action in everything]
    for include in ("pylink@link/merge", "link/merge", "pylink@[link/merge]"):
        found = {names[at] for at in everything.actions_by_nvtx([include], [])}
        assert found - {"dedup"} == {"merge"}
    assert len(everything.actions_by_nvtx(["pylink@[link"], [])) == len(names)


def test_source_counters_stand_at_the_relocated_instructions(
    linked: tuple[Path, pylink.LinkResult],
) -> None:
    path, _ = linked
    report = read_report(path)
    relocate = by_phase(report)["relocate"]
    start = relocate.number("launch__function_pcs")
    assert start
    applied = relocate.metrics["reloc__inst_patched"].by_id()
    patched = relocate.metrics["reloc__bytes_patched"].by_id()
    assert applied.keys() == patched.keys()
    assert all(isinstance(at, int) and at >= start and at % 16 == 0 for at in applied)
    assert sum(int(count) for count in applied.values()) == relocate.value("reloc__inst_patched")
    source = report.source_of(relocate)
    assert source is not None
    assert source.binary is not None
    assert len(source.binary) == (path.parent / "out.cubin").stat().st_size


def test_the_source_page_shows_the_function_with_most_relocations(tmp_path: Path) -> None:
    cubin = Cubin()
    bank = cubin.section(Section(".nv.constant3", SHT_CONSTANT3, bytes(16), 2))
    constant = cubin.symbol(Symbol("c", other=IN_CONSTANT, section=bank, size=4))
    for name, offsets in (("few", [0]), ("most", [64, 32, 40]), ("some", [16, 32])):
        cubin.function(name, kernel=True)
        rows = [(offset, ABS32_32, constant, 0) for offset in offsets]
        cubin.relocate(cubin.find(f".text.{name}"), rows)
    pylink.link([cubin.build()], arch="sm_80", profile=tmp_path / "link.ncu-rep")
    relocate = by_phase(read_report(tmp_path / "link.ncu-rep"))["relocate"]
    assert relocate.mangled_name == "most"
    start = relocate.value("launch__function_pcs")
    assert isinstance(start, int)
    applied = relocate.metrics["reloc__inst_patched"].by_id()
    assert list(applied.items()) == [(start + 32, 2), (start + 64, 1)]
    patched = relocate.metrics["reloc__bytes_patched"].by_id()
    assert list(patched.items()) == [(start + 32, 8), (start + 64, 4)]


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("64", 8),
        ("ABS32_LO_32", 4),
        ("8_16", 1),
        ("CONST_FIELD21_38", 3),
        ("UNUSED_CLEAR64", 8),
        ("TEX_SLOT", 1),
        ("SAMP_HEADER_INDEX_0", 0),
    ],
)
def test_bytes_that_hold_a_field(name: str, size: int) -> None:
    number = next(n for n in range(128) if relocation_name(n) == f"R_CUDA_{name}")
    assert field_bytes(number) == size


@oracle.needs_oracle
@pytest.mark.parametrize("copies", [3, MAX_PAIRS + 2])
def test_comparisons_are_actions_until_there_are_too_many(copies: int) -> None:
    cubin = oracle.compile(TEMPLATES, "100", ("-G",))
    inputs = [(f"unit{number}.cubin", cubin) for number in range(copies)]
    profile = pylink.link(inputs, arch="sm_100", profile=True).profile
    assert profile is not None
    report = link_report(profile)
    dedup = [action for action in report.actions if action.function_name == "dedup"]
    assert dedup[0].value("dedup__pairs_equal.sum") == copies - 1
    assert dedup[0].demangled_name == f"dedup({copies - 1} pairs)"
    compared = dedup[0].metrics["dedup__bytes_compared.sum"]
    assert len(compared.instances) == copies - 1
    if copies > MAX_PAIRS:
        assert len(dedup) == 1
        return
    assert dedup[1].demangled_name == "dedup(unit1.cubin, unit0.cubin)"
    parts = [action.number("dedup__bytes_compared.sum") or 0 for action in dedup[1:]]
    assert sum(parts) == compared.value
    assert all(action.stream_name == "dedup" for action in dedup)


@oracle.needs_oracle
def test_comparisons_that_end_early_are_counted_by_stage() -> None:
    other = TEMPLATES.replace("x * x", "x * x * x")
    inputs = [oracle.compile(text, "100") for text in (TEMPLATES, TEMPLATES, other)]
    profile = pylink.link(inputs, arch="sm_100", profile=True).profile
    assert profile is not None
    assert [(pair.code, pair.stage) for pair in profile.pairs] == [(0, None), (17, 1)]
    merge = by_phase(link_report(profile))["merge"]
    assert merge.metrics["dedup__rejected.sum"].by_id() == {"primary": 1}
    assert merge.value("dedup__stage1_reject.pct") == 50
    assert merge.value("dedup__pairs_equal.sum") == 1


def test_a_report_without_protobuf_is_refused_clearly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cubins = demo.cubins("sm_100")
    monkeypatch.setitem(sys.modules, "pylink.report", None)
    with pytest.raises(pylink.LinkError, match=r"link\.ncu-rep"):
        pylink.link(cubins, arch="sm_100", profile=tmp_path / "link.ncu-rep")
    assert not list(tmp_path.iterdir())


@ncu.needs_ncu
def test_ncu_shows_our_metrics(linked: tuple[Path, pylink.LinkResult]) -> None:
    path, result = linked
    profile = result.profile
    assert profile is not None
    header, units, *values = ncu.ncu_csv(path, "--page", "raw", "--print-units", "base")
    assert len(values) == len(read_report(path).actions)
    name = header.index("Kernel Name")
    rows = {row[name].partition("(")[0]: row for row in values}
    column = header.index("link__time_duration.sum")
    assert units[column] == "nsecond"
    for phase in profile:
        assert int(rows[phase.tag][column]) == phase.wall_ns
    column = header.index("file__bytes_read.sum")
    assert units[column] == "byte"
    assert int(rows["read"][column]) == profile.input_bytes
    merge = ncu.ncu_csv(path, "--page", "raw", "--nvtx-include", "pylink@[link/merge]")
    assert len(merge) == 3


@ncu.needs_ncu
@pytest.mark.parametrize("by", ["per-kernel", "per-gpu", "per-nvtx"])
def test_ncu_summarises(linked: tuple[Path, pylink.LinkResult], by: str) -> None:
    assert "Note: The shown averages" in ncu.ncu(linked[0], "--print-summary", by)


@ncu.needs_ncu_report
def test_the_real_module_reads_what_ours_reads(linked: tuple[Path, pylink.LinkResult]) -> None:
    path, _ = linked
    ours = dump(pylink.report, str(path), [], [])
    assert json.loads(json.dumps(ours)) == ncu.real_dump(path)


def test_sections_and_what_rules_say_go_into_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYLINK_SECTIONS", str(tmp_path / "user"))
    (tmp_path / "user").mkdir()
    (tmp_path / "user" / "mine.section").write_text('Identifier: "Mine"\nBogus: 1\n')
    cubins = demo.cubins("sm_90a")
    result = pylink.link(cubins, arch="sm_90a", profile=tmp_path / "link.ncu-rep")
    (warning,) = result.diagnostics
    assert warning.kind == "profile-problem"
    assert "mine.section" in warning.message
    actions = by_phase(read_report(tmp_path / "link.ncu-rep"))
    assert "LinkPhases" in [section.identifier for section in actions["merge"].sections]
    assert "LinkKeptRelocations" in [
        rule_result.identifier for rule_result in actions["relocate"].rule_results
    ]


def test_the_link_takes_sections_and_rules_as_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYLINK_SECTIONS", str(tmp_path / "user"))
    own = tmp_path / "own"
    own.mkdir()
    header = 'Header { Metrics { Name: "link__time_duration.sum" } Metrics { Name: "gone" } }'
    (own / "mine.section").write_text(section_text("Mine", extra=header))
    (own / "mine.py").write_text(rule_text("fe.message('seen')", "MyRule", of_section("Mine")))
    cubins, out = demo.cubins("sm_90a"), tmp_path / "link.ncu-rep"
    link = partial(
        pylink.link, cubins, arch="sm_90a", profile=out, section_folder=str(own), section="Mine"
    )
    result = link()
    (warning,) = result.diagnostics
    assert "section Mine: metric gone is missing" in warning.message
    actions = read_report(out).actions
    assert {tuple(each.identifier for each in action.sections) for action in actions} == {("Mine",)}
    assert all(action.rule_results[0].identifier == "MyRule" for action in actions)
    link(apply_rules="no")
    assert not any(action.rule_results for action in read_report(out).actions)


def test_a_section_that_does_not_exist_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYLINK_SECTIONS", str(tmp_path / "user"))
    cubins, out = demo.cubins("sm_90a"), tmp_path / "link.ncu-rep"
    with pytest.raises(pylink.LinkError, match="no section 'Nope' in the search path"):
        pylink.link(cubins, arch="sm_90a", profile=out, section="Nope")
    assert not out.exists()


def test_the_share_of_each_phase_is_a_breakdown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYLINK_SECTIONS", str(tmp_path / "user"))
    cubins, out = demo.cubins("sm_90a"), tmp_path / "link.ncu-rep"
    pylink.link(cubins, arch="sm_90a", profile=out)
    whole = read_report(out).actions[-1]
    members = str(whole.value("breakdown:link__time_share.pct")).split(",")
    assert members[:3] == [
        f"link__{each}_time_share.pct" for each in ("finalize", "init", "layout")
    ]
    assert 50 < sum(float(whole.value(each) or 0) for each in members) <= 101


def test_every_metric_is_described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYLINK_SECTIONS", str(tmp_path / "user"))
    out = tmp_path / "link.ncu-rep"
    for arch in ("sm_90a", "sm_100"):
        cubins = demo.cubins(arch)
        pylink.link(cubins, arch=arch, profile=out, section_folder=str(tmp_path))
        names = {name for action in read_report(out).actions for name in action.metrics}
        ours = {
            name for name in names if not name.startswith(("device__", "launch__", "breakdown:"))
        }
        assert ours
        assert {name for name in ours if not describe(name)} == set()


def origins_of(write: Action) -> list[tuple[str, int]]:
    """What the output consists of, and how much of each."""
    metric = write.metrics["elf__bytes_by_origin.sum"]
    return [(str(each.id), int(each.value)) for each in metric.instances]


# The profile has relocations of Mercury debug data with these data.
_PARTS = {
    ("code",): (".text",),
    ("constants",): (".nv.constant",),
    ("mercury code",): (".nv.capmerc",),
    ("debug", "mercury rest"): (".debug", ".nv_debug", ".nv.merc."),
    ("names, symbols",): (".symtab", ".strtab", ".shstrtab"),
    ("headers", "padding"): ("headers and padding",),
}


@pytest.mark.parametrize("case", ["75/debug", "80/weak", "90a/calls", "100/debug", "121/guard"])
def test_what_counts_bytes_counts_the_same(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The profile, the result, the first screen, `pylink size` and `pylink inspect --sizes`."""
    monkeypatch.setenv("PYLINK_SECTIONS", str(tmp_path / "sections"))
    path, made = tmp_path / "link.ncu-rep", tmp_path / "out.cubin"
    inputs = sorted((GOLDEN / case).glob("m*.cubin"))
    arch = f"sm_{case.partition('/')[0]}"
    result = pylink.link(inputs, arch=arch, output=made, profile=path)
    write = by_phase(read_report(path))["write"]
    parts, functions = (write.metrics[f"elf__bytes_by_{level}.sum"] for level in _LEVELS)
    assert parts.value == functions.value == len(result.image) == made.stat().st_size
    rows: dict[str, Counter[str]] = {"part": Counter(), "function": Counter()}
    for row in result.sizes:
        rows["part"][row.part] += row.size
        rows["function"][row.function] += row.size
    assert parts.by_id() == rows["part"]
    named: Counter[str] = Counter()  # two files may each have a function of one name
    for each in functions.instances:
        named[demangle(str(each.id))] += int(each.value)
    others = named.pop("other functions", 0)
    assert len(named) == len(rows["function"])
    assert {name: rows["function"][name] for name in named} == named
    assert (sum(named.values()), others) == (len(result.image), 0)
    measured = pylink.size.measure([str(made)])
    assert {row.keys[0]: row.unpacked for row in pylink.size.rows(measured, ("part",))} == (
        rows["part"]
    )
    families: Counter[str] = Counter()
    for name, size in origins_of(write):
        families[name.partition(" > ")[0]] += size
    for names, start in _PARTS.items():
        wanted = sum(size for name, size in families.items() if name.startswith(start))
        assert sum(rows["part"][name] for name in names) == wanted
    assert inspect(["--sizes", "--json", str(made)]) == 0
    inspected: dict[str, Counter[str]] = {"part": Counter(), "function": Counter()}
    for listed in json.loads(capfd.readouterr().out)["sizes"]:
        for level, counter in inspected.items():
            counter[listed[level]] += listed["bytes"]
    assert inspected == rows
    assert report([str(path)]) == 0
    first = capfd.readouterr().out
    shown = [line for line in first.splitlines() if line.startswith(("code ", "debug "))]
    assert [line.split()[0] for line in shown] == [
        name for name, _ in rows["part"].most_common() if name in ("code", "debug")
    ]
    assert f"{format_value(rows['part']['code'], 'byte')}" in first


def test_the_bytes_of_the_output_add_up_to_it(linked: tuple[Path, pylink.LinkResult]) -> None:
    path, result = linked
    write = by_phase(read_report(path))["write"]
    parts = [size for _, size in origins_of(write)]
    assert sum(parts) == write.number("elf__bytes_by_origin.sum")
    assert sum(parts) == len(result.image) == (path.parent / "out.cubin").stat().st_size
    assert min(parts) > 0
    tree = byte_tree(read_report(path))
    assert tree is not None
    assert tree.size == len(result.image)
    families = by_phase(read_report(path))["layout"].metrics["sect__output_bytes.sum"].by_id()
    for kind in (".text.*", ".nv.constant0.*", ".symtab", ".strtab"):
        assert tree.parts[kind].size == families[kind]

    def check(node: Node) -> None:
        if node.parts:
            assert sum(part.size for part in node.parts.values()) == node.size
            assert sum(part.size for part in node.largest()) == node.size
        for part in node.parts.values():
            check(part)

    check(tree)


def test_a_function_has_its_bytes_below_its_input(tmp_path: Path) -> None:
    """What the compiler made of one kernel, by name, in the place of its own."""
    cubins = demo.cubins("sm_90a")
    report = tmp_path / "link.ncu-rep"
    image = pylink.link(cubins, arch="sm_90a", profile=report).image
    write = by_phase(read_report(report))["write"]
    symbols = ELFFile(io.BytesIO(image)).get_section_by_name(".symtab")
    assert isinstance(symbols, SymbolTableSection)
    known = {
        symbol.name: symbol["st_size"]
        for symbol in symbols.iter_symbols()
        if symbol["st_info"]["type"] == "STT_FUNC" and symbol["st_size"]
    }
    found = {
        name.rpartition(" > ")[2]: size
        for name, size in origins_of(write)
        if name.startswith(".text.* > ")
    }
    assert len(found.keys() & known.keys()) > 3
    assert all(found[name] == known[name] for name in found.keys() & known.keys())


def test_inputs_alike_are_one_part_of_the_output(tmp_path: Path) -> None:
    """Forty equal inputs are a row, and so are their functions; what differs is told apart."""
    paths = []
    for number in range(42):
        cubin = Cubin()
        same = number < 40
        size = 128 if same else 128 * (number - 38)
        name = f"_Z7work_{number:02}i" if same else f"other_{number}"
        cubin.function(name, code=bytes(size), kernel=True)
        paths.append(tmp_path / (f"g{number:05}_m5.cubin" if same else f"h{number}_m5.cubin"))
        paths[-1].write_bytes(cubin.build())
    path = tmp_path / "link.ncu-rep"
    image = pylink.link(paths, arch="sm_80", profile=path).image
    tree = byte_tree(read_report(path))
    assert tree is not None
    assert tree.size == len(image)
    code = tree.parts[".text.*"]
    names = [part.name.replace(f"{tmp_path}/", "") for part in code.largest()]
    assert names[:3] == ["40 x g*_m5.cubin", "h41_m5.cubin", "h40_m5.cubin"]
    (group, *_) = code.largest()
    assert group.size == 40 * 128
    assert [(part.name, part.size) for part in group.largest()] == [("40 x work_*(int)", 40 * 128)]
    page = tmp_path / "page.html"
    assert report([str(path), "--html", str(page)]) == 0
    assert ">40 x g*_m5.cubin<" in page.read_text()


@pytest.mark.parametrize(
    ("names", "common"),
    [
        (["a1.o", "a2.o"], "a*.o"),
        (["g0_m5.o", "g1_m5.o", "g10_m5.o"], "g*_m5.o"),
        (["1", "2"], "*"),
        (["x", "x"], "x"),
    ],
)
def test_a_pattern_keeps_what_all_names_have(names: list[str], common: str) -> None:
    assert pattern(names) == common
    assert len({skeleton(name) for name in names}) == 1


def test_names_are_one_part_from_three_on_and_where_their_bytes_are_equal() -> None:
    named = [("a1", 8, 0), ("a2", 8, 1), ("a3", 9, 2), ("b1", 8, 3), ("a4", 8, 4), ("c", 8, 5)]
    assert sorted(group_rows(named)) == [[0, 1, 4], [2], [3], [5]]


def test_tools_find_the_time_of_an_action(linked: tuple[Path, pylink.LinkResult]) -> None:
    for action in read_report(linked[0]).actions:
        assert action.number("gpu__time_duration.sum") == action.number("link__time_duration.sum")


def test_charts_of_the_whole_link_are_not_empty(tmp_path: Path) -> None:
    """Tools draw a chart of a metric that has no parts as empty axes."""
    path = tmp_path / "link.ncu-rep"
    pylink.link(demo.cubins("sm_100"), arch="sm_100", profile=path, set=["full"])
    (whole,) = read_report(path).ranges()
    target = target_of(whole)
    drawn = 0
    for section in whole.sections:
        for item in section.items():
            chart = item.bar_chart
            if chart is None or not matches(item.filter, section.filter, target):
                continue
            for entry in chart.metrics:
                assert whole.metrics[entry.name].instances, (section.identifier, entry.name)
                assert entry.label == ""  # tools put it before the name of each bar
            assert chart.value_axis is not None
            assert chart.value_axis.label is not None
            assert chart.value_axis.label.endswith("]")  # the unit
            drawn += 1
    assert drawn > 3


@pytest.mark.parametrize(
    ("read", "rest", "waited"),
    [
        ((100, 40), (50, 50), 60),  # a quiet machine: all that reading waited for
        ((100, 40), (100, 50), 20),  # a busy one made everything twice as long
        ((100, 40), (200, 50), 0),
        ((100, 40), (0, 0), 60),
    ],
)
def test_waiting_for_a_busy_machine_is_no_waiting_for_a_disk(
    read: tuple[int, int], rest: tuple[int, int], waited: int
) -> None:
    phases = [
        Phase(tag, Cost(wall_ns=wall, cpu_ns=cpu), [])
        for tag, (wall, cpu) in (("read", read), ("merge", rest))
    ]
    assert disk_wait_ns(Profile("sm_90", 90, Cost(), phases)) == waited


def test_the_one_part_beyond_the_largest_has_its_own_name() -> None:
    node = Node("all")
    for size in range(1, MAX_PARTS + 2):
        node.parts[str(size)] = Node(str(size), size=size)
    assert [part.name for part in node.largest()][-2:] == ["2", "1"]
    node.parts["0"] = Node("0")
    assert node.largest()[-1].name == "2 others"
