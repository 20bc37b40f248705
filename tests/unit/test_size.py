"""`pylink size`: every byte once at each level, whatever holds it; planted files of known sizes."""

from __future__ import annotations

import csv
import io
import json
import random
import re
import struct
import subprocess
import sys
import zipfile
from array import array
from collections import Counter
from pathlib import Path

import pytest
from helpers import archive_builder, size_reference
from helpers.cubin_builder import CODE, Cubin, Section
from helpers.fatbin_builder import LTOIR, PTX, container, entry, host_object
from helpers.sized import wheel

from pylink._native.ledger import Ledger
from pylink.command.sizes import main
from pylink.size import LEVELS, Selection, Sizes, measure, rows, zips
from pylink.size.levels import INNER
from pylink.size.model import PARTS
from pylink.size.payload import Payload
from pylink.size.sources import FileSource, MemorySource

PTX_TEXT = b"""//
.version 8.0
.target sm_80
.address_size 64
.extern .func far;
.visible .entry _Z3onev(.param .u64 p)
{ // }
  .loc 1 2 3
  { ret; }
}
.func (.param .b32 r) two(
  .param .b32 a
)
{
  ret;
}
\0\0"""


def cubin(*names: str, code: bytes = CODE, data: bytes = b"") -> bytes:
    made = Cubin()
    for name in names:
        made.function(name, code=code)
    if data:
        made.section(Section(".nv.global.init", 0x70000008, data, flags=3))
    return made.build()


def library() -> bytes:
    """Containers in three sections, with zeros between and none, stored and packed entries."""
    first = container(
        entry(cubin("a", "b"), 80), entry(cubin("a"), 90, mode="zstd", flags=0x100011)
    )
    second = container(entry(PTX_TEXT, 80, kind=PTX, mode="lz4"))
    hidden = container(entry(cubin("_Z1fIiEvv", "_Z1fIfEvv"), 86, mode="lz4"))
    return host_object(
        [
            (".text", bytes(range(256))),
            (".nv_fatbin", first + bytes(40) + second + first),
            (".data", b"x" * 24 + hidden + b"y" * 8 + cubin("loose")),
            ("__nv_relfatbin", container(entry(PTX_TEXT, 75, kind=PTX))),
        ]
    )


def check_sums(sizes: Sizes, installed: int, download: int = 0) -> None:
    """The same three sums at every level, and no row below zero."""
    wanted = sum(leaf.unpacked for leaf in sizes.leaves), installed, download
    for by in [(), *((level,) for level in LEVELS), ("file", "part"), ("template", "target")]:
        found = rows(sizes, by)
        sums = tuple(
            sum(getattr(row, column) for row in found)
            for column in ("unpacked", "installed", "download")
        )
        assert sums == wanted, by
        assert all(min(row.unpacked, row.installed, row.download) >= 0 for row in found)


def by_level(sizes: Sizes, level: str) -> dict[str, int]:
    return {row.keys[0]: row.installed for row in rows(sizes, (level,))}


def test_every_byte_of_a_library_is_in_one_row_of_each_level(tmp_path: Path) -> None:
    path = tmp_path / "lib.so"
    path.write_bytes(library())
    sizes = measure([str(path)])
    check_sums(sizes, path.stat().st_size)
    assert not sizes.unreadable
    counts = Counter(leaf.kind for leaf in sizes.leaves if leaf.kind != "host")
    assert counts == {
        "container header": 5, "relocatable cubin": 6, "PTX": 1, "relocatable PTX": 1
    }  # fmt: skip
    assert {"sm_80", "sm_90a", "sm_86", "compute_80", "compute_75"} <= {*by_level(sizes, "target")}


def test_planted_code_has_its_own_bytes(tmp_path: Path) -> None:
    path = tmp_path / "planted.fatbin"
    path.write_bytes(
        container(
            entry(cubin("_Z1fIiEvv", code=bytes(4096)), 80),
            entry(cubin("_Z1fIfEvv", "plain", code=bytes(1024)), 90),
        )
    )
    sizes = measure([str(path)])
    check_sums(sizes, path.stat().st_size)
    code = {row.keys: row.unpacked for row in rows(sizes, ("template", "part"))}
    assert code["f<>", "code"] == 4096 + 1024
    assert code["plain", "code"] == 1024
    (instances,) = [row for row in rows(sizes, ("template",)) if row.keys == ("f<>",)]
    assert instances.count == 2
    assert instances.estimated is False


def test_download_bytes_of_a_wheel_are_those_of_its_members(tmp_path: Path) -> None:
    noise = random.Random(7).randbytes(100_000)
    members = {
        "a/lib.so": host_object(
            [
                (".rodata", bytes(50_000)),
                (".nv_fatbin", container(entry(cubin("a", data=noise), 80))),
            ]
        ),
        "a/text.py": b"pass\n" * 1000,
        "a/empty": b"",
    }
    path = wheel(tmp_path / "planted.whl", members)
    sizes = measure([str(path)])
    check_sums(sizes, sum(map(len, members.values())), path.stat().st_size)
    kinds = {row.keys[0]: row for row in rows(sizes, ("kind",))}
    # Zeros deflate to nothing, noise to itself: shares by size would give half to each.
    assert 100_000 < kinds["relocatable cubin"].download < 102_000
    assert kinds["host"].download < 1500
    assert kinds["archive directory"].installed == 0


def test_stored_members_are_measured_where_they_lie(tmp_path: Path) -> None:
    path = wheel(tmp_path / "stored.zip", {"lib.so": library()}, zipfile.ZIP_STORED)
    sizes = measure([str(path)])
    check_sums(sizes, len(library()), path.stat().st_size)
    assert all(leaf.download == leaf.installed for leaf in sizes.leaves if leaf.installed)


def test_members_of_archives_are_units(tmp_path: Path) -> None:
    path = tmp_path / "lib.a"
    path.write_bytes(archive_builder.gnu([("one.o", library()), ("two.cubin", cubin("two"))]))
    sizes = measure([str(path)])
    check_sums(sizes, path.stat().st_size)
    assert {"one.o", "two.cubin"} <= {*by_level(sizes, "unit")}
    assert by_level(sizes, "function")["two"] > len(CODE)


def test_members_of_a_thin_archive_are_files(tmp_path: Path) -> None:
    (tmp_path / "one.cubin").write_bytes(cubin("one"))
    path = tmp_path / "thin.a"
    path.write_bytes(archive_builder.thin(["one.cubin", "gone.o"], [len(cubin("one")), 9]))
    sizes = measure([str(path)])
    check_sums(sizes, path.stat().st_size + len(cubin("one")))
    assert [name for name, _ in sizes.unreadable] == [f"{path}:gone.o"]


@pytest.mark.parametrize("seed", range(12))
def test_cubins_are_counted_as_the_rules_say(seed: int) -> None:
    make = random.Random(seed)
    made = Cubin()
    names = make.sample(["k", "a.k", "_Z1fIiEvv", "long_name", "name", "x$y"], make.randint(1, 5))
    numbers = [made.function(name, code=bytes(16 * make.randint(1, 40))) for name in names]
    for number in numbers[1:]:
        made.call(numbers[0], number)
    for name in names[::2]:
        made.section(Section(f".nv.constant0.{name}", 0x70000064, bytes(make.randint(1, 99))))
    made.section(Section(".debug_line", 1, bytes(33)))
    made.section(Section(".nv.merc.debug_line", 1, bytes(7)))
    made.section(Section(f".nv.capmerc.text.{names[0]}", 1, bytes(50)))
    made.section(Section("unknown", 1, bytes(5)))
    data = made.build()
    ledger = Ledger()
    size = len(data)
    assert ledger.measure([Payload(data, 0, size, size, 0, 2, 0, size, 0, False)]) != [None]
    functions = [name.decode() for name in ledger.functions()]
    groups = array("i", range(len(functions))).tobytes()
    found = {
        (functions[row.function_group], PARTS[row.part]): row.unpacked
        for row in ledger.sums(bytes(4), groups, by_part=True)
        if row.unpacked == row.installed
    }
    assert found == size_reference.cubin_bytes(data)


def test_ptx_is_cut_at_the_bodies_of_functions(tmp_path: Path) -> None:
    path = tmp_path / "a.ptx"
    path.write_bytes(PTX_TEXT)
    sizes = measure([str(path)])
    check_sums(sizes, len(PTX_TEXT))
    found = {row.keys[0]: row.unpacked for row in rows(sizes, ("function",))}
    entry_text = PTX_TEXT[PTX_TEXT.index(b".visible") : PTX_TEXT.index(b"\n.func")]
    device_text = PTX_TEXT[PTX_TEXT.index(b".func (") : PTX_TEXT.index(b"\n\0\0")]
    assert found["one()"] == len(entry_text)
    assert found["two"] == len(device_text)
    assert by_level(sizes, "part")["padding"] == 2


def test_braces_in_comments_and_strings_of_ptx_end_no_function(tmp_path: Path) -> None:
    entry_text = b'.visible .entry one()\n{\n  /* } */ .pragma "}\\"}"; // }\n  ret;\n}'
    device_text = b".func two()\n{ ret; }"
    path = tmp_path / "a.ptx"
    path.write_bytes(
        b'//\n.version 8.0\n.target sm_80\n/* .entry three { */\n.file 1 "a{b.cu"\n'
        b".extern .func far;\n" + entry_text + b"\n" + device_text + b"\n/* {"
    )
    sizes = measure([str(path)])
    check_sums(sizes, path.stat().st_size)
    found = {row.keys[0]: row.unpacked for row in rows(sizes, ("function",))}
    assert (found["one"], found["two"]) == (len(entry_text), len(device_text))
    assert "three" not in found


def test_words_before_the_name_of_a_function_in_ptx(tmp_path: Path) -> None:
    before = {
        "one": b".func .attribute(.unified(1, 2)) (.param .b32 r) ",
        "two": b".func /* far; { */ (.param .b32 r) // )\n",
        "three": b".visible .func(.param .b32 r)",
    }
    texts = {
        name: words + name.encode() + b" (.param .b32 p) /* ; */\n{ ret; }"
        for name, words in before.items()
    }
    path = tmp_path / "a.ptx"
    path.write_bytes(b"//\n.version 8.0\n.target sm_80\n" + b"\n".join(texts.values()))
    sizes = measure([str(path)])
    check_sums(sizes, path.stat().st_size)
    found = {row.keys[0]: row.unpacked for row in rows(sizes, ("function",))}
    assert {name: found.get(name) for name in texts} == {n: len(t) for n, t in texts.items()}


def test_each_of_many_functions_has_its_bytes(tmp_path: Path) -> None:
    names = [f"function_{number}" for number in range(1200)]
    path = tmp_path / "a.cubin"
    path.write_bytes(cubin(*names))
    sizes = measure([str(path)])
    check_sums(sizes, path.stat().st_size)
    parts = {row.keys: row.unpacked for row in rows(sizes, ("function", "part"))}
    assert [parts[name, "code"] for name in names] == [len(CODE)] * len(names)


def test_a_cubin_without_section_headers_is_its_header_and_the_rest(tmp_path: Path) -> None:
    image = bytearray(cubin("a"))
    image[40:48] = bytes(8)
    image[60:64] = bytes(4)
    path = tmp_path / "a.cubin"
    path.write_bytes(image)
    sizes = measure([str(path)])
    check_sums(sizes, len(image))
    assert by_level(sizes, "part") == {"headers": 64, "other": len(image) - 64}


def test_a_selection_counts_what_was_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "lib.so"
    path.write_bytes(library())
    sizes = measure([str(path)])
    chosen = rows(sizes, ("target",), Selection(arch="sm_90"))
    assert [row.keys for row in chosen] == [("sm_90a",)]
    found = rows(sizes, ("function",), Selection(match=re.compile("^f<|void f<")))
    assert {row.keys[0] for row in found} == {"void f<(int)>()", "void f<(float)>()"} or len(
        found
    ) == 2


def test_a_constant_that_looks_like_a_container_is_host_code(tmp_path: Path) -> None:
    mark = container(b"")[:8]
    path = tmp_path / "tool"
    path.write_bytes(host_object([(".rodata", mark + b"\xff" * 64 + mark + b"\x10" + bytes(30))]))
    sizes = measure([str(path)])
    assert {leaf.kind for leaf in sizes.leaves} == {"host"}
    check_sums(sizes, path.stat().st_size)


def cut_wheel(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-30])


def lie_about_size(path: Path) -> None:
    data = bytearray(path.read_bytes())
    place = data.rindex(b"PK\x01\x02")
    size = int.from_bytes(data[place + 24 : place + 28], "little")
    data[place + 24 : place + 28] = (size - 9).to_bytes(4, "little")
    path.write_bytes(data)


def encrypt(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[data.rindex(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)


def overlap(path: Path) -> None:
    data = bytearray(path.read_bytes())
    first = data.index(b"PK\x01\x02")
    second = data.index(b"PK\x01\x02", first + 1)
    data[second + 42 : second + 46] = data[first + 42 : first + 46]
    path.write_bytes(data)


def break_contents(path: Path) -> None:
    data = bytearray(path.read_bytes())
    place = data.index(b"PK\x01\x02") - 200
    data[place] ^= 0xFF
    path.write_bytes(data)


@pytest.mark.parametrize("damage", [cut_wheel, lie_about_size, encrypt, overlap, break_contents])
def test_damaged_wheels_are_rows_and_status_2(
    damage: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = wheel(tmp_path / "bad.whl", {"one.txt": b"one" * 99, "lib.so": library()})
    assert callable(damage)
    damage(path)
    assert main([str(path), "--json"]) == 2
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert document["total"]["download"] == path.stat().st_size
    (kinds,) = [table for table in document["tables"] if table["by"] == ["kind"]]
    assert any(row["kind"] == "unreadable" for row in kinds["rows"])
    assert err.startswith("pylink size: ")
    assert len(err.splitlines()) == len(document["unreadable"])


def test_damaged_entries_are_rows_with_their_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = entry(cubin("a"), 80)
    path = tmp_path / "lib.so"
    path.write_bytes(
        host_object(
            [
                (
                    ".nv_fatbin",
                    container(
                        good,
                        entry(cubin("b"), 90, mode="zstd", stored=b"\x28\xb5\x2f\xfd" + bytes(60)),
                        entry(b"no cubin" * 9, 86),
                        entry(cubin("c"), 75, size=1 << 40),
                    ),
                )
            ]
        )
    )
    sizes = measure([str(path)])
    check_sums(sizes, path.stat().st_size)
    assert sum(leaf.kind == "unreadable" for leaf in sizes.leaves) == 3
    assert len(sizes.unreadable) == 3
    assert main([str(path)]) == 2
    assert "unreadable" in capsys.readouterr().out


def scrambled(payload: bytes, sm: int, *, full: int) -> bytes:
    """An entry of LTO-IR by nvcc: what is stored is not a frame, and its header has a key."""
    made = bytearray(entry(b"", sm, kind=LTOIR, mode="zstd", stored=payload, stated=full))
    made[48:56] = struct.pack("<Q", 0xEEB57FE6)
    return bytes(made)


def test_scrambled_code_is_one_piece_of_the_size_that_is_stated(tmp_path: Path) -> None:
    good = entry(cubin("a"), 80)
    code = scrambled(bytes(range(200)), 90, full=1000)
    path = tmp_path / "a.o"
    path.write_bytes(host_object([("__nv_relfatbin", container(good, code))]))
    sizes = measure([str(path)])
    check_sums(sizes, path.stat().st_size)
    assert sizes.unreadable == []
    (leaf,) = [leaf for leaf in sizes.leaves if leaf.kind == "LTO-IR"]
    assert (leaf.target, leaf.codec, leaf.installed, leaf.unpacked) == (
        "compute_90",
        "zstd",
        len(code),
        1000,
    )
    assert main([str(path)]) == 0
    for level in LEVELS:
        assert sum(row.unpacked for row in rows(sizes, (level,))) == sum(
            leaf.unpacked for leaf in sizes.leaves
        )


def test_scrambled_code_has_limits_like_any_other(tmp_path: Path) -> None:
    path = tmp_path / "a.fatbin"
    path.write_bytes(container(scrambled(bytes(64), 90, full=1 << 40)))
    sizes = measure([str(path)])
    assert [leaf.kind for leaf in sizes.leaves] == ["container header", "unreadable"]
    assert "when decompressed" in sizes.unreadable[0][1]


def test_a_link_in_an_archive_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "secret.so"
    target.write_bytes(library())
    path = tmp_path / "links.zip"
    with zipfile.ZipFile(path, "w") as archive:
        info = zipfile.ZipInfo("link.so")
        info.external_attr = 0o120777 << 16
        archive.writestr(info, str(target))
    sizes = measure([str(path)])
    check_sums(sizes, len(str(target)), path.stat().st_size)
    assert {leaf.kind for leaf in sizes.leaves} == {"host", "archive directory"}


def test_names_are_escaped_in_every_form(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = "=cmd|\x1b[31m<b>`x`\n"
    path = wheel(tmp_path / "evil.zip", {evil: library(), "+plus": b"1"})
    for words in (["--by", "file"], ["--by", "file", "--markdown"], ["--by", "file", "--csv"]):
        assert main([str(path), *words]) == 0
        out = capsys.readouterr().out
        assert "\x1b" not in out
        if "--markdown" in words:
            assert "<b>" not in out
            assert "=cmd\\|" in out
        if "--csv" in words:
            cells = [row[0] for row in csv.reader(io.StringIO(out))]
            assert not any(cell.startswith(("=", "+", "-", "@")) for cell in cells)
    assert main([str(path), "--json"]) == 0
    assert evil in {file["name"] for file in json.loads(capsys.readouterr().out)["files"]}


def test_tables_of_levels_and_their_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "lib.so"
    path.write_bytes(library())
    assert main([str(path), "--by", "target,kind", "--top", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split()[:3] == ["target", "kind", "entries"]
    assert any("more)" in line for line in lines)
    assert main([str(path), "--top", "9"]) == 0
    screen = capsys.readouterr().out
    assert "download" not in screen
    assert "f<>" in screen
    assert max(map(len, screen.splitlines())) <= 100
    assert main([str(path), "--top", "0"]) == 0  # all of them
    assert capsys.readouterr().out == screen
    assert main([str(path), "--by", "colour"]) == 2
    assert main([str(tmp_path / "gone")]) == 2


def test_a_folder_is_all_files_in_it(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "lib.so").write_bytes(library())
    (tmp_path / "readme").write_bytes(b"text")
    (tmp_path / "link.so").symlink_to(tmp_path / "sub" / "lib.so")
    sizes = measure([str(tmp_path)])
    check_sums(sizes, len(library()) + 4)
    assert len(sizes.files) == 2
    assert all(level in LEVELS for level in INNER)


def test_small_files_do_not_become_large_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Zeros that Zstandard made a thousand times as small count until there are too many."""
    monkeypatch.setattr("pylink.size.entries.MOST_BYTES", 1 << 20)
    bomb = entry(bytes(1 << 20), 80, kind=PTX, mode="zstd")
    path = tmp_path / "bomb.fatbin"
    path.write_bytes(container(*[bomb] * 50))
    sizes = measure([str(path)])
    check_sums(sizes, path.stat().st_size)
    read = [leaf for leaf in sizes.leaves if leaf.kind != "unreadable" and leaf.target]
    assert 0 < len(read) < 50
    assert sum(leaf.unpacked for leaf in read) <= (1 << 20) + 100 * path.stat().st_size
    assert "bytes when decompressed" in sizes.unreadable[0][1]


@pytest.mark.parametrize("compressible", [False, True])
def test_a_large_member_reads_as_if_it_were_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compressible: bool
) -> None:
    source = random.Random(3)
    data = b"".join(
        bytes(source.randrange(9000)) if compressible else source.randbytes(9000) for _ in range(90)
    )
    path = str(wheel(tmp_path / "large.zip", {"one.so": data}))
    opened = []
    for kept in (1 << 20, 0):
        monkeypatch.setattr(zips, "_MOST_KEPT", kept)
        monkeypatch.setattr(zips, "_STRETCH_SIZE", 50_000)
        (member,) = zips.list_members(FileSource(path))
        opened.append(zips.open_member(FileSource(path), member, lambda _: True))
    whole, pieces = opened
    assert isinstance(whole, MemorySource)
    assert isinstance(pieces, zips.Inflated)
    for _ in range(200):
        start, size = source.randrange(len(data) + 9), source.randrange(200_000)
        assert pieces.read(start, size) == whole.read(start, size) == data[start : start + size]
        assert pieces.download(start, start + size) == whole.download(start, start + size)
    assert pieces.download(0, len(data)) == member.packed


def test_a_large_member_of_a_wheel_is_not_in_memory_as_a_whole(tmp_path: Path) -> None:
    """It has 120 MB; the process takes about half as much."""
    code = container(entry(cubin("a"), 80))
    large = host_object([(".nv_fatbin", code), (".rodata", bytes(120_000_000))])
    path = wheel(tmp_path / "large.whl", {"lib.so": large})
    # The peak of a process that was forked, which rusage says, is that of its parent.
    script = (
        "import re, sys\nfrom pylink.command.sizes import main\nstatus = main(sys.argv[1:])\n"
        "text = open('/proc/self/status').read()\n"
        "print(status, re.search(r'VmHWM:\\s+(\\d+)', text)[1], file=sys.stderr)"
    )
    command = [sys.executable, "-c", script, "--json", "--by", "kind", str(path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    status, peak = map(int, ran.stderr.split())
    assert status == 0
    assert peak < 90_000
    rows = json.loads(ran.stdout)["tables"][0]["rows"]
    assert sum(row["installed"] for row in rows) == len(large)
