"""Inputs that cannot be read: one error that names the file, exit status 1, no output."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from helpers.cubin_builder import SHT_PROGBITS, Cubin, Section, one_kernel
from helpers.privileges import ordinary_user

import pylink
from pylink._native import elfread, inputfiles
from pylink.command.cli import main
from pylink.sections import rules
from pylink.tables import FILE, SECTION, SYMBOL, text

ARCH = "-arch=sm_80"


def link(path: Path, output: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What the command line says about an input that it refuses."""
    assert main([ARCH, str(path), "-o", str(output)]) != 0
    assert not output.exists()
    out, error = capsys.readouterr()
    assert out == ""
    return error


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "output"


def test_missing(tmp_path: Path, output: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "missing"
    assert link(path, output, capsys) == f"pylink fatal   : Could not open input file '{path}'\n"


def test_directory(tmp_path: Path, output: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "Could not open input file" in link(tmp_path, output, capsys)


def test_unreadable(tmp_path: Path, output: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "secret"
    path.write_bytes(one_kernel().build())
    path.chmod(0)
    with ordinary_user():
        assert main([ARCH, str(path), "-o", str(output)]) == 1
    assert "Could not open input file" in capsys.readouterr().err
    assert not output.exists()


def test_empty(tmp_path: Path, output: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "empty"
    path.touch()
    assert link(path, output, capsys) == f"pylink error   : Input file '{path}' is empty\n"


def test_all_empty_inputs_are_named() -> None:
    with pytest.raises(pylink.LinkError) as caught:
        pylink.link([("a", b""), ("b", one_kernel().build()), ("c", b"")], arch="sm_80")
    assert [record.file for record in caught.value.diagnostics] == ["a", "c"]


@pytest.mark.parametrize("name", ["/dev/null", "/dev/zero", "/dev/full"])
def test_devices(name: str, output: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "Could not open input file" in link(Path(name), output, capsys)


def test_a_name_that_no_file_can_have() -> None:
    with pytest.raises(pylink.LinkError, match="Could not open input file"):
        pylink.link(["a\0b"], arch="sm_80")
    with pytest.raises(pylink.LinkError, match="Cannot open file"):
        pylink.link([one_kernel().build()], arch="sm_80", time="a\0b")


def feed(path: Path, data: bytes) -> threading.Thread:
    """Write to a pipe until all is written or the reader goes away."""

    def run() -> None:
        try:
            with open(path, "wb", buffering=0) as stream:
                rest = memoryview(data)
                while rest:
                    rest = rest[stream.write(rest) :]
        except BrokenPipeError:
            pass

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_pipe(tmp_path: Path, output: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    image = one_kernel().build()
    writer = feed(path, image)
    assert main([ARCH, str(path), "-o", str(output)]) == 0
    writer.join()
    file = tmp_path / "file"
    file.write_bytes(image)
    assert main([ARCH, str(file), "-o", str(tmp_path / "of_file")]) == 0
    assert output.read_bytes() == (tmp_path / "of_file").read_bytes()


def test_no_more_of_a_pipe_is_read_than_tells_that_it_is_no_elf(
    tmp_path: Path, output: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = feed(path, b"y\n" * (1 << 24))
    assert "cubin not an elf?" in link(path, output, capsys)
    writer.join()


def test_a_huge_file_of_holes_is_not_read(
    tmp_path: Path, output: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "holes"
    with open(path, "wb") as stream:
        stream.truncate(1 << 40)
    assert "cubin not an elf?" in link(path, output, capsys)
    with open(path, "r+b") as stream:
        stream.write(b"\x7fELF")
    assert f"Reading '{path}' failed: it has more than" in link(path, output, capsys)


def test_memory_that_runs_out_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def exhausted(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(inputfiles, "read_files", exhausted)
    with pytest.raises(pylink.LinkError, match="Reading 'a' failed: there is not enough memory"):
        pylink.link([("a", one_kernel().build())], arch="sm_80")


def test_a_file_that_becomes_shorter(tmp_path: Path) -> None:
    path = tmp_path / "short"
    path.write_bytes(b"x" * 10)
    result = inputfiles.read_files([os.fsencode(path)], [11], [None])
    assert result[2:] == (0, 0)


def test_the_command_line_survives_a_damaged_input(tmp_path: Path) -> None:
    path = tmp_path / "a.cubin"
    path.write_bytes(one_kernel().build()[:-1])
    words = [sys.executable, "-m", "pylink", ARCH, str(path), "-o", str(tmp_path / "output")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (255, "")
    assert done.stderr == (f"pylink error   : {path}: section header table lies outside the file\n")
    assert sorted(tmp_path.iterdir()) == [path]


def test_tables_of_the_reader() -> None:
    """The arena keeps files apart, and rows name what the headers say."""
    images = [one_kernel("first").build(), one_kernel("second").build()]
    arena, extents, failed, error = inputfiles.read_files(
        [None, None], [len(image) for image in images], [*images]
    )
    assert (failed, error) == (-1, 0)
    files, sections, symbols, fault = elfread.parse(arena, extents, rules.compiled())
    assert fault == b""
    for number, row in enumerate(FILE.iter_unpack(files)):
        offset, size, first_section, count = row[:4]
        assert offset % 16 == 0
        assert arena[offset : offset + size] == images[number]
        names = [
            text(arena, one[0], one[4])
            for one in SECTION.iter_unpack(
                sections[first_section * SECTION.size : (first_section + count) * SECTION.size]
            )
        ]
        function = ("first", "second")[number]
        assert names[:5] == ["", ".shstrtab", ".strtab", ".symtab", f".text.{function}"]
    functions = [row for row in SYMBOL.iter_unpack(symbols) if row[8] & 15 == 2]
    assert [text(arena, row[0], row[4]) for row in functions] == ["first", "second"]


@pytest.mark.parametrize(
    ("name", "kind", "bank"),
    [
        (".nv.constant3", rules.CONSTANT, 3),
        (".nv.constant17", rules.CONSTANT, 17),
        (".nv.constant3.f", rules.CONSTANT_FUNC, 3),
        (".nv.constant", rules.OTHER, 0),
        (".nv.constant03", rules.OTHER, 0),
        (".nv.constant18", rules.OTHER, 0),
        (".nv.constant3x", rules.OTHER, 0),
    ],
)
def test_the_bank_in_the_name_of_a_section(name: str, kind: int, bank: int) -> None:
    cubin = Cubin()
    function = cubin.symbols[cubin.function("f")].section
    info = function if kind == rules.CONSTANT_FUNC else 0
    at = cubin.section(Section(name, SHT_PROGBITS, bytes(4), 2, info=info))
    image = cubin.build()
    arena, extents, _, _ = inputfiles.read_files([None], [len(image)], [image])
    _, sections, _, fault = elfread.parse(arena, extents, rules.compiled())
    assert fault == b""
    row = SECTION.unpack_from(sections, at * SECTION.size)
    assert (row[12], row[13]) == (kind, bank)


def test_a_file_outside_the_arena_is_a_wrong_argument() -> None:
    with pytest.raises(IndexError, match="file 0 runs past the arena"):
        elfread.parse(b"12345678", (8).to_bytes(8, "little") * 2, rules.compiled())
    with pytest.raises(ValueError, match="changed its size"):
        inputfiles.read_files([None], [3], [b"four"])


def test_sizes_are_measured_of_ordinary_files_alone(tmp_path: Path) -> None:
    """Everything else takes a closer look, and so does the file that the link will replace."""
    for name, size in (("input", 3), ("large", 9), ("output", 4), ("empty", 0)):
        (tmp_path / name).write_bytes(bytes(size))
    os.mkfifo(tmp_path / "pipe")
    status = (tmp_path / "output").stat()
    names = ["input", "large", "output", "empty", "pipe", ".", "missing", "input\0more"]
    paths = [os.fsencode(tmp_path / name) for name in names]
    sizes = inputfiles.measure([*paths, None], 8, (status.st_dev, status.st_ino))
    assert sizes == [3, -1, -1, -1, -1, -1, -1, -1, -1]
    assert inputfiles.measure([*paths[:3]], 9, None) == [3, 9, 4]
    assert inputfiles.measure([], 8, None) == []


def test_names_that_no_file_can_have(output: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a\0b", "\ud800"):
        assert main([ARCH, name, "-o", str(output)]) == 1
        assert "Could not open input file" in capsys.readouterr().err


@pytest.mark.parametrize("field", ["e_shoff", "e_shnum", "sh_size"])
def test_row_counts_of_a_header_that_lies(field: str) -> None:
    """Claims beyond the file take no room and are refused as ever."""
    good, bad = one_kernel("first").build(), bytearray(one_kernel("second").build())
    table = int.from_bytes(bad[40:48], "little")
    if field == "e_shoff":
        bad[40:48] = b"\xff" * 8
    elif field == "e_shnum":
        bad[60:62] = b"\xff\xff"
    else:
        count = int.from_bytes(bad[60:62], "little")
        headers = [table + 64 * number for number in range(count)]
        (symtab,) = [at for at in headers if bad[at + 4 : at + 8] == b"\x02\0\0\0"]
        bad[symtab + 32 : symtab + 40] = b"\xf8" + b"\xff" * 7
    arena, extents, _, _ = inputfiles.read_files(
        [None, None], [len(good), len(bad)], [good, bytes(bad)]
    )
    files, sections, symbols, fault = elfread.parse(arena, extents, rules.compiled())
    assert fault
    assert len(files) >= FILE.size
    assert not len(sections) % SECTION.size
    assert not len(symbols) % SYMBOL.size
