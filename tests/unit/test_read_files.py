"""Inputs that cannot be read: one error that names the file, exit status 1, no output."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from helpers.cubin_builder import SHT_NOTE, SHT_PROGBITS, SHT_SYMTAB, Cubin, Section, one_kernel
from helpers.privileges import ordinary_user
from helpers.threads import THREADS, threads

import pylink
from pylink._native import elfread, inputfiles, sourcetimes
from pylink._native.results import ObjectTables
from pylink.command.cli import main
from pylink.facts import elf, sectionkinds, sectiontable
from pylink.inspect.image import Image
from pylink.rowformats import TIME
from pylink.tables import extent_at, file_sections, section_name, symbol_name

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
    assert link(path, output, capsys) == (
        f"pylink fatal   : Could not open input file '{path}'\n"
        "pylink note    : No such file or directory\n"
    )


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
    def exhausted(*_: object, **_named: object) -> None:
        raise MemoryError

    monkeypatch.setattr(inputfiles, "read_files", exhausted)
    with pytest.raises(pylink.LinkError, match="Reading 'a' failed: there is not enough memory"):
        pylink.link([("a", one_kernel().build())], arch="sm_80")


@pytest.mark.parametrize("place", ["pipeline.merge", "pipeline.layout", "files.buffer.Canvas"])
def test_memory_that_runs_out_later_is_no_internal_error(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    output: Path,
    capsys: pytest.CaptureFixture[str],
    place: str,
) -> None:
    def exhausted(*_: object) -> None:
        raise MemoryError

    path = tmp_path / "a.cubin"
    path.write_bytes(one_kernel().build())
    monkeypatch.setattr(f"pylink.{place}", exhausted)
    assert (
        link(path, output, capsys) == "pylink fatal   : There is not enough memory for the link\n"
    )


# Links with ever more address space, until there is enough.
WITHIN_LIMITS = """
import resource, sys
from pathlib import Path
import pylink
from pylink.diagnostics.errors import LinkError

small, large = (Path(path).read_bytes() for path in sys.argv[1:])
for data in (small, small[:-1]):  # what links and errors need is loaded before there are limits
    try:
        pylink.link([data], arch="sm_80")
    except LinkError:
        pass
with open("/proc/self/statm") as stream:
    used = int(stream.read().split()[0]) * resource.getpagesize()
outcomes = set()
for more in range(0, 512, 8):
    resource.setrlimit(resource.RLIMIT_AS, (used + (more << 20), resource.RLIM_INFINITY))
    try:
        pylink.link([("large", large)], arch="sm_80")
    except LinkError as error:
        (record,) = error.diagnostics
        outcomes.add((record.number, record.message))
    else:
        print("linked")
        break
for number, message in sorted(outcomes):
    print(number, message)
"""


def test_a_limit_of_memory_is_reported_by_the_interface_as_well(tmp_path: Path) -> None:
    paths = [tmp_path / "small", tmp_path / "large"]
    paths[0].write_bytes(one_kernel().build())
    cubin = one_kernel()
    cubin.section(Section(".debug_abbrev", SHT_PROGBITS, bytes(32 << 20)))
    paths[1].write_bytes(cubin.build())
    words = [sys.executable, "-c", WITHIN_LIMITS, *map(str, paths)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "linked",
        "125 Reading 'large' failed: there is not enough memory",
        "507 There is not enough memory for the link",
    ]


def test_a_file_that_becomes_shorter(tmp_path: Path) -> None:
    path = tmp_path / "short"
    path.write_bytes(b"x" * 10)
    result = inputfiles.read_files([os.fsencode(path)], [11], [None])
    assert result[2:] == (0, 0)


@pytest.mark.parametrize("size", [(8 << 20) - 1, 8 << 20, (8 << 20) + 1, 9 << 20, (11 << 20) + 3])
def test_a_file_that_two_threads_read(tmp_path: Path, size: int) -> None:
    """Large ones are read in parts, all others whole, and none comes into another's place."""
    words = b"".join(number.to_bytes(4, "little") for number in range(1, size // 4 + 2))[:size]
    paths = [tmp_path / name for name in ("small", "large", "last")]
    for path, data in zip(paths, (b"first", words, words[::-1]), strict=True):
        path.write_bytes(data)
    sizes = [path.stat().st_size for path in paths]
    names: list[bytes | None] = [os.fsencode(path) for path in paths]
    arena, extents, failed, _ = inputfiles.read_files(names, sizes, [None] * 3)
    assert failed == -1
    for number, path in enumerate(paths):
        offset, length = extent_at(extents, number)
        assert arena[offset : offset + length] == path.read_bytes()
        assert arena[offset + length : offset + -(-length // 16) * 16].strip(b"\0") == b""
    for cut in (1, 2 << 20):
        os.truncate(paths[1], size - cut)
        assert inputfiles.read_files(names, sizes, [None] * 3)[2:] == (1, 0)
    paths[1].unlink()
    assert inputfiles.read_files(names, sizes, [None] * 3)[2:] == (1, errno.ENOENT)


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
    files, sections, symbols, faults = elfread.parse(arena, extents)
    assert not faults
    objects = ObjectTables(arena, files, sections, symbols)
    for number, row in enumerate(files):
        assert row.offset % 16 == 0
        assert arena[row.offset : row.offset + row.size] == images[number]
        names = [
            section_name(objects, file_section) for file_section in file_sections(objects, number)
        ]
        function = ("first", "second")[number]
        assert names[:5] == ["", ".shstrtab", ".strtab", ".symtab", f".text.{function}"]
    functions = [number for number, info in enumerate(symbols.column("info")) if info & 15 == 2]
    assert [symbol_name(objects, number) for number in functions] == ["first", "second"]


def test_tables_print_and_compare() -> None:
    image = one_kernel("f").build()
    arena, extents, _, _ = inputfiles.read_files([None, None], [len(image)] * 2, [image] * 2)
    files, sections, _, _ = elfread.parse(arena, extents)
    again = elfread.parse(arena, extents)[1]
    assert repr(sections) == f"<{len(sections)} Sections>"
    assert repr(sections[1]).startswith("<")
    assert f"size={sections[1].size}" in repr(sections[1])
    assert (sections == again, hash(sections) == hash(again)) == (True, True)
    assert files[0] != files[1]
    with pytest.raises(AttributeError, match=r"^Sections have no column nothing$"):
        _ = sections[0].nothing  # type: ignore[attr-defined]


def kind_and_bank(name: str, type_: int, flags: int, *, mercury: bool = False) -> tuple[int, ...]:
    """Kind and bank of a section beside those of the function f, or why it is refused."""
    cubin = Cubin(e_flags=0x06006402) if mercury else Cubin()
    info = 0 if mercury else cubin.symbols[cubin.function("f")].section
    at = cubin.section(Section(name, type_, b"\1\4\0\0", flags, info=info if flags & 0x40 else 0))
    image = cubin.build()
    arena, extents, _, _ = inputfiles.read_files([None], [len(image)], [image])
    _, sections, _, faults = elfread.parse(arena, extents)
    if faults:
        return (-faults[0].reason,)
    return sections[at].kind, sections[at].bank


BANK_0, DATA = 0x70000064, 2
UNKNOWN_TYPE, OTHER_NAME, WRONG_TARGET = (-45,), (-32,), (-16,)


@pytest.mark.parametrize(
    ("name", "bank", "flags", "expected"),
    [
        (".nv.constant3", 3, DATA, (sectionkinds.CONSTANT, 3)),
        (".nv.constant17", 17, DATA, (sectionkinds.CONSTANT, 17)),
        (".nv.constant3.f", 3, DATA | 0x40, (sectionkinds.CONSTANT_FUNC, 3)),
        (".nv.constant17.f", 17, DATA | 0x40, (sectionkinds.CONSTANT_FUNC, 17)),
        (".nv.constant0.f", 0, DATA | 0x40, (sectionkinds.CONSTANT0, 0)),
        (".nv.constant3.g", 3, DATA | 0x40, OTHER_NAME),
        (".nv.constant3", 2, DATA, OTHER_NAME),
        (".nv.constant", 3, DATA, OTHER_NAME),
        (".nv.constant03", 3, DATA, OTHER_NAME),
        (".nv.constant3x", 3, DATA, OTHER_NAME),
        (".nv.constant18", 18, DATA, UNKNOWN_TYPE),
    ],
)
def test_the_bank_of_a_section(name: str, bank: int, flags: int, expected: tuple[int, ...]) -> None:
    assert kind_and_bank(name, BANK_0 + bank, flags) == expected


@pytest.mark.parametrize(
    ("name", "type_", "flags", "expected"),
    [
        # The type tells, and where nvlink takes any name, so does the reader.
        (".ov.info", 0x70000000, 0, (sectionkinds.INFO, 0)),
        (".ov.info.g", 0x70000000, 0x40, (sectionkinds.INFO_FUNC, 0)),
        (".ov.compat", 0x70000086, 0, (sectionkinds.COMPAT, 0)),
        (".oote", SHT_NOTE, 0x1000000, (sectionkinds.CUINFO, 0)),
        # Where it does not, the section is refused.
        (".oote.nv.tkinfo", SHT_NOTE, 0x2000000, OTHER_NAME),
        (".ov.global.init", 0x70000008, 3, OTHER_NAME),
        (".text.g", SHT_PROGBITS, 6, WRONG_TARGET),
        # What no kind has is not plain data, least of all where it takes memory.
        (".nv.uft", 0x7000000E, 3, UNKNOWN_TYPE),
        (".nv.odd", 0x70000020, 0, UNKNOWN_TYPE),
        (".data", SHT_PROGBITS, 3, UNKNOWN_TYPE),
        (".comment", SHT_PROGBITS, 0, (sectionkinds.OTHER, 0)),
        (".rela.text.f", SHT_PROGBITS, 0, OTHER_NAME),
    ],
)
def test_the_kind_of_a_section(
    name: str, type_: int, flags: int, expected: tuple[int, ...]
) -> None:
    assert kind_and_bank(name, type_, flags) == expected


def section_rows() -> list[tuple[str, int, int, int, int]]:
    """Name, type, flags, kind and bank of sections that need nothing around them."""
    rows = []
    for row in sectiontable.kinds():
        points = row.info in (sectiontable.HEAD_TARGET, sectiontable.HEAD_FUNCTION)
        table = row.size in (sectiontable.SIZE_SYMBOLS, sectiontable.SIZE_INDICES)
        calls = row.features & sectiontable.IS_CALLS
        if points or table or calls or row.owner == sectionkinds.CAPMERC:
            continue
        for name, type_ in zip(row.names, row.types, strict=False):
            text = name.decode().replace("{bank}", "3") + "f" * name.endswith(b".")
            bank = 3 if row.banked else row.first_bank and row.first_bank + type_ - row.types[0]
            rows.append((text, type_ + 3 * row.banked, row.flags, row.number, bank))
    return rows


def test_every_row_of_the_table_tells_its_sections() -> None:
    rows = section_rows()
    assert len({kind for _, _, _, kind, _ in rows}) >= 25
    for name, type_, flags, kind, bank in rows:
        mercury = flags & elf.SHF_MERCURY != 0
        assert kind_and_bank(name, type_, flags, mercury=mercury) == (kind, bank), name


def test_data_of_no_kind_from_sm_100_on() -> None:
    """There nvlink's finalizer makes something of it that is not known."""
    assert kind_and_bank(".comment", SHT_PROGBITS, 0, mercury=True) == OTHER_NAME


def test_a_file_outside_the_arena_is_a_wrong_argument() -> None:
    with pytest.raises(IndexError, match="file 0 runs past the arena"):
        elfread.parse(b"12345678", (8).to_bytes(8, "little") * 2)
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
    sizes = inputfiles.measure([*paths, None], 8, [(1, 1), (status.st_dev, status.st_ino)])
    assert sizes == [3, -1, -1, -1, -1, -1, -1, -1, -1]
    assert inputfiles.measure([*paths[:3]], 9, []) == [3, 9, 4]
    assert inputfiles.measure([], 8, []) == []


def test_changed_files_are_noticed(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("first", "second", "odd \udcff")]
    for path in paths:
        path.write_bytes(b"12")
    folder = os.open(tmp_path, os.O_RDONLY)
    rows = [("of no file", "", 0, 0, None)]
    for path in paths:
        os.utime(path, ns=(0, 1_700_000_000_000_000_123))
        name = path.name if path == paths[0] else str(path)
        rows.append(("name", name, 2, 1_700_000_000_000_000_123, None))
    assert sourcetimes.are_unchanged(rows, folder)
    assert sourcetimes.are_unchanged([], folder)
    for number in range(1, len(rows)):
        name, file, size, time, code = rows[number]
        for row in (
            (name, file, size + 1, time, code),
            (name, file, size, time + 1, code),
            (name, file, size, time - 10**9, code),
            (name, f"{file}.", size, time, code),
        ):
            changed = [*rows[:number], row, *rows[number + 1 :]]
            assert not sourcetimes.are_unchanged(changed, folder)
    os.close(folder)


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
    files, _, _, faults = elfread.parse(arena, extents)
    assert len(faults) == 1
    assert files


def large_inputs(count: int) -> list[bytes]:
    """Cubins of so many bytes that several threads read them."""
    images = []
    for number in range(count):
        cubin = one_kernel(f"kernel{number}")
        for more in range(number % 3):
            cubin.external(f"more{number}_{more}")
        cubin.section(Section(".debug_abbrev", SHT_PROGBITS, bytes((6 << 20) // count)))
        images.append(cubin.build())
    return images


def arena_of(images: list[bytes]) -> tuple[bytes, bytes]:
    arena, extents, failed, _ = inputfiles.read_files(
        [None] * len(images), [len(image) for image in images], [*images]
    )
    assert failed == -1
    return arena, extents


def assert_reads_as_one_by_one(images: list[bytes]) -> None:
    """Rows of all files are those of each, whose numbers begin behind those of the files before."""
    arena, extents = arena_of(images)
    files, sections, symbols, faults = elfread.parse(arena, extents)
    assert not faults
    section = symbol = 0
    for number, row in enumerate(files):
        (file,), own_sections, own_symbols, _ = elfread.parse(arena, extents[16 * number :][:16])
        assert (row.first_section, row.first_symbol, row.offset) == (section, symbol, file.offset)
        for at, own in enumerate(own_sections):
            row_here = sections[section + at]
            assert (row_here.name, row_here.offset, row_here.size) == (
                own.name,
                own.offset,
                own.size,
            )
            assert (row_here.kind, row_here.file) == (own.kind, number)
            assert row_here.target < 0 or row_here.target >= min(section, symbol)
        for at, entry in enumerate(own_symbols):
            symbol_here = symbols[symbol + at]
            assert (symbol_here.name, symbol_here.info) == (entry.name, entry.info)
            assert symbol_here.file == number
            assert symbol_here.section == (entry.section + section if entry.section >= 0 else -1)
        section += len(own_sections)
        symbol += len(own_symbols)
    assert (len(sections), len(symbols)) == (section, symbol)


@pytest.mark.parametrize("used", THREADS)
@pytest.mark.parametrize("count", [1, 2, 3, 8, 31])
def test_threads_read_what_one_reads(count: int, used: int) -> None:
    with threads(used):
        assert_reads_as_one_by_one(large_inputs(count))


@pytest.mark.parametrize("used", THREADS)
def test_times_say_which_thread_read_a_file(used: int) -> None:
    arena, extents = arena_of(large_inputs(8))
    times = bytearray(8 * TIME.size)
    with threads(used):
        elfread.parse(arena, extents, times)
    for start, wall, cpu, lane in TIME.iter_unpack(times):
        assert start > 0
        assert cpu <= wall
        assert lane < used


@pytest.mark.parametrize("used", THREADS)
def test_a_share_with_fewer_symbols_than_it_could_have(used: int) -> None:
    """A file has as many rows as its last table of symbols, though another one is larger."""
    images = large_inputs(8)
    cubin = one_kernel("kernel")
    image = cubin.build()
    (table,) = [section for section in Image(image).sections if section.name == ".symtab"]
    short = image[table.offset : table.offset + table.size]
    for number in range(40):
        cubin.external(f"more{number}")
    cubin.section(Section(".symtab", SHT_SYMTAB, short, link=2, info=3, entsize=24, align=8))
    images[0] = images[5] = cubin.build() + bytes(1 << 20)
    with threads(used):
        assert_reads_as_one_by_one(images)


@pytest.mark.parametrize("used", THREADS)
@pytest.mark.parametrize("bad", [(0,), (3,), (4,), (7,), (2, 6), (0, 7)])
def test_the_first_fault_counts(bad: tuple[int, ...], used: int) -> None:
    images = large_inputs(8)
    for number in bad:
        images[number] = images[number][:18] + b"\1" + images[number][19:]  # e_machine
    with threads(used):
        files, _, _, faults = elfread.parse(*arena_of(images))
    (fault,) = faults
    assert fault.file == bad[0]
    assert len(files) == bad[0]
