"""`pylink inspect --extract`: device code is written out under safe names, over nothing."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from helpers import archive_builder
from helpers.cubin_builder import one_kernel
from helpers.fatbin_builder import LTOIR, PTX, container, entry, host_object

from pylink.command.inspection import main
from pylink.inspect.containers import Part
from pylink.inspect.extraction import extract

ONE, TWO = one_kernel("one").build(), one_kernel("two").build()
KEY = slice(48, 56)  # bytes of an entry's header
TEXT = b".version 8.0\n.target sm_80\n.address_size 64\n"


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code = container(entry(ONE, 80), entry(TWO, 90), entry(TEXT + bytes(3), 80, kind=PTX))
    (tmp_path / "a.o").write_bytes(host_object([("__nv_relfatbin", code)]))
    members = [("x.o", (tmp_path / "a.o").read_bytes()), ("y.cubin", TWO), ("y.cubin", ONE)]
    (tmp_path / "lib.a").write_bytes(archive_builder.gnu(members))
    (tmp_path / "plain.cubin").write_bytes(ONE)


def files(folder: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def test_all_device_code_is_written(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--extract", "new/out", "a.o", "lib.a", "plain.cubin"]) == 0
    assert files("new/out") == {
        "a.o.sm_80.cubin": ONE,
        "a.o.sm_90.cubin": TWO,
        "a.o.compute_80.ptx": TEXT,
        "lib.a_x.o.sm_80.cubin": ONE,
        "lib.a_x.o.sm_90.cubin": TWO,
        "lib.a_x.o.compute_80.ptx": TEXT,
        "lib.a_y.sm_80.cubin": TWO,
        "lib.a_y.sm_80-2.cubin": ONE,
        "plain.sm_80.cubin": ONE,
    }
    out, err = capfd.readouterr()
    assert f"new/out/a.o.sm_90.cubin: a.o: cubin for sm_90, {len(TWO)} bytes\n" in out
    assert err == ""


def test_one_architecture_is_written() -> None:
    assert main(["--extract", "out", "--arch", "sm_90", "a.o"]) == 0
    assert set(files("out")) == {"a.o.sm_90.cubin"}


@pytest.mark.parametrize("mode", ["zstd", "none"])
def test_scrambled_code_is_written_as_a_fat_binary_and_stops_nothing(mode: str) -> None:
    """nvcc scrambles LTO-IR after compressing it: a link can read it with its entry only."""
    scrambled = bytearray(entry(b"", 75, kind=LTOIR, mode=mode, stored=bytes(range(64)), stated=99))
    scrambled[KEY] = struct.pack("<Q", 0xD6C04954)
    code = container(entry(ONE, 80), bytes(scrambled), entry(TWO, 90))
    Path("b.o").write_bytes(host_object([("__nv_relfatbin", code)]))
    assert main(["--extract", "out", "b.o"]) == 0
    assert files("out") == {
        "b.o.sm_80.cubin": ONE,
        "b.o.lto_75.fatbin": container(bytes(scrambled)),
        "b.o.sm_90.cubin": TWO,
    }
    assert main(["--extract", "one", "--arch", "sm_90", "b.o"]) == 0
    assert set(files("one")) == {"b.o.sm_90.cubin"}


@pytest.mark.parametrize("link", [False, True])
def test_nothing_is_overwritten(capfd: pytest.CaptureFixture[str], link: bool) -> None:
    Path("out").mkdir()
    Path("kept").write_text("mine")
    if link:
        Path("out/plain.sm_80.cubin").symlink_to("../kept")
    else:
        Path("out/plain.sm_80.cubin").write_text("mine")
    assert main(["--extract", "out", "plain.cubin"]) == 2
    assert capfd.readouterr().err == "pylink inspect: out/plain.sm_80.cubin: File exists\n"
    assert Path("kept").read_text() == Path("out/plain.sm_80.cubin").read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("lib.a:../../etc/passwd", "passwd.sm_80.cubin"),
        ("lib.a:..", "lib.a_...sm_80.cubin"),
        ("..", "code.sm_80.cubin"),
        ("lib.a:a\nb\x1b[31m c", "lib.a_a_b_31m_c.sm_80.cubin"),
        ("x" * 300, f"{'x' * 100}.sm_80.cubin"),
        ("-rf", "-rf.sm_80.cubin"),
    ],
)
def test_names_stay_in_the_folder(name: str, expected: str) -> None:
    [(_, path)] = extract([Part(name, "cubin", 0, len(ONE), ONE, len(ONE))], Path("out"))
    assert path == Path("out") / expected
    assert files("out") == {expected: ONE}


def test_a_file_without_device_code_says_so(capfd: pytest.CaptureFixture[str]) -> None:
    Path("text.a").write_bytes(archive_builder.gnu([("readme", b"text")]))
    assert main(["--extract", "out", "text.a"]) == 2
    assert "'text.a:readme' is a text; no device code is found in it" in capfd.readouterr().err
    assert not Path("out").exists()


def test_other_words_do_not_go_with_it(capfd: pytest.CaptureFixture[str]) -> None:
    for word in ("--list", "--json", "--headers"):
        assert main(["--extract", "out", word, "plain.cubin"]) == 2
    assert "--extract only writes files" in capfd.readouterr().err
