"""The Python interface: forms of inputs and options, results, errors, threads."""

from __future__ import annotations

import copy
import io
import os
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy
import pandas
import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from helpers import archive_builder, demo
from helpers.fatbin_builder import host_object

import pylink
from pylink import Input
from pylink.api.tables import SymbolRow
from pylink.command.cli import main
from pylink.options.table import OPTIONS
from pylink.tabular.table import Table
from pylink.timing import HEADER

if TYPE_CHECKING:
    from pylink.api.inputs import InputLike

ARCH = "sm_90a"
FILES = demo.cubins(ARCH)
RANDOM = next(path for path in FILES if path.stem == "random")
REDUCTION = next(path for path in FILES if path.stem == "reduction")


@pytest.fixture(scope="module")
def image() -> bytes:
    return pylink.link(FILES, arch=ARCH).image


class BytesPath:
    """A path whose text is in the encoding of the file system."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __fspath__(self) -> bytes:
        return os.fsencode(self.path)


FORMS: list[Callable[[Path], object]] = [
    lambda path: path,
    str,
    lambda path: path.read_bytes(),
    lambda path: bytearray(path.read_bytes()),
    lambda path: memoryview(path.read_bytes()),
    lambda path: (path.name, path.read_bytes()),
    lambda path: (path.name, memoryview(path.read_bytes())),
    lambda path: Input(str(path)),
    BytesPath,
]


@pytest.mark.parametrize(
    "form",
    FORMS,
    ids=[
        "Path",
        "str",
        "bytes",
        "bytearray",
        "view",
        "pair",
        "view-pair",
        "Input",
        "path-of-bytes",
    ],
)
def test_every_form_of_input_gives_the_same_image(
    form: Callable[[Path], InputLike], image: bytes
) -> None:
    assert pylink.link(map(form, FILES), arch=ARCH).image == image


def test_result(image: bytes, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    result = pylink.link(FILES, arch=ARCH, output=tmp_path / "out.cubin")
    assert (tmp_path / "out.cubin").read_bytes() == bytes(result.image) == image
    assert result.diagnostics == ()
    phases = ["read", "merge", "layout", "relocate", "finalize", "write"]
    assert list(result.timings) == phases
    assert all(ms >= 0 for ms in result.timings.values())
    assert capfd.readouterr() == ("", "")


def test_nothing_is_written_without_an_output(
    image: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert pylink.link(FILES, arch=ARCH).image == image
    assert list(tmp_path.iterdir()) == []


def test_command_line_and_interface_agree(tmp_path: Path) -> None:
    words = [f"-arch={ARCH}", "-r", "-kernels-used=step", *map(str, FILES)]
    assert main([*words, "-o", str(tmp_path / "out")]) == 0
    result = pylink.link(FILES, arch=ARCH, relocatable_link=True, kernels_used="step")
    assert (tmp_path / "out").read_bytes() == result.image


def test_options_are_those_of_the_command_line(image: bytes) -> None:
    smaller = pylink.link(FILES, arch=ARCH, kernels_used=["start"]).image
    assert len(smaller) < len(image)
    assert pylink.link(FILES, arch=ARCH, kernels_used=(), verbose=False, time=None).image == image


def test_verbose_goes_to_the_diagnostics_and_to_the_log(capfd: pytest.CaptureFixture[str]) -> None:
    log = io.StringIO()
    result = pylink.link(FILES, arch=ARCH, verbose=True, log=log)
    lines = [record.message for record in result.diagnostics]
    assert "Function properties for '_Z4stepPK8ParticlePS_iif':" in lines
    assert log.getvalue() == "".join(f"pylink info    : {line}\n" for line in lines)
    assert capfd.readouterr() == ("", "")


def test_errors_carry_the_diagnostics(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "out"
    with pytest.raises(pylink.LinkError) as caught:
        pylink.link([p for p in FILES if p != RANDOM], arch=ARCH, output=output)
    (record,) = caught.value.diagnostics
    assert (record.kind, record.symbol) == ("undefined-reference", "_Z7uniformRj")
    assert str(caught.value).splitlines()[0] == record.message
    assert not output.exists()
    assert capfd.readouterr() == ("", "")


def test_names_of_data_appear_in_diagnostics() -> None:
    data = RANDOM.read_bytes()
    with pytest.raises(pylink.LinkError) as caught:
        pylink.link([("first", data), ("second", data)], arch=ARCH)
    assert "in 'second', first defined in 'first'" in str(caught.value)
    with pytest.raises(pylink.LinkError, match="'<input 1>', first defined in '<input 0>'"):
        pylink.link([data, data], arch=ARCH)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"arch": "sm_99"}, "Value 'sm_99' is not defined for option 'arch'"),
        ({"arch": "lto_90"}, "Link target of 'lto_90' is virtual"),
        ({"arch": ARCH, "cpu_arch": "Z80"}, "Value 'Z80' is not defined for option 'cpu-arch'"),
        ({"arch": ARCH, "suppress_debug_info": True}, "Conflicting options"),
        ({"arch": ARCH, "uidx_file": "u"}, "Option '-uidx' is not supported"),
        ({"arch": ARCH, "time": "/missing/t"}, "Cannot open file '/missing/t'"),
    ],
)
def test_bad_options_are_link_errors(options: dict[str, Any], message: str) -> None:
    with pytest.raises(pylink.LinkError, match=message):
        pylink.link(FILES, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"verbos": True},
        {"help": True},
        {"list_sets": True},
        {"output_file": "o"},
        {"verbose": 1},
        {"kernels_used": [1]},
        {"kernels_used": True},
        {"machine": "64"},
        {"machine": True},
        {"time": 3},
    ],
)
def test_wrong_arguments_are_type_errors(options: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=f"option '?{next(iter(options))}"):
        pylink.link(FILES, arch=ARCH, **options)


def test_names_that_are_no_text_come_out_as_escapes(tmp_path: Path) -> None:
    files: dict[str, Any] = {
        option: str(tmp_path / option)
        for option in (
            "Map",
            "depfile",
            "diag_log",
            "pass_remarks_output",
            "profile",
            "profile_aprof",
            "register_link_binaries",
            "sarif_output",
            "time_trace",
        )
    }
    inputs = [("\ud800", path.read_bytes()) for path in FILES]
    result = pylink.link(inputs, arch=ARCH, debug=True, kernels_used="\ud800", **files)
    assert b"\\ud800" in result.image  # in the note on how it was linked
    assert {path.name for path in tmp_path.iterdir()} == set(files)


@pytest.mark.parametrize("inputs", ["a.cubin", b"\x7fELF", Path("a.cubin"), [3], [("a", [0, 1])]])
def test_what_is_no_list_of_inputs(inputs: Any) -> None:
    with pytest.raises(TypeError):
        pylink.link(inputs, arch=ARCH)


def test_no_inputs() -> None:
    with pytest.raises(pylink.LinkError, match="No input files specified"):
        pylink.link([], arch=ARCH)


@pytest.mark.parametrize("arch", ["sm_75", "sm_90a", "sm_100"])
def test_no_inputs_make_an_empty_executable_on_request(arch: str, tmp_path: Path) -> None:
    plain = host_object([(".text", b"\x90")])
    empty = pylink.link([], arch=arch, allow_empty=True)
    assert not empty.diagnostics
    assert empty.image == pylink.link([("plain.o", plain)], arch=arch).image
    output = tmp_path / "out.cubin"
    assert main(["--allow-empty", f"-arch={arch}", "-o", str(output)]) == 0
    assert output.read_bytes() == empty.image


def test_linker_takes_inputs_one_by_one(image: bytes) -> None:
    linker = pylink.Linker(arch=ARCH)
    for path in FILES[:-1]:
        linker.add_file(path)
    linker.add_data(memoryview(FILES[-1].read_bytes()), "last")
    with pytest.raises(ValueError, match="not complete"):
        linker.image  # noqa: B018 -- what it raises is the test
    assert linker.complete().image == linker.image == image


def test_a_linker_of_data_keeps_no_view_of_it(image: bytes) -> None:
    data = bytearray(FILES[0].read_bytes())
    linker = pylink.Linker(arch=ARCH)
    linker.add_data(data, "first")
    data[:] = bytes(len(data))
    for path in FILES[1:]:
        linker.add_file(path)
    assert linker.complete().image == image


def test_links_in_threads_do_not_disturb_each_other(image: bytes) -> None:
    def link_files(number: int) -> bytes | str:
        try:
            return pylink.link(FILES if number % 2 else FILES[:-1], arch=ARCH).image
        except pylink.LinkError as error:
            return str(error)

    expected = {True: image, False: link_files(0)}
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(link_files, range(24)))
    assert results == [expected[bool(number % 2)] for number in range(24)]


def test_times_of_sub_tools_are_a_table_of_no_rows(tmp_path: Path) -> None:
    pylink.link([REDUCTION], arch=ARCH, time=tmp_path / "t")
    assert (tmp_path / "t").read_text() == HEADER


def test_phase_lines(capfd: pytest.CaptureFixture[str]) -> None:
    pylink.link([REDUCTION], arch=ARCH, edbg=0x20)
    lines = [line.split() for line in capfd.readouterr().err.splitlines()]
    tags = ["read", "merge", "layout", "relocate", "finalize", "write"]
    assert [line[:2] for line in lines] == [[tag, "time:"] for tag in tags]
    assert all(len(line[2].partition(".")[2]) == 6 for line in lines)


def test_options_are_an_object_that_calls_add_to(image: bytes) -> None:
    options = pylink.LinkOptions(kernels_used=["start"], verbose=True)
    smaller = pylink.link(FILES, options, arch=ARCH)
    assert smaller.image == pylink.link(FILES, arch=ARCH, kernels_used="start", verbose=True).image
    assert smaller.diagnostics
    plain = pylink.link(FILES, options, arch=ARCH, kernels_used=(), verbose=False)
    assert (plain.image, plain.diagnostics) == (image, ())
    assert options.kernels_used == ("start",)
    assert (options.verbose, options.debug, options.time) == (True, False, None)
    assert options.given == {"kernels_used": ("start",), "verbose": True}


def test_objects_of_options_are_values() -> None:
    options = pylink.LinkOptions(verbose=True, Map=Path("m"), lto=None)
    same = pylink.LinkOptions(Map="m", debug=False, verbose=True)
    assert options == same
    assert hash(options) == hash(same)
    assert options != pylink.LinkOptions()
    assert options.replace(Map=None, lto=True).given == {"verbose": True, "link_time_opt": True}
    assert repr(options) == "LinkOptions(Map='m', verbose=True)"
    assert pickle.loads(pickle.dumps(options)) == options
    for name in ("verbose", "unknown"):
        with pytest.raises(AttributeError, match="frozen"):
            setattr(options, name, True)
    with pytest.raises(TypeError, match="'Map' does not take 3"):
        pylink.LinkOptions(Map=3)  # type: ignore[arg-type]  # the mistake that is tested


def test_options_that_are_off_equal_options_that_are_not_given() -> None:
    none = pylink.LinkOptions()
    for option in OPTIONS:
        for value in (False, ()):
            if not option.in_call:
                continue
            try:
                options = pylink.LinkOptions(**{option.attribute: value})  # type: ignore[arg-type]
            except TypeError:
                continue
            name = option.attribute
            assert (options == none) is (getattr(options, name) == getattr(none, name)), name
            assert repr(options) == f"LinkOptions({name}={value})"
    assert pylink.LinkOptions(profile=False) == none
    assert hash(pylink.LinkOptions(profile=False)) == hash(none)
    profiled = pylink.LinkOptions(profile=True)
    assert pylink.link(FILES, profiled, arch=ARCH, profile=False).profile is None
    assert pylink.dlink(FILES, archs=ARCH, form="cubin", cudadevrt=False, profile=False).cubins


@pytest.mark.parametrize(
    ("name", "meant"), [("verbos", "verbose"), ("ouput", "output"), ("kernel_used", "kernels_used")]
)
def test_an_unknown_option_brings_the_one_that_was_meant(name: str, meant: str) -> None:
    wrong: dict[str, Any] = {name: True}
    with pytest.raises(TypeError, match=f"unknown option '{name}'; did you mean '{meant}'"):
        pylink.link(FILES, arch=ARCH, **wrong)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"arch": "bogus"}, "Value 'bogus' is not defined for option 'arch'"),
        ({"arch": ARCH, "merc_dedup": "maybe"}, "Value 'maybe' is not defined"),
        ({"arch": ARCH, "use_host_info": True, "ignore_host_info": True}, "Conflicting options"),
        ({"arch": ARCH, "emit_ptx": True}, "Conflicting options '-emit-ptx'"),
    ],
)
def test_mistakes_are_told_when_they_are_made(
    options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    log, document = io.StringIO(), tmp_path / "sarif"
    with pytest.raises(pylink.LinkError, match=message):
        pylink.Linker(log=log, sarif_output=document, **options)
    assert log.getvalue().startswith("pylink fatal   : ")
    assert '"level":"error"' in document.read_text()


def test_nothing_is_opened_before_the_link(tmp_path: Path) -> None:
    with pylink.Linker(arch=ARCH, diag_log=tmp_path / "log") as linker:
        linker.add(FILES[0])
    assert list(tmp_path.iterdir()) == []


def test_inputs_are_checked_when_they_are_added() -> None:
    linker = pylink.Linker(arch=ARCH)
    linker.add(pylink.Input(FILES[0], kind="cubin"))
    with pytest.raises(pylink.LinkError, match="Could not open input file 'missing'") as caught:
        linker.add("missing")
    assert caught.value.diagnostics[0].input == 1
    with pytest.raises(pylink.LinkError, match="'b' is cubin; expected ptx"):
        linker.add(pylink.Input(FILES[1].read_bytes(), "b", kind="ptx"))
    with pytest.raises(pylink.LinkError, match="is unknown; expected fatbin"):
        linker.add(pylink.Input(b"nothing", "c", kind="fatbin"))
    with pytest.raises(TypeError, match="input 1: "):
        linker.add(3)  # type: ignore[arg-type]  # the mistake that is tested
    with pytest.raises(TypeError, match=r"input 1: .*not the path"):
        linker.add_data("a", "a")  # type: ignore[arg-type]  # the mistake that is tested
    with pytest.raises(TypeError, match="input 1: no path, but bytes"):
        linker.add_file(b"a")  # type: ignore[arg-type]  # the mistake that is tested
    with pytest.raises(ValueError, match="no kind of input"):
        pylink.Input("a", kind="elf")  # type: ignore[arg-type]  # the mistake that is tested
    for path in FILES[1:]:
        linker.add(path)
    assert linker.complete().image == pylink.link(FILES, arch=ARCH).image


def test_an_input_may_have_another_name_than_its_file(image: bytes) -> None:
    named = [pylink.Input(path, f"name {n}") for n, path in enumerate(FILES)]
    assert pylink.link(named, arch=ARCH).image == image
    with pytest.raises(pylink.LinkError, match="in 'name 1', first defined in 'name 0'"):
        pylink.link([pylink.Input(RANDOM, f"name {n}") for n in range(2)], arch=ARCH)


def test_a_closed_linker_takes_nothing(image: bytes) -> None:
    with pylink.Linker(arch=ARCH) as linker:
        for path in FILES:
            linker.add(path)
        linker.complete()
    assert linker.image == image
    with pytest.raises(ValueError, match="closed"):
        linker.add(FILES[0])
    with pytest.raises(ValueError, match="closed"):
        linker.complete()


def test_errors_name_the_input_by_its_number() -> None:
    data = RANDOM.read_bytes()
    inputs = [path for path in FILES if path != RANDOM]
    with pytest.raises(pylink.LinkError) as caught:
        pylink.link([*inputs, ("same", data), ("same", data)], arch=ARCH)
    record = caught.value.errors[0]
    last = len(inputs) + 1
    assert record.file == f"same (input {last})"
    assert record.input == last
    assert f"    '{record.file}' is input {last}" in str(caught.value).splitlines()
    archive = archive_builder.gnu([("a.o", b"\x7fELF but no more")])
    with pytest.raises(pylink.LinkError) as caught:
        pylink.link([RANDOM, ("lib.a", archive)], arch=ARCH, whole_archive=True)
    assert {error.input for error in caught.value.errors} == {1}


def test_the_text_of_an_error_has_source_line_name_and_notes() -> None:
    with pytest.raises(pylink.LinkError) as caught:
        pylink.link([path for path in FILES if path != RANDOM], arch=ARCH)
    lines = str(caught.value).splitlines()
    assert "    '_Z7uniformRj' is uniform(unsigned int &)" in lines
    assert "    at demo/sources/step.cu:19" in lines
    assert lines[2].strip().startswith("particles[i] = { uniform(state)")
    assert lines[3].strip() == "^~~~~~~"
    (record,) = caught.value.errors
    assert (record.severity, record.severity.title) == (pylink.Severity.ERROR, "error")
    assert record.demangled == "uniform(unsigned int &)"
    with pytest.raises(pylink.LinkError) as caught:
        pylink.link([RANDOM, ("other", RANDOM.read_bytes())], arch=ARCH)
    first = f"note: {RANDOM}: .text._Z4nextRj+0x0: '_Z4nextRj' is first defined here"
    lines = [line.strip() for line in str(caught.value).splitlines()]
    at = lines.index(first)
    assert lines[at + 1] == "at demo/sources/random.cu:5"
    assert lines[at + 2] == "__device__ unsigned next(unsigned &state)"


def test_lto_needs_no_path_of_libraries_in_a_call() -> None:
    linker = pylink.Linker(arch=ARCH, lto=True)
    for path in FILES:
        linker.add(path)
    assert [
        diagnostic.kind
        for diagnostic in linker.complete().diagnostics
        if diagnostic.kind == "lto-ignored"
    ]


def test_tables_of_a_result_are_for_numpy_and_pandas(image: bytes) -> None:
    result = pylink.link(FILES, arch=ARCH)
    elf = ELFFile(io.BytesIO(image))
    sections = list(elf.iter_sections())[1:]
    assert [row.name for row in result.sections] == [section.name for section in sections]
    assert list(result.sections.column("size")) == [section["sh_size"] for section in sections]
    symtab = elf.get_section_by_name(".symtab")
    assert isinstance(symtab, SymbolTableSection)
    symbols = list(symtab.iter_symbols())[1:]
    assert [(row.value, row.size) for row in result.symbols] == [
        (symbol["st_value"], symbol["st_size"]) for symbol in symbols
    ]
    assert "step(const Particle *, Particle *, int, int, float)" in result.symbols.column(
        "demangled"
    )
    array = numpy.asarray(result.symbols)
    assert array.dtype.names == result.symbols.columns
    assert array["size"].sum() == sum(row.size for row in result.symbols)
    assert list(array["name"]) == list(result.symbols.column("name"))
    frame = pandas.DataFrame(result.symbols)
    assert list(frame.columns) == list(result.symbols.columns)
    assert list(frame["name"]) == list(result.symbols.column("name"))
    empty = Table(SymbolRow, [])
    assert numpy.asarray(empty).dtype.names == empty.columns


def test_a_notebook_shows_a_result() -> None:
    page = pylink.link(FILES, arch=ARCH, verbose=True)._repr_html_()
    assert "126 sections" in page
    assert "116 more rows" in page
    assert "<b>sm_90a</b>" in page
    assert "Function properties for &#x27;_Z4step" in page


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100"])
@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda result: pickle.loads(pickle.dumps(result))]
)
def test_results_cross_processes(arch: str, copied: Callable[[Any], Any]) -> None:
    """With everything that a link can keep: profile, folded sections, diagnostics."""
    result = pylink.link(demo.cubins(arch), arch=arch, profile=True, verbose=True)
    again = copied(result)
    assert again.image == result.image
    assert again.timings == result.timings
    said = [diagnostic.message for diagnostic in result.diagnostics]
    assert said
    assert [diagnostic.message for diagnostic in again.diagnostics] == said
    assert result.profile is not None
    assert [phase.tag for phase in again.profile] == [phase.tag for phase in result.profile]
    if arch == "sm_100":
        assert result.profile.folding is not None
        first = result.profile.folding.compared[0].candidate
        assert again.profile.folding.compared[0].candidate.primary == first.primary


def test_a_name_of_two_inputs_tells_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a").write_bytes(demo.cubins("sm_90a")[0].read_bytes())
    for inputs in (["a", "a"], [Path("a"), Path("a")]):
        with pytest.raises(pylink.LinkError) as caught:
            pylink.link(inputs, arch="sm_90a")
        for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
            twice = [
                diagnostic
                for diagnostic in error.diagnostics
                if diagnostic.kind == "multiple-definition"
            ]
            assert [(record.file, record.input) for record in twice] == [("a", 1)] * len(twice)
            assert len(twice) > 1
