"""What diagnostics show of the inputs: source lines, every use, the other side of a clash."""

from __future__ import annotations

import contextlib
import gc
import io
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.cubin_builder import (
    GLOBAL,
    IN_GLOBAL,
    LOCAL,
    SHT_GLOBAL,
    SHT_GLOBAL_INIT,
    SHT_PROGBITS,
    Cubin,
    Section,
    Symbol,
)
from helpers.line_program import Lines, Row

import pylink
from pylink.phases.results import Objects

pytest.importorskip("elftools", reason="pyelftools is not installed")

R_ABS32_LO, R_ABS32_HI, R_CALL = 56, 57, 58
SOURCE = """\
__device__ int lost(int);
__device__ int used(int x) { return lost(x); }
__global__ void k(int *p)
{
    p[0] = lost(p[0]) + lost(2);
    p[1] = used(p[1]);
}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with the source that the cubins name."""
    (tmp_path / "k.cu").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def link(*cubins: tuple[str, Cubin], **options: object) -> str:
    """Everything that a link in the text format prints."""
    log = io.StringIO()
    options.setdefault("diagnostics_format", "text")
    given = [(name, cubin.build()) for name, cubin in cubins]
    with contextlib.suppress(pylink.LinkError):
        pylink.link(given, arch="sm_80", log=log, **options)  # type: ignore[arg-type] # names of options
    return log.getvalue()


def calling(name: str = "k", *, lines: bool = True, calls: tuple[int, ...] = (16, 48, 80)) -> Cubin:
    """The kernel of SOURCE: calls of `lost` at some offsets, the last one inlined."""
    cubin = Cubin()
    kernel = cubin.function(name, kernel=True)
    lost = cubin.external("_Z4losti")
    cubin.call(kernel, lost)
    uses = [(at, R_CALL, lost, 0) for at in calls]
    cubin.relocate(cubin.find(f".text.{name}"), uses, implicit=True)
    if lines:
        rows = [Row(0, 3), Row(16, 5), Row(64, 6), Row(64, 2, inlined=(3, 1)), Row(96, 7)]
        unit = Lines(files=[("k.cu", 0)], directories=[])
        unit.function(kernel, rows)
        unit.add_to(cubin)
        cubin.section(Section(".debug_str", SHT_PROGBITS, b"\0_Z4usedi\0", align=1))
    return cubin


@pytest.mark.usefixtures("folder")
def test_an_undefined_symbol_is_shown_where_it_is_used() -> None:
    assert link(("k.cubin", calling())) == (
        "k.cu(2): error: Undefined reference to '_Z4losti' in 'k.cubin'\n"
        "            at k.cubin: .text.k+0x50\n"
        "            '_Z4losti' is lost(int)\n"
        "  __device__ int used(int x) { return lost(x); }\n"
        "                                      ^~~~\n"
        "k.cu(6): note: 'used(int)' is inlined here\n"
        "      p[1] = used(p[1]);\n"
        "             ^~~~\n"
        "k.cu(5): note: k.cubin: .text.k+0x10: '_Z4losti' is referenced here\n"
        "      p[0] = lost(p[0]) + lost(2);\n"
        "             ^~~~\n"
        "\n"
        "1 error detected in this link.\n"
    )


def test_a_function_template_that_is_local_to_another_file() -> None:
    user, other = Cubin(), Cubin()
    kernel = user.function("k", kernel=True)
    wanted = user.external("_Z1fIiEvT_")
    user.call(kernel, wanted)
    user.relocate(user.find(".text.k"), [(16, R_CALL, wanted, 0)], implicit=True)
    other.function("_ZN39_INTERNAL_0000000b_4_b_cu_0000000b_00001fIiEEvT_", bind=LOCAL)
    shown = link(("k.cubin", user), ("o.cubin", other))
    assert "in o.cubin is local to that file" in shown, shown


@pytest.mark.usefixtures("folder")
def test_nvlinks_line_is_as_it_was() -> None:
    line = "pylink error   : Undefined reference to '_Z4losti' in 'k.cubin'\n"
    for lines in (True, False):
        assert link(("k.cubin", calling(lines=lines)), diagnostics_format="nvlink") == line


@pytest.mark.usefixtures("folder")
def test_without_lines_every_use_has_its_offset() -> None:
    assert link(("k.cubin", calling(lines=False))) == (
        "k.cubin(.text.k+0x10): error: Undefined reference to '_Z4losti' in 'k.cubin'\n"
        "            '_Z4losti' is lost(int)\n"
        "k.cubin(.text.k+0x30): note: '_Z4losti' is referenced here\n"
        "k.cubin(.text.k+0x50): note: '_Z4losti' is referenced here\n"
        "\n"
        "1 error detected in this link.\n"
    )


def test_uses_come_by_section_and_then_by_offset() -> None:
    cubin = Cubin()
    data = cubin.section(Section(".nv.global.init", SHT_GLOBAL_INIT, bytes(16), 3, align=8))
    cubin.symbol(Symbol("table", other=IN_GLOBAL, section=data, size=16))
    names = [cubin.function(name, kernel=True) for name in ("k", "l")]
    lost = cubin.external("lost")
    for caller in names:
        cubin.call(caller, lost)
    for name, offsets in (("nv.global.init", [8]), ("text.k", [80, 32, 48]), ("text.l", [32])):
        rows = [(at, R_ABS32_LO, lost, 0) for at in offsets]
        cubin.relocate(cubin.find(f".{name}"), rows)
    printed = link(("a.cubin", cubin))
    assert re.findall(r"a\.cubin\((\S+)\)", printed) == [
        *(".nv.global.init+0x8", ".text.k+0x20", ".text.k+0x50", ".text.l+0x20")
    ]


def test_the_halves_of_an_address_are_one_use() -> None:
    cubin = Cubin()
    kernel = cubin.function("k", kernel=True)
    gone = cubin.symbol(Symbol("gone", other=IN_GLOBAL))
    entries = [(32, R_ABS32_LO, gone, 0), (48, R_ABS32_HI, gone, 0)]
    cubin.relocate(cubin.symbols[kernel].section, entries)
    assert link(("k.cubin", cubin)).count("referenced here") == 0


def test_a_long_list_of_uses_ends_with_their_number() -> None:
    calls = tuple(range(0, 128, 32))
    inputs = []
    for number in range(8):
        cubin = calling(f"k{number}", lines=False, calls=calls)
        inputs.append((f"{number}.cubin", cubin))
    printed = link(*inputs)
    assert printed.count("Undefined reference") == 1
    assert printed.count("is referenced here") == 9
    assert "Note: 22 more references to '_Z4losti'\n" in printed


@pytest.mark.usefixtures("folder")
def test_definitions_that_clash_are_both_shown() -> None:
    inputs = []
    for name, line in (("a", 2), ("b", 5)):
        cubin = Cubin()
        unit = Lines(files=[("k.cu", 0)], directories=[])
        unit.function(cubin.function("_Z4usedi"), [Row(0, line)])
        unit.add_to(cubin)
        inputs.append((f"{name}.cubin", cubin))
    assert link(*inputs) == (
        "k.cu(5): error: Multiple definition of '_Z4usedi' in 'b.cubin', first defined in "
        "'a.cubin'\n"
        "            at b.cubin: .text._Z4usedi+0x0\n"
        "            '_Z4usedi' is used(int)\n"
        "      p[0] = lost(p[0]) + lost(2);\n"
        "Note: define '_Z4usedi' in one file, or make it static; in a header, declare functions "
        "inline and variables extern\n"
        "k.cu(2): note: a.cubin: .text._Z4usedi+0x0: '_Z4usedi' is first defined here\n"
        "  __device__ int used(int x) { return lost(x); }\n"
        "                 ^~~~\n"
        "\n"
        "Catastrophic error: merge_elf failed\n"
        "\n"
        "1 error and 1 catastrophic error detected in this link.\n"
        "Link terminated.\n"
    )


def test_sizes_that_differ_are_both_shown() -> None:
    inputs = []
    for name, size in (("a", 16), ("b", 32)):
        cubin = Cubin()
        section = cubin.section(Section(".nv.global", SHT_GLOBAL, flags=3, size=size))
        cubin.symbol(Symbol("v", bind=GLOBAL, other=IN_GLOBAL, section=section, size=size))
        ptx = f".visible .global .align 4 .b8 v[{size}];\0".encode()
        cubin.section(Section(".nv_debug_ptx_txt.7", SHT_PROGBITS, ptx, align=1))
        Lines(section=".nv_debug_line_sass").add_to(cubin)
        inputs.append((f"{name}.cubin", cubin))
    printed = link(*inputs)
    assert printed.startswith(
        "b.cubin:.nv_debug_ptx_txt.7(1): error: Size doesn't match for 'v' in 'b.cubin', first "
        "specified in 'a.cubin'\n"
        "            at b.cubin: .nv.global+0x0\n"
        "  .visible .global .align 4 .b8 v[32];\n"
        "                                ^\n"
        "b.cubin: note: it has 32 bytes in 'b.cubin' and 16 bytes in 'a.cubin'\n"
        "a.cubin:.nv_debug_ptx_txt.7(1): note: a.cubin: .nv.global+0x0: 'v' is first declared "
        "with size 16 here\n"
        "  .visible .global .align 4 .b8 v[16];\n"
        "                                ^\n"
        "\n"
    )


def recursing(*, through_pointer: bool = False) -> Cubin:
    """`k` calls `used`, which leads back to itself; a return address stands for the call."""
    cubin = Cubin()
    kernel = cubin.function("k", kernel=True)
    used = cubin.function("_Z4usedi")
    other = cubin.function("other")
    cubin.call(kernel, used)
    if through_pointer:
        cubin.call_through(used, "(i)i")
        cubin.take_address(used, "(i)i")
    else:
        cubin.call(used, used)
    cubin.call(used, other)
    text = cubin.symbols[used].section
    own = [(at, R_ABS32_LO, used, 0) for at in (16, 64)]
    cubin.relocate(text, own)
    cubin.relocate(text, [(32, R_CALL, other, 0)], implicit=True)
    unit = Lines(files=[("k.cu", 0)], directories=[])
    unit.function(kernel, [Row(0, 3)])
    unit.function(used, [Row(0, 1), Row(64, 2)])
    unit.add_to(cubin)
    return cubin


@pytest.mark.usefixtures("folder")
def test_an_unknown_stack_is_shown_at_the_kernel_and_the_recursion() -> None:
    assert link(("k.cubin", recursing())) == (
        "k.cu(3): warning: Stack size for entry function 'k' cannot be statically determined\n"
        "            at k.cubin: .text.k+0x0\n"
        "  __global__ void k(int *p)\n"
        "                  ^\n"
        "k.cu(2): note: k.cubin: .text._Z4usedi+0x40: recursion: '_Z4usedi' calls '_Z4usedi' here\n"
        "  __device__ int used(int x) { return lost(x); }\n"
        "                 ^~~~\n"
        "\n"
    )


@pytest.mark.usefixtures("folder")
def test_a_recursion_through_a_pointer_is_shown_at_its_function() -> None:
    printed = link(("k.cubin", recursing(through_pointer=True)))
    assert (
        "k.cu(1): note: k.cubin: .text._Z4usedi+0x0: recursion: '_Z4usedi' calls through a pointer"
        in printed
    )


def test_a_recursion_is_looked_for_where_the_stack_has_no_bound() -> None:
    """A kernel is warned of once for each such callee; others do not count."""
    cubin = Cubin()
    kernel = cubin.function("k", kernel=True)
    plain, first, second = (cubin.function(name) for name in ("plain", "first", "second"))
    for callee in (plain, first, second):
        cubin.call(kernel, callee)
    for callee in (first, second):
        cubin.call(callee, callee)
    result = pylink.link([("k.cubin", cubin.build())], arch="sm_80")
    assert [[note.symbol for note in diagnostic.notes] for diagnostic in result.diagnostics] == [
        ["first"],
        ["second"],
    ]


@pytest.mark.usefixtures("folder")
def test_a_note_can_be_suppressed() -> None:
    printed = link(("k.cubin", calling()), diag_suppress="referenced-here")
    assert "Undefined reference" in printed
    assert "referenced here" not in printed


@pytest.mark.usefixtures("folder")
def test_an_api_caller_finds_lines_without_asking_for_a_format() -> None:
    with pytest.raises(pylink.LinkError) as caught:
        pylink.link([("k.cubin", calling().build())], arch="sm_80")
    (record,) = caught.value.diagnostics
    assert record.source is not None
    assert (record.source.file, record.source.line, record.source.column) == ("k.cu", 2, 37)
    assert (record.section, record.offset) == (".text.k", 80)
    assert [note.kind for note in record.notes] == ["inlined-here", "referenced-here"]
    assert record.notes[0].parent is record


@pytest.mark.usefixtures("folder")
def test_an_error_goes_to_another_process_with_its_places() -> None:
    """As `multiprocessing` sends what a worker raised."""
    with pytest.raises(pylink.LinkError) as caught:
        pylink.link([("k.cubin", calling().build())], arch="sm_80")
    sent = pickle.loads(pickle.dumps(caught.value))
    assert str(sent) == str(caught.value)
    (record,) = sent.diagnostics
    assert record.source is not None
    assert (record.source.file, record.source.line, record.offset) == ("k.cu", 2, 80)
    assert [note.kind for note in record.notes] == ["inlined-here", "referenced-here"]
    assert record.notes[0].parent is record


@pytest.mark.usefixtures("folder")
def test_without_pyelftools_a_place_has_no_line_and_that_is_said_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [name for name in sys.modules if name.startswith(("elftools", "pylink.locate"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "elftools", None)
    cubin = calling()
    lost = cubin.external("other")
    cubin.call(1, lost)
    cubin.relocate(cubin.find(".text.k"), [(112, R_ABS32_LO, lost, 0)])
    hint = (
        "k.cubin: note: 'k.cubin' has line information; "
        "install pylink-cuda[lines] to see source lines\n"
    )
    printed = (
        "k.cubin(.text.k+0x10): error: Undefined reference to '_Z4losti' in 'k.cubin'\n"
        "            '_Z4losti' is lost(int)\n"
        "k.cubin(.text.k+0x30): note: '_Z4losti' is referenced here\n"
        "k.cubin(.text.k+0x50): note: '_Z4losti' is referenced here\n"
        f"{hint}"
        "\n"
        "k.cubin(.text.k+0x70): error: Undefined reference to 'other' in 'k.cubin'\n"
        "\n"
        "2 errors detected in this link.\n"
    )
    assert link(("k.cubin", cubin)) == printed
    assert link(("k.cubin", cubin), diag_suppress=("890",)) == printed.replace(hint, "")


@pytest.mark.usefixtures("folder")
def test_damaged_lines_cost_the_line_alone() -> None:
    cubin = calling()
    section = cubin.sections[cubin.find(".debug_line") - 1]
    section.data = bytes(4) + section.data[4:]
    assert "k.cubin(.text.k+0x10): error: Undefined reference" in link(("k.cubin", cubin))


@pytest.mark.parametrize("format", ["nvlink", "text"])
def test_nvlinks_format_reads_no_lines(folder: Path, format: str) -> None:
    (folder / "k.cubin").write_bytes(calling().build())
    program = (
        f"import sys; sys.path[:0] = [{str(Path(pylink.__file__).parents[1])!r}];"
        "from pylink.command.cli import main; main(sys.argv[1:]);"
        "print(*[n for n in ('elftools', 'pylink.locate.places', 'pylink.locate.linemap')"
        " if n in sys.modules])"
    )
    words = ["-arch=sm_80", "k.cubin", "-o", "o", f"--diagnostics_format={format}"]
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=True
    )
    loaded = "elftools pylink.locate.places pylink.locate.linemap" if format == "text" else ""
    assert done.stdout.strip() == loaded


@pytest.mark.usefixtures("folder")
def test_a_damaged_relocation_is_shown_at_its_line() -> None:
    cubin = calling(calls=(16,))
    relocations = cubin.sections[cubin.find(".rel.text.k") - 1]
    relocations.data = relocations.data[:8] + b"\xfe" + relocations.data[9:]
    assert link(("k.cubin", cubin)) == (
        "k.cu(5): error: k.cubin: .rel.text.k[0]: unknown relocation type 254\n"
        "      p[0] = lost(p[0]) + lost(2);\n"
        "\n"
        "1 error detected in this link.\n"
    )


def test_the_file_of_the_message_need_not_be_one_that_uses_the_symbol() -> None:
    """nvlink names the first file that mentions a symbol; the place is not given to that file."""
    mention = Cubin()
    mention.function("other", kernel=True)
    mention.external("_Z4losti")
    printed = link(("m.cubin", mention), ("k.cubin", calling(lines=False, calls=(16,))))
    assert printed.startswith(
        "m.cubin: error: Undefined reference to '_Z4losti' in 'm.cubin'\n"
        "            '_Z4losti' is lost(int)\n"
        "k.cubin(.text.k+0x10): note: '_Z4losti' is referenced here\n"
    )


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("k", "k"),
        ("_Z4losti", "lost"),
        ("_ZN2ns1fIiEEvT_", "f"),
        ("_ZN2ns5classC1Ev", "class"),
        ("_Z1fIXadL_Z1gvEEEvv", "f"),
        ("_Z1fIFviEEvv", "f"),
        ("_ZN1AIFviEE1gEv", "g"),
        ("_ZNK1A1gEv", "g"),
        ("_ZN1AD1Ev", "A"),
        ("_ZZN1A1gEiE3tab", "tab"),
        ("_ZN12_GLOBAL__N_11fEi", "f"),
        ("_Z3getILi3EEPFviEv", "get"),
        ("_ZN1AclEv", None),
        ("_ZN1AcviEv", None),
        ("_ZN1AlsEi", None),
        ("a-b", None),
        ("", None),
    ],
)
def test_the_name_that_source_code_has_for_a_symbol(symbol: str, name: str | None) -> None:
    from pylink.locate.column import source_name  # noqa: PLC0415 -- after the skip above

    assert source_name(symbol) == name


@pytest.mark.usefixtures("folder")
def test_a_record_that_was_looked_at_keeps_nothing_of_the_inputs() -> None:
    def inputs() -> int:
        return sum(isinstance(get_object, Objects) for get_object in gc.get_objects())

    gc.collect()
    before = inputs()
    gc.disable()
    try:
        result = pylink.link([("k.cubin", recursing().build())], arch="sm_80")
        (warning,) = result.diagnostics
        assert inputs() == before + 1
        assert warning.source is not None
        assert inputs() == before
    finally:
        gc.enable()
