"""Members of archives, found in every dialect that `ar` tools write."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.archive_builder import MAGIC, Members, bsd, gnu, header, member, thin, write
from helpers.archive_reference import Row, members
from hypothesis import given
from hypothesis import strategies as st

from pylink._native.archives import list_members, split_rows
from pylink.inputs.archiveformat import ROW_SIZE, ArchiveError, read_archive

MEMBERS = [
    ("a.o", b"even"),
    ("b.o", b"odd"),
    ("a.o", b"of equal name"),
    ("a name with blanks.o", b""),
    ("blank at end ", b"x"),
    ("fünfzehn.o", b"\0\n\0"),
    ("a_long_name_that_no_header_holds.o", b"x" * 1001),
    ("/deep/er/ünd.o", b"!"),
]


def found(data: bytes) -> list[tuple[str, bytes]]:
    """Names and contents of the members."""
    return [
        (entry.name, data[entry.offset : entry.offset + entry.size])
        for entry in read_archive(data, 0, len(data))
    ]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(gnu(MEMBERS), id="gnu"),
        pytest.param(gnu(MEMBERS, index=b"\0\0\0\1\0\0\0\x08name\0"), id="gnu with an index"),
        pytest.param(gnu(MEMBERS, index=b"\xff" * 4001), id="gnu with an index that lies"),
        pytest.param(gnu(MEMBERS, index=bytes(8), wide=True), id="gnu with a 64-bit index"),
        pytest.param(bsd(MEMBERS), id="bsd"),
    ],
)
def test_members_of_each_dialect(data: bytes) -> None:
    assert found(data) == MEMBERS


def test_an_empty_archive_has_no_members() -> None:
    assert found(MAGIC) == []
    assert found(gnu([], index=b"")) == []


def test_the_index_of_bsd_is_a_member_by_name_alone() -> None:
    assert [name for name, _ in found(bsd(MEMBERS, index=True))[:2]] == ["__.SYMDEF", "a.o"]


def test_padding_that_is_missing_at_the_end() -> None:
    data = gnu([("a.o", b"odd")])
    assert found(data[:-1]) == [("a.o", b"odd")]
    assert found(data + b"\n") == [("a.o", b"odd")]


def test_names_that_only_a_line_feed_or_nul_ends() -> None:
    names = ["first long name.o", "second long name.o", "third"]
    table = b"first long name.o\nsecond long name.o\0third"
    data = MAGIC + member(b"//", table)
    data += b"".join(member(b"/%d" % table.index(name.encode()), b"") for name in names)
    assert [name for name, _ in found(data)] == names


def test_of_slashes_the_last_ends_a_name() -> None:
    data = MAGIC + member(b"//", b"a long name with slashes//\n") + member(b"/0", b"1")
    assert [name for name, _ in found(data)] == ["a long name with slashes/"]
    assert [name for name, _ in found(MAGIC + member(b"short//", b"1"))] == ["short/"]


@pytest.mark.parametrize("before", [b"before--", b"odd"])
def test_an_archive_inside_a_buffer(before: bytes) -> None:
    """Members are padded to offsets that are even in the archive."""
    inner = gnu(MEMBERS)
    data = before + inner + b"after"
    entries = list(read_archive(data, len(before), len(inner)))
    assert [data[entry.offset : entry.offset + entry.size] for entry in entries] == [
        contents for _, contents in MEMBERS
    ]
    assert entries[0].header == inner.index(b"a.o/ ")


def test_thin_members_have_names_alone() -> None:
    data = thin(["x.o", "sub/lib.a:68", "z.o"], [4000, 5, 10**9])
    entries = list(read_archive(data, 0, len(data)))
    assert [(entry.name, entry.size, entry.place) for entry in entries] == [
        ("x.o", 4000, -1),
        ("sub/lib.a", 5, 68),
        ("z.o", 10**9, -1),
    ]


@pytest.mark.parametrize(
    ("data", "reason", "name"),
    [
        (b"", "it does not begin as an archive does", ""),
        (b"!<arch", "it does not begin as an archive does", ""),
        (MAGIC + b"a.o/", "the header at 0x8 is cut short", ""),
        (MAGIC + header(b"a.o/", 0, b"xy"), "the header at 0x8 does not end", ""),
        (MAGIC + header(b"a.o/", b"1x"), "its size '1x' is not a decimal number", "a.o"),
        (MAGIC + header(b"a.o/", b"-1"), "its size '-1' is not a decimal number", "a.o"),
        (MAGIC + header(b"a.o/", b""), "its size '' is not a decimal number", "a.o"),
        (MAGIC + header(b"a.o/", b"\xb2"), r"its size '\xb2' is not a decimal number", "a.o"),
        (MAGIC + header(b"a.o/", b"0x10"), "its size '0x10' is not a decimal number", "a.o"),
        (MAGIC + header(b"a.o/", 9999999999), "its header says 9999999999 bytes", "a.o"),
        (MAGIC + header(b"a.o/", 5) + b"1234", "its header says 5 bytes, and 4 are left", "a.o"),
        (MAGIC + header(b"//", 5) + b"1234", "its header says 5 bytes, and 4 are left", "//"),
        (MAGIC + header(b"/0", 0), "no member // comes before it", "/0"),
        (MAGIC + header(b"/x", 0), "begins with a slash and is not an offset", "/x"),
        (MAGIC + member(b"//", b"ab/\n") + header(b"/4", 0), "is at 4 of the long names", "/4"),
        (MAGIC + member(b"//", b"ab/\n") + header(b"/99", 0), "which have 4 bytes", "/99"),
        (MAGIC + member(b"//", b"/\nb/\n") + header(b"/0", 0), "is empty", "/0"),
        (MAGIC + member(b"//", b"ab/\n") + header(b"/0:x", 0), "its place 'x' is no", "/0:x"),
        (MAGIC + header(b"#1/9", 8) + b"12345678", "its name has '9' bytes, of 8", "#1/9"),
        (MAGIC + header(b"#1/-1", 8) + b"12345678", "its name has '-1' bytes", "#1/-1"),
        (member(b"a", b"b") + MAGIC, "it does not begin as an archive does", ""),
    ],
)
def test_damage_is_named(data: bytes, reason: str, name: str) -> None:
    with pytest.raises(ArchiveError) as caught:
        found(data)
    assert reason in str(caught.value)
    assert caught.value.member == name


names = st.text(st.characters(exclude_characters="\0/\n ", exclude_categories=["Cs"]), min_size=1)


@given(st.lists(st.tuples(names, st.binary(max_size=9)), max_size=6), st.booleans())
def test_what_is_written_is_read(some: Members, as_bsd: bool) -> None:
    assert found(bsd(some) if as_bsd else gnu(some)) == list(some)


def outcome(entries: Iterator[Row]) -> tuple[list[Row], str, str]:
    """The members, and what is wrong behind them, with whom."""
    rows: list[Row] = []
    try:
        for row in entries:
            rows.append(row)
    except ArchiveError as error:
        return rows, str(error), error.member
    return rows, "", ""


def walked(data: bytes, start: int, size: int) -> Iterator[Row]:
    for read_member in read_archive(data, start, size):
        yield (
            read_member.name,
            read_member.header,
            read_member.offset,
            read_member.size,
            read_member.place,
            read_member.inline,
        )


LONG = gnu([(f"a_long_name_of_member_{number}.o", b"x" * number) for number in range(40)])
SLASHES = (
    MAGIC + member(b"//", b"one//\ntwo\0/\nthree") + member(b"/0:7", b"1") + member(b"/6", b"")
)
WHOLE = [
    gnu(MEMBERS, index=b"123"),
    gnu(MEMBERS, index=bytes(8), wide=True),
    bsd(MEMBERS, index=True),
    thin(["a", "b", "sub/lib.a:68"]),
    LONG,
    SLASHES,
    SLASHES.replace(MAGIC, b"!<thin>\n"),
    bsd(MEMBERS).replace(MAGIC, b"!<thin>\n"),
]


@given(st.data())
def test_damaged_archives_are_read_or_refused(data: st.DataObject) -> None:
    """As the plain reader does, from the same header on and with the same words."""
    damaged = bytearray(b"junk" + data.draw(st.sampled_from(WHOLE)))
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(4, len(damaged) - 1))
        damaged[at] = data.draw(st.sampled_from(b"\0\n /#:019`a") | st.integers(0, 255))
    size = data.draw(st.integers(0, len(damaged) - 4))
    rows, reason, name = outcome(walked(bytes(damaged), 4, size))
    assert (rows, reason, name) == outcome(members(bytes(damaged), 4, size))
    assert len(rows) <= size // 60
    if damaged[4:12] == MAGIC:
        assert all(60 < offset <= offset + count <= 4 + size for _, _, offset, count, *_ in rows)


def test_the_walk_goes_on_where_it_was() -> None:
    """However few members are asked for at a time."""
    whole, more, _ = list_members(LONG, 0, len(LONG), 1000, ())
    assert more is None
    for most in (1, 3, 39, 40):
        parts: list[bytes] = []
        seen: tuple[int, int, int] | tuple[()] | None = ()
        while seen is not None:
            rows, seen, fault = list_members(LONG, 0, len(LONG), most, seen)
            assert fault is None
            assert len(rows) <= most * ROW_SIZE
            parts.append(rows)
        assert b"".join(parts) == whole
    names, _, _, inline = split_rows(LONG, whole, "lib.a:")
    assert names[3] == "lib.a:a_long_name_of_member_3.o"
    assert inline == bytes(40)
    for wrong in ((7, 0, 0), (8, 0, len(LONG) + 1), (8, len(LONG) + 1, 0)):
        with pytest.raises(IndexError):
            list_members(LONG, 0, len(LONG), 1, wrong)
    with pytest.raises(IndexError):
        list_members(LONG, 1, len(LONG), 1, ())
    with pytest.raises(IndexError):
        split_rows(b"", whole, "")


@pytest.mark.parametrize("options", ["qcs", "qcS", "qcsT", "qcST"])
@pytest.mark.parametrize("tool", ["ar", "llvm-ar-19", "llvm-ar"])
def test_members_as_the_tools_write_them(tmp_path: Path, tool: str, options: str) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"no {tool}")
    files = {"a.o": b"even", "b.o": b"odd", "a_long_name_that_no_header_holds.o": b"x" * 99}
    write(tmp_path, files)
    subprocess.run([tool, options, "lib.a", *files], cwd=tmp_path, check=True, capture_output=True)
    data = (tmp_path / "lib.a").read_bytes()
    entries = list(read_archive(data, 0, len(data)))
    assert [(entry.name, entry.size) for entry in entries] == [
        (name, len(contents)) for name, contents in files.items()
    ]
    if "T" not in options:
        assert found(data) == list(files.items())
