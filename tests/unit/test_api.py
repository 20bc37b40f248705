"""The Python interface: forms of inputs and options, results, errors, threads."""

from __future__ import annotations

import io
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from helpers import demo
from helpers.fatbin_builder import host_object

import pylink
from pylink.command.cli import main
from pylink.options import Input

ARCH = "sm_90a"
FILES = demo.cubins(ARCH)
RANDOM = next(path for path in FILES if path.stem == "random")
REDUCTION = next(path for path in FILES if path.stem == "reduction")


@pytest.fixture(scope="module")
def image() -> bytes:
    return pylink.link(FILES, arch=ARCH).image


FORMS: list[Callable[[Path], object]] = [
    lambda path: path,
    str,
    lambda path: path.read_bytes(),
    lambda path: bytearray(path.read_bytes()),
    lambda path: memoryview(path.read_bytes()),
    lambda path: (path.name, path.read_bytes()),
    lambda path: (path.name, memoryview(path.read_bytes())),
    lambda path: Input(str(path)),
]


@pytest.mark.parametrize(
    "form", FORMS, ids=["Path", "str", "bytes", "bytearray", "view", "pair", "view-pair", "Input"]
)
def test_every_form_of_input_gives_the_same_image(
    form: Callable[[Path], pylink.linker.InputLike], image: bytes
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
    assert str(caught.value) == record.message
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
        linker.image  # noqa: B018
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
    def one(number: int) -> bytes | str:
        try:
            return pylink.link(FILES if number % 2 else FILES[:-1], arch=ARCH).image
        except pylink.LinkError as error:
            return str(error)

    expected = {True: image, False: one(0)}
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(one, range(24)))
    assert results == [expected[bool(number % 2)] for number in range(24)]


def test_times_of_sub_tools_are_a_table_of_no_rows(tmp_path: Path) -> None:
    from pylink.timing import HEADER  # noqa: PLC0415

    pylink.link([REDUCTION], arch=ARCH, time=tmp_path / "t")
    assert (tmp_path / "t").read_text() == HEADER


def test_phase_lines(capfd: pytest.CaptureFixture[str]) -> None:
    pylink.link([REDUCTION], arch=ARCH, edbg=0x20)
    lines = [line.split() for line in capfd.readouterr().err.splitlines()]
    tags = ["read", "merge", "layout", "relocate", "finalize", "write"]
    assert [line[:2] for line in lines] == [[tag, "time:"] for tag in tags]
    assert all(len(line[2].partition(".")[2]) == 6 for line in lines)
