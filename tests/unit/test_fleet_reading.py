"""The native reader of cubins, beside the one of arenas, and what it leaves to a closer look."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from helpers import demo
from helpers.archive_builder import gnu, thin
from helpers.dedup_cubin import Cubin
from helpers.dedup_cubin import Section as Planned
from helpers.fatbin_builder import container, entry, host_object
from helpers.fleet_reference import plant, settle, unit
from helpers.privileges import ordinary_user

import pylink
from pylink._native.cubinfiles import read_cubins
from pylink.fleet import fragment
from pylink.fleet.digests import find_hasher, list_hashed
from pylink.fleet.fragment import NATIVE_KINDS, make_fragment
from pylink.fleet.parts import LARGE_FILE, Part
from pylink.fleet.walk import Files, Stamp, TreeFile

pytest.importorskip("pyarrow")

CUBIN, OTHER, CLOSER = range(3)


def found(path: Path) -> TreeFile:
    return TreeFile(bytes(path.parent), os.fsencode(path.name), Stamp.of(path.stat()))


def kinds_of(*files: TreeFile) -> list[int]:
    return list(read_cubins(Files.of(files), LARGE_FILE, 0, find_hasher())[0])


def written(folder: Path, *contents: bytes) -> list[TreeFile]:
    files = []
    for number, data in enumerate(contents):
        (folder / f"{number}").write_bytes(data)
        files.append(found(folder / f"{number}"))
    return files


def damaged_cubins() -> list[bytes]:
    source = random.Random(5)
    cubins = []
    for path in demo.cubins("sm_100")[:4]:
        good = path.read_bytes()
        cubins += [good, good[: source.randrange(64, len(good))]]
        for _ in range(10):
            data = bytearray(good)
            at = source.choice([40, 58, 60, 62, int.from_bytes(good[40:48], "little")])
            data[at + source.randrange(8)] = source.randrange(256)
            cubins.append(bytes(data))
    names = [f".text.f{source.randrange(40)}.{n}" for n in range(500)]
    cubins.append(Cubin([Planned(name, name.encode()) for name in names], []).image())
    cubins.append(Cubin([Planned(".n" * 40_000, b"x"), Planned(".m" * 10, b"y")], []).image())
    return cubins


def test_files_are_listed_as_an_arena_is(tmp_path: Path) -> None:
    cubins = damaged_cubins()
    files = written(tmp_path, *cubins)
    told, columns = read_cubins(Files.of(files), LARGE_FILE, 1 << 50, find_hasher())
    # Even in these bytes the machine stays; who is cut off before the header ends is not a cubin.
    assert list(told) == [CUBIN] * len(cubins)
    extents, at = b"", 0
    for cubin in cubins:
        extents += at.to_bytes(8, "little") + len(cubin).to_bytes(8, "little")
        at += len(cubin)
    expected = list_hashed(b"".join(cubins), extents, 1 << 50)
    assert columns == expected
    assert len(columns[1][0]) // 8 > 1000


def test_what_is_no_plain_cubin_is_looked_at_closely(tmp_path: Path) -> None:
    cubin = unit("a")
    contents = {
        CLOSER: [
            gnu([("a.o", cubin)]),
            thin(["a.o"], [len(cubin)]),
            container(entry(cubin, 100)),
            host_object([("__nv_relfatbin", container(entry(cubin, 100)))]),
            cubin + bytes(LARGE_FILE),
        ],
        OTHER: [b"text", b"x", cubin[:19], b"\x7fELF", b".version 8.0\n", b"!<arch>", bytes(100)],
        CUBIN: [cubin, cubin[:64], cubin + bytes(LARGE_FILE - len(cubin))],
    }
    for kind, some in contents.items():
        assert kinds_of(*written(tmp_path, *some)) == [kind] * len(some)
    assert NATIVE_KINDS[CUBIN] == "cubin"
    assert NATIVE_KINDS[CLOSER] == ""


def test_what_changed_since_the_walk_is_looked_at_closely(tmp_path: Path) -> None:
    cubin = unit("a")
    names = ["grown", "cut", "gone", "pipe", "folder", "other", "same", "young", "empty", "null"]
    files = {}
    for name in names:
        (tmp_path / name).write_bytes(cubin)
        files[name] = found(tmp_path / name)
    files["young"] = replace(files["young"], stamp=files["young"].stamp.without_times())
    settle()
    (tmp_path / "grown").write_bytes(cubin + b"x")
    (tmp_path / "cut").write_bytes(cubin[:-1])
    (tmp_path / "empty").write_bytes(b"")
    for name in ("gone", "pipe", "folder", "other", "null"):
        (tmp_path / name).unlink()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "other").write_bytes(cubin)
    (tmp_path / "null").symlink_to("/dev/zero")
    told = dict(zip(names, kinds_of(*files.values()), strict=True))
    assert {name for name, kind in told.items() if kind == CUBIN} == {"same", "young"}
    assert set(told.values()) == {CUBIN, CLOSER}
    # And who looks closely says what each has become.
    made = make_fragment(Part(1, 0, Files.of(files.values()))).tables
    kinds = dict(zip(names, rows_of(made["files"], "kind"), strict=True))
    for name in ("gone", "folder", "pipe", "null"):
        assert kinds.pop(name) == "unreadable", name
    assert kinds.pop("empty") == "other"
    assert set(kinds.values()) == {"cubin"}


def rows_of(table: bytes, name: str) -> list[object]:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows: list[object] = pq.read_table(pa.BufferReader(table))[name].to_pylist()
    return rows


def test_what_may_not_be_read_is_looked_at_closely(tmp_path: Path) -> None:
    (file,) = written(tmp_path, unit("a"))
    os.chmod(file.full_path, 0)
    with ordinary_user():
        assert kinds_of(file) == [CLOSER]


def test_a_fragment_is_the_same_without_the_function_of_xxhash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then all goes the long way; rows come in another order there, with other numbers."""
    planted = plant(tmp_path / "tree")
    files = [found(path) for path in sorted(planted.root.rglob("*")) if path.is_file()]
    tables = []
    for address in (find_hasher(), 0):
        monkeypatch.setattr(fragment, "find_hasher", lambda: address)  # noqa: B023 -- called in this round
        made = make_fragment(Part(3, 4, Files.of(files))).tables
        names = [("objects", "file"), ("objects", "member"), ("sections", "digest")]
        tables.append([made["files"], *(sorted(rows_of(made[t], c), key=repr) for t, c in names)])
    assert tables[0] == tables[1]


def test_columns_of_files_go_together() -> None:
    files = Files.of([TreeFile(b"/", b"x", Stamp(1, 0, 0, 0))])
    assert read_cubins(Files.of([]), 10, 0, 0)[0] == b""
    assert read_cubins(files, 10, 0, 0)[0] == bytes([CLOSER])
    wrong: list[tuple[Files, type[Exception]]] = [
        (files._replace(stamps=b""), ValueError),
        (files._replace(stamps=bytes(33)), ValueError),
        (files._replace(ends=bytes(8)), ValueError),
        (files._replace(root_numbers=bytes(3)), ValueError),
        (files._replace(root_names=[]), IndexError),
        (files._replace(root_numbers=b"\xff" * 4), IndexError),
        (files._replace(text=b""), IndexError),
        (files._replace(ends=bytes(7) + b"\x80" + bytes(8)), IndexError),
    ]
    for files, error in wrong:
        with pytest.raises(error):
            read_cubins(files, 10, 0, 0)
    with pytest.raises(ValueError, match="differ in length"):
        read_cubins(files, -1, 0, 0)
    negative = Files.of([TreeFile(b"/", b"x", Stamp(-1, 0, 0, 0))])
    assert read_cubins(negative, 10, 0, 0)[0] == bytes([CLOSER])


LOADED = """
import sys
from dataclasses import replace
from pylink.command.cli import main
main(["dedup", "index", *sys.argv[1:]])
heavy = ("pyarrow", "numpy", "pandas", "duckdb")
print([name for name in heavy if name in sys.modules])
"""


def test_an_index_is_made_without_heavy_packages(tmp_path: Path) -> None:
    """Loading one takes longer than reading thousands of objects."""
    planted = plant(tmp_path / "tree")
    described = tmp_path / "targets.json"
    described.write_text('{"all": ["tree/*"]}')
    words = [str(planted.root), "-o", str(tmp_path / "index"), "--targets", str(described)]
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", LOADED, *words],
            env={**os.environ, "PYTHONPATH": str(Path(pylink.__file__).parents[1])},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.splitlines()[-1] == "[]"
        (planted.root / "new.cubin").write_bytes(unit("new"))
        (planted.root / "notes.txt").unlink(missing_ok=True)
