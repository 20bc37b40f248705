"""Trees with damaged, endless and deceiving files: they cost little, and the others are indexed."""

from __future__ import annotations

import os
import random
import struct
import time
from pathlib import Path

import pytest
from helpers import demo
from helpers.archive_builder import gnu, thin
from helpers.fatbin_builder import container, entry, host_object
from helpers.fleet_reference import sections, unit

from pylink.command.cli import main
from pylink.fleet.database import Database
from pylink.fleet.engine import Local
from pylink.fleet.index import Index
from pylink.fleet.updates import update
from pylink.inspect import containers
from pylink.inspect.containers import UnreadableFile, parts

pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")

CUBIN = unit("f", "g")
TABLE = int.from_bytes(CUBIN[40:48], "little")


def indexed(tmp_path: Path, files: dict[str, bytes]) -> Database:
    """An index of a tree with these files and one that is whole."""
    tree = tmp_path / "tree"
    for name, data in {**files, "whole.cubin": CUBIN}.items():
        path = os.fsencode(tree) + b"/" + os.fsencode(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(os.fsdecode(path)).write_bytes(data)
    index = Index.open_or_make(tmp_path / "index")
    update(index, [os.fsencode(tree)], Local())
    database = Database()
    database.add(index)
    found = database.ask(
        "SELECT count(*) FROM sections JOIN objects USING (object) WHERE path = 'whole.cubin'"
    )
    assert found.rows == [(len(sections(CUBIN)),)]
    return database


def faults(database: Database) -> dict[str, str]:
    query = (
        "SELECT path, note FROM files WHERE note IS NOT NULL "
        "UNION ALL SELECT path, fault FROM objects WHERE fault IS NOT NULL"
    )
    return dict(database.ask(query).rows)


def changed(at: int, form: str, value: int, cubin: bytes = CUBIN) -> bytes:
    data = bytearray(cubin)
    struct.pack_into(form, data, at, value)
    return bytes(data)


def test_each_damage_has_its_reason(tmp_path: Path) -> None:
    header = TABLE + 64 * 3  # of the first section that is not a string table
    files = {
        "short": CUBIN[:30],
        "table": changed(40, "<Q", len(CUBIN) - 10),
        "count": changed(60, "<H", 0xFFF0),
        "entsize": changed(58, "<H", 63),
        "names": changed(62, "<H", 900),
        "name": changed(header, "<I", 0xFFFFFF),
        "range": changed(header + 24, "<Q", 2**64 - 4),
        "wraps": changed(header + 32, "<Q", 2**64 - 1),
        "extended": changed(60, "<H", 0, changed(TABLE + 32, "<Q", 2**63)),
    }
    found = faults(indexed(tmp_path, files))
    assert found == {
        "short": "it has no ELF header of a cubin",
        "table": "its section headers do not lie in the file",
        "count": "its section headers do not lie in the file",
        "entsize": "its section headers do not lie in the file",
        "names": "it has no section with the names of sections",
        "name": "section 3: its name does not lie in the section with names",
        "range": "section 3: its bytes do not lie in the file",
        "wraps": "section 3: its bytes do not lie in the file",
        "extended": "its section headers do not lie in the file",
    }


def overlapping(count: int, size: int, name: bytes) -> bytes:
    """A cubin in which `count` sections are all of the same `size` bytes, with the same name."""
    names = b"\0" + name + b"\0"
    body = names + bytes(size)
    at = 64 + len(body)
    ehdr = struct.pack(
        "<16sHHIQQQIHHHHHH", CUBIN[:16], 1, 190, 1, 0, 0, at, 0x6402, 64, 0, 0, 64, 0, 1
    )
    table = struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, count + 2, 0, 0, 0, 0)
    table += struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, 64, len(names), 0, 0, 1, 0)
    table += struct.pack("<IIQQQQIIQQ", 1, 1, 0, 0, 64 + len(names), size, 0, 0, 1, 0) * count
    return ehdr + body + table


def test_sections_that_overlap_are_not_hashed_over_and_over(tmp_path: Path) -> None:
    # Hashing these would take minutes: 100,000 times a megabyte; 100,000 names of 1,000 bytes.
    files = {
        "sum": overlapping(100_000, 1_000_000, b".x"),
        "names": overlapping(100_000, 10, b"n" * 1_000),
        "fair": overlapping(3, 1_000_000, b".x"),
    }
    start = time.process_time()
    found = faults(indexed(tmp_path, files))
    assert time.process_time() - start < 20
    assert found["sum"].endswith("have more than four times the bytes of the file")
    assert found["names"].endswith("have more bytes than the file")
    assert set(found) == {"sum", "names"}


def test_archives_that_lead_around_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containers, "MOST_MEMBERS", 500)
    files = {"self.a": thin(["self.a"] * 10)}
    # Each names the next ten times: all paths through these are more than any machine follows.
    files |= {f"chain{i}.a": thin([f"chain{i + 1}.a"] * 10) for i in range(14)}
    files["chain14.a"] = gnu([("x.o", CUBIN)])
    files["missing.a"] = thin(["not-there.o"])
    found = faults(indexed(tmp_path, files))
    assert found["self.a"].endswith("more than 16 archives in each other")
    assert found["chain0.a"].endswith("more than 500 members in all")
    assert found["missing.a"].endswith("No such file or directory")
    assert "chain14.a" not in found


def test_what_payloads_become_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containers, "MOST_BYTES", 3 * len(CUBIN))
    fatbin = container(entry(CUBIN, 100, mode="zstd"))
    assert len(list(parts("x", fatbin * 3))) == 3
    with pytest.raises(UnreadableFile, match="entry 0 is damaged"):
        list(parts("x", fatbin * 4))
    lying = container(entry(CUBIN, 100, mode="zstd", stated=1 << 33))
    monkeypatch.undo()
    with pytest.raises(UnreadableFile, match="8589934592 bytes when decompressed"):
        list(parts("x", lying))


def test_sections_of_a_host_object_that_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containers, "MOST_BYTES", 1_000_000)
    payload = container(entry(CUBIN + bytes(100_000), 100))
    data = host_object([("__nv_relfatbin", payload)] * 30)
    with pytest.raises(UnreadableFile, match="more than 1000000 bytes"):
        list(parts("x", data))


def test_a_file_of_holes_costs_its_beginning(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    with (tmp_path / "tree/holes").open("wb") as file:
        file.truncate(1 << 40)
    with (tmp_path / "tree/text").open("wb") as file:
        file.truncate(1 << 31)
    start = time.process_time()
    database = indexed(tmp_path, {})
    assert time.process_time() - start < 5
    rows = database.ask("SELECT path, kind FROM files ORDER BY path").rows
    assert rows == [("text", "other"), ("whole.cubin", "cubin")]


NAMES = ["new\nline", "\x1b[31mred", "\udcff\udcfe", "sp ace'quote\"", "über", "a;DROP TABLE x"]


def test_names_are_printed_safely(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    files = {f"{name}/{name}.cubin": CUBIN for name in NAMES}
    files |= {f"{name}.bad": changed(40, "<Q", 1 << 40) for name in NAMES}
    files["names.cubin"] = overlapping(1, 4, b".text.\xff\xfe\x1b[2J\n")
    database = indexed(tmp_path, files)
    found = database.ask("SELECT DISTINCT target FROM members").rows
    assert len(found) == len(NAMES) + 1
    capfd.readouterr()
    for question in ("targets", "faults", "contents", "repeats", "templates", "saving"):
        for form in ("--top=1000", "--csv", "--json"):
            assert main(["dedup", "ask", str(tmp_path / "index"), question, form]) == 0
            shown = capfd.readouterr().out
            if form == "--top=1000":
                assert shown.replace("\n", "").isprintable()
            shown.encode()
    assert main(["dedup", "ask", str(tmp_path / "index"), "files", "--plot", "/nowhere/a.svg"]) == 1
    assert capfd.readouterr().err.startswith("pylink dedup ask: /nowhere/a.svg: ")


@pytest.mark.parametrize("seed", range(3))
def test_damaged_files_of_all_kinds(tmp_path: Path, seed: int) -> None:
    source = random.Random(seed)
    whole = demo.cubins("sm_100")[0].read_bytes()
    kinds = {
        "cubin": whole,
        "fatbin": container(entry(whole, 100, mode="zstd"), entry(CUBIN, 100, mode="lz4")),
        "host": host_object([("__nv_relfatbin", container(entry(CUBIN, 100, mode="zstd")))]),
        "archive": gnu([("a.o", CUBIN), ("b.o", host_object([(".text", b"x")])), ("c.o", whole)]),
    }
    files = {}
    for number in range(150):
        name, data = source.choice([*kinds.items()])
        wrong = bytearray(data)
        for _ in range(source.randrange(1, 6)):
            wrong[source.randrange(len(wrong) if source.random() < 0.5 else 200)] = source.choice(
                [0, 0xFF, 0x7F, source.randrange(256)]
            )
        if source.random() < 0.2:
            del wrong[source.randrange(len(wrong)) :]
        files[f"{name}{number}"] = bytes(wrong)
    database = indexed(tmp_path, files)
    assert len(database.ask("SELECT file FROM files").rows) <= 151
    for _, reason in faults(database).items():
        assert reason.isprintable()
