"""-l and -L: the file that a library name stands for, and what is said when there is none."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.archive_builder import THIN, bsd, device, gnu, thin, write

import pylink
from pylink.command.cli import main
from pylink.diagnostics import Sink
from pylink.diagnostics.errors import LinkError
from pylink.inputs import hostmachine, libraries
from pylink.inputs.libraries import find_libraries
from pylink.options.model import Options
from pylink.options.plan import OutputPlan

X86_64, AARCH64 = 62, 183


def host(machine: int = X86_64) -> bytes:
    """The beginning of an object for a host."""
    return b"\x7fELF\2\1\1".ljust(16, b"\0") + b"\1\0" + machine.to_bytes(2, "little") + bytes(44)


HOST = gnu([("x.o", host())])
CUBINS = gnu([("f.cubin", device(["f"]))])


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LIBRARY_PATH", raising=False)
    monkeypatch.setattr(hostmachine, "MACHINE_OF_UNAME", {})  # the host of these tests is an x86-64
    return tmp_path


def find(*names: str, paths: tuple[str, ...] = (), **options: bool | str) -> list[str]:
    """The files for these names; a warning is an error here."""
    sink = Sink()
    given = Options({"library": names, "library_path": paths, **options})
    found = find_libraries(given, [False] * len(names), OutputPlan({}, (), sink), sink)
    assert not sink.diagnostics
    assert all(library.skipped is None for library in found)
    return [library.name for library in found]


def test_directories_in_their_order(here: Path) -> None:
    write(here, {"1/liba.a": HOST, "2/liba.a": HOST, "2/libb.a": HOST})
    assert find("a", "b", paths=("1", "2")) == ["1/liba.a", "2/libb.a"]
    assert find("b", "a", "b", paths=("2/", "1")) == ["2/libb.a", "2/liba.a", "2/libb.a"]
    assert find("a", paths=("none", "2//")) == ["2/liba.a"]


def test_the_environment_comes_last(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(here, {"1/liba.a": HOST, "2/liba.a": HOST, "3/libb.a": HOST})
    monkeypatch.setenv("LIBRARY_PATH", ":2::3")
    assert find("a", "b", paths=("1",)) == ["1/liba.a", "3/libb.a"]
    assert find("a") == ["2/liba.a"]


def test_the_working_directory_is_not_searched(here: Path) -> None:
    write(here, {"liba.a": HOST})
    with pytest.raises(LinkError, match="Library -la not found in any directory, as -L names none"):
        find("a")
    assert find("a", paths=(".",)) == ["./liba.a"]


def test_a_shared_library_counts_as_found(here: Path) -> None:
    write(here, {"1/libm.so": b"", "1/libm.a": HOST, "2/libm.a": HOST})
    assert find("m", paths=("1", "2")) == []


def test_libraries_of_the_host_may_be_named(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(here, {"host/libpthread.so.0": b"", "host/libm.so": b"", "host/libstatic.a": HOST})
    write(here, {"host/libnear.sorry": b""})
    monkeypatch.setattr(libraries, "HOST_DIRECTORIES", ("none", str(here / "host")))
    assert find("pthread", "m") == []
    for name in ("static", "near"):
        with pytest.raises(LinkError, match=f"Library -l{name} not found"):
            find(name)


def test_all_that_is_missing_is_told() -> None:
    sink = Sink()
    options = Options({"library": ("no1", "no2"), "library_path": ("a b", "c")})
    with pytest.raises(LinkError):
        find_libraries(options, [False, False], OutputPlan({}, (), sink), sink)
    assert [record.message for record in sink.diagnostics] == [
        "Library -lno1 not found in 'a b', 'c'; use --allow-missing-libraries to ignore it",
        "Library -lno2 not found in 'a b', 'c'; use --allow-missing-libraries to ignore it",
    ]
    assert find("no1", "no2", allow_missing_libraries=True) == []


def test_under_the_name_nvlink_missing_libraries_are_no_mistake(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(here, {"main.cubin": device(kernel="k")})
    words = ["-arch=sm_80", "main.cubin", "-lnone", "-o", "out.cubin"]
    assert main(words) == 255
    assert (
        capsys.readouterr().err
        == "pylink error   : Library -lnone not found in any directory, as -L names none; "
        "use --allow-missing-libraries to ignore it\n"
    )
    assert not Path("out.cubin").exists()
    assert main([*words, "--allow-missing-libraries"]) == 0
    assert main(words, tool="nvlink") == 0
    assert capsys.readouterr().err == ""


def test_exact_names(here: Path) -> None:
    write(here, {"1/liba.a": HOST, "2/exact": HOST, "2/liba.a": HOST, "2/f.cubin": b""})
    assert find(":liba.a", ":exact", ":f.cubin", paths=("1", "2")) == [
        "1/liba.a",
        "2/exact",
        "2/f.cubin",
    ]
    with pytest.raises(LinkError, match="Library -l:liba not found"):
        find(":liba", paths=("1", "2"))


@pytest.mark.parametrize(
    ("archive", "cpu"),
    [
        (HOST, "X86_64"),
        (HOST, "unknown"),
        (gnu([("x.o", host(AARCH64))]), "AARCH64"),
        (gnu([("x.o", host(AARCH64)), ("y.o", host())]), "X86_64"),
        (gnu([("x.cubin", device(["f"])), ("y.o", host())]), "X86_64"),
        (b"\x7fELF and no archive", "X86_64"),
        (b"!<arch>\nthat is damaged", "X86_64"),
    ],
)
def test_archives_of_the_host(here: Path, archive: bytes, cpu: str) -> None:
    write(here, {"1/liba.a": archive, "2/liba.a": HOST})
    assert find("a", paths=("1", "2"), cpu_arch=cpu) == ["1/liba.a"]


def test_thin_archives_of_the_host(here: Path) -> None:
    write(here, {"1/liba.a": thin(["x.o"]), "1/x.o": host(), "2/liba.a": HOST})
    assert find("a", paths=("1", "2")) == ["1/liba.a"]
    write(here, {"1/x.o": b"text"})
    assert searched("1", "2") == (["2/liba.a"], ["1/liba.a"])
    write(here, {"x.o": host(AARCH64)})
    Path("1/x.o").unlink()  # so that the member is the file where the link runs
    assert searched("1", "2") == (["2/liba.a"], ["1/liba.a"])


def searched(*paths: str) -> tuple[list[str], list[str]]:
    """What -la finds, and what is passed over with a warning."""
    sink = Sink()
    options = Options({"library": ("a",), "library_path": paths})
    found = find_libraries(options, [False], OutputPlan({}, (), sink), sink)
    assert all(record.kind == "library-skipped" for record in sink.diagnostics)
    return [library.name for library in found], [str(record.file) for record in sink.diagnostics]


@pytest.mark.parametrize(
    "archive",
    [
        gnu([("x.o", host(AARCH64))]),
        gnu([("x.txt", b"text"), ("y.o", host())]),
        gnu([("empty", b""), ("y.o", host())]),
        bsd([("y.o", host())], index=True),
        CUBINS,
        b"text",
        b"",
    ],
)
def test_archives_that_are_not_for_the_host(here: Path, archive: bytes) -> None:
    write(here, {"1/liba.a": archive, "2/liba.a": HOST})
    assert searched("1", "2") == (["2/liba.a"], ["1/liba.a"])


def test_archives_without_members_are_no_news(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As librt.a is since glibc 2.34; in nvlink's place its line is there."""
    write(here, {"1/libf.a": gnu([]), "2/libg.a": THIN, "main.cubin": device(kernel="k")})
    words = ["-arch=sm_80", "main.cubin", "-L1", "-L2", "-lf", "-lg", "-o", "out.cubin"]
    assert main(words) == main([*words, "-Werror"]) == 0
    assert main([*words, "--diagnostics_format=text"]) == 0
    assert capsys.readouterr().err == ""
    assert main([*words, "-Werror"], tool="nvlink") == 255
    assert [line.split("'")[1] for line in capsys.readouterr().err.splitlines()] == [
        "1/libf.a",
        "2/libg.a",
    ]


@pytest.mark.parametrize("data", [b"", b"text"])
def test_what_is_no_archive_is_passed_over(here: Path, data: bytes) -> None:
    write(here, {"1/liba.a": data})
    assert searched("1") == ([], ["1/liba.a"])


def test_cubins_of_a_library_are_taken_where_something_is_undefined(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(here, {"main.cubin": device(calls=["f"], kernel="k"), "1/libf.a": CUBINS})
    words = ["-arch=sm_80", "main.cubin", "-o", "out.cubin"]
    assert main([*words, "-lf", "-L1"]) == 0
    assert main([*words, "-l:libf.a", "-L1"]) == 0
    assert capsys.readouterr().err == ""
    # Where they are not, the library is what it is to nvlink.
    write(here, {"main.cubin": device(kernel="k")})
    assert main([*words, "-lf", "-L1"]) == 0
    assert capsys.readouterr().err == (
        "pylink warning : Skipping incompatible '1/libf.a' when searching for -lf\n"
        "pylink note    : it contains objects for CUDA; the host of this link is x86-64 "
        "(-cpu-arch)\n"
    )


def test_libraries_come_after_the_inputs_in_a_call(here: Path) -> None:
    write(here, {"1/libf.a": CUBINS})
    program = device(calls=["f"], kernel="k")
    log = pylink.link([program], arch="sm_80", library="f", library_path=["1"]).diagnostics
    assert not log
    with pytest.raises(LinkError, match="Library -lg not found in '1'"):
        pylink.link([program], arch="sm_80", library=["g"], library_path="1")
