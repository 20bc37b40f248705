"""The index of a build tree: what is in it, and that a run reads only what changed."""

from __future__ import annotations

import errno
import fcntl
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from helpers import demo
from helpers.archive_builder import thin
from helpers.dedup_cubin import TEMPLATE, Cubin
from helpers.dedup_cubin import Section as Planned
from helpers.fleet_index import read_state, run
from helpers.fleet_reference import bytes_of, plant, sections, settle, unit

from pylink._native.census import Census
from pylink.command.cli import main
from pylink.fleet import compaction, fragment, parts, state, updates, walk
from pylink.fleet.columns import MOST_RUNS, SECTIONS
from pylink.fleet.database import Database
from pylink.fleet.digests import add_digests, find_hasher, list_hashed
from pylink.fleet.engine import Local
from pylink.fleet.fragment import OBJECT_SIZE, FragmentRows
from pylink.fleet.index import BrokenIndex, Index
from pylink.fleet.locks import BusyIndex, Writing
from pylink.fleet.parquet import pack_table

if TYPE_CHECKING:
    from pylink._native.sectionindex import Columns

GOLDEN = Path(__file__).parents[1] / "golden"

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def arena_of(cubins: list[bytes]) -> tuple[bytes, bytes]:
    extents, at = b"", 0
    for cubin in cubins:
        extents += at.to_bytes(8, "little") + len(cubin).to_bytes(8, "little")
        at += len(cubin)
    return b"".join(cubins), extents


def rows(index: Index, name: str) -> list[dict[str, Any]]:
    tables = [
        pq.read_table(index.fragment_path(fragment, f"{name}.parquet"))
        for fragment in index.fragments
    ]
    found: list[dict[str, Any]] = pa.concat_tables(tables).to_pylist()
    return found


def table_of(native: Columns) -> list[dict[str, Any]]:
    """The sections of a call of the native reader, as a reader of Parquet has them."""
    found = FragmentRows(1 << 40)
    found.add_cubins(range(len(native[0]) // OBJECT_SIZE), None, native)
    table = pq.read_table(pa.BufferReader(pack_table(SECTIONS, found.sections())))
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return Index.open_or_make(tmp_path / "index")


def cubins_of_every_size() -> Iterator[bytes]:
    """Sections around the sizes at which XXH3 changes its way of hashing."""
    source = random.Random(1)
    sizes = [0, 1, 3, 4, 8, 9, 16, 17, 32, 33, 64, 65, 96, 97, 128, 129, 160, 239, 240, 241]
    sizes += [255, 256, 257, 511, 512, 1023, 1024, 1025, 4096, 65537]
    yield Cubin([Planned(f".x{n}", source.randbytes(n)) for n in sizes], []).image()
    for _ in range(5):
        many = [source.randrange(3000) for _ in range(30)]
        yield Cubin([Planned(f".y{n}.z", source.randbytes(n)) for n in many], []).image()


def test_sections_are_those_of_a_plain_reading() -> None:
    cubins = [path.read_bytes() for arch in ("sm_100", "sm_90a") for path in demo.cubins(arch)]
    cubins += [*cubins_of_every_size(), TEMPLATE.image(), unit("a", "b")]
    # Plain and Mercury sections share bytes.
    cubins.append((GOLDEN / "100" / "calls" / "exec.nvlink.cubin").read_bytes())
    arena, extents = arena_of(cubins)
    assert find_hasher()  # else the fast way is not what is tested
    native = list_hashed(arena, extents, 1 << 40)
    assert add_digests(arena, extents, 1 << 40, native) == native
    table = table_of(native)
    expected = [(i, section) for i, cubin in enumerate(cubins) for section in sections(cubin)]
    assert len(table) == len(expected)
    for row, (number, fields) in zip(table, expected, strict=True):
        name = row["family"] + ("." + row["suffix"] if row["suffix"] else "")
        assert (row["object"], row["number"], name) == (
            number + (1 << 40),
            fields.number,
            fields.name,
        )
        assert (row["size"], row["stored"], row["own"]) == (
            fields.size,
            len(fields.data),
            fields.own_bytes,
        )
        assert row["digest"] == fields.digest


@pytest.mark.parametrize(
    ("name", "family", "suffix"),
    [
        (".text.f", ".text", "f"),
        (".nv.capmerc.text.f.g", ".nv.capmerc.text", "f.g"),
        (".nv.merc.rela.text.f", ".nv.merc.rela.text", "f"),
        (".rela.debug_frame", ".rela.debug_frame", ""),
        (".rel.nv.constant0.f", ".rel.nv.constant0", "f"),
        (".nv.constant3", ".nv.constant3", ""),
        (".nv.constant12.f", ".nv.constant12", "f"),
        (".nv.merc.nv.constant.user", ".nv.merc.nv.constant.user", ""),
        (".nv.merc.nv_debug_ptx_txt.77", ".nv.merc.nv_debug_ptx_txt", "77"),
        (".nv.shared.reserved.0", ".nv.shared.reserved.0", ""),
        (".nv.merc.debug_info", ".nv.merc.debug_info", ""),
        (".nv.global.init", ".nv.global.init", ""),
        (".relax.f", ".relax.f", ""),
        (".text", ".text", ""),
        (".text.", ".text", ""),
        (".nv.constant", ".nv.constant", ""),
        (".nv.constantx.f", ".nv.constantx.f", ""),
    ],
)
def test_a_name_is_a_family_and_what_differs(name: str, family: str, suffix: str) -> None:
    arena, extents = arena_of([Cubin([Planned(name, b"x")], []).image()])
    _, _, (_, families), (ends, suffixes) = list_hashed(arena, extents, 0)
    # Section names, symbol names, then the one asked for.
    assert families.startswith(b".shstrtab.strtab" + family.encode() + b".nv.merc.symtab")
    assert suffixes == suffix.encode()
    assert len(ends) == 8 * (3 if suffix else 2)


def test_a_tree_is_indexed_as_it_was_planted(tmp_path: Path, index: Index) -> None:
    planted = plant(tmp_path / "tree")
    done = run(index, planted.root)
    assert (done.files, done.read, done.gone) == (7, 7, 0)
    files = {row["file"]: row for row in rows(index, "files")}
    objects = rows(index, "objects")
    found = [(files[row["file"]]["name"], row["member"]) for row in objects]
    assert sorted(found) == sorted((file, member) for file, member, _, _ in planted.cubins)
    assert {row["kind"] for row in files.values()} == {
        "cubin",
        "archive",
        "host object",
        "other",
    }
    assert [row["name"] for row in files.values() if row["kind"] == "other"] == [
        "host/plain.o",
        "notes.txt",
    ]
    assert {row["sm"] for row in objects} == {100}
    listed = rows(index, "sections")
    total = sum(len(sections(cubin)) for _, _, _, cubin in planted.cubins)
    assert len(listed) == total == sum(row["sections"] for row in objects)


def test_the_same_tree_gives_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whenever, and by however many threads."""
    monkeypatch.setattr(parts, "PART_FILES", 2)
    planted = plant(tmp_path / "tree")
    made: list[dict[str, bytes]] = []
    for threads in (1, 1, 2, 3, 9):
        index = Index.open_or_make(tmp_path / str(len(made)))
        updates.update(index, [bytes(planted.root)], Local(threads))
        made.append(bytes_of(Path(index.directory)))
    assert made == [made[0]] * 5
    assert len(made[0]) == 3 * 4


def test_results_come_in_the_order_of_tasks() -> None:
    """And not much is begun before it is wanted, or after one failed."""
    begun = []

    def work(task: int) -> int:
        begun.append(task)
        time.sleep(0.01 if task % 2 else 0)
        if task == 20:
            raise ValueError("20")
        return task

    for threads in (1, 2, 5):
        begun.clear()
        results = Local(threads).map(work, iter(range(100)))
        for task in range(20):
            assert next(results) == task
            assert len(begun) <= task + 1 + threads
        with pytest.raises(ValueError, match="20"):
            next(results)
        assert len(begun) <= 21 + threads
        assert [*Local(threads).map(work, [])] == []
        assert [*Local(threads).map(work, [1])] == [1]


def test_only_what_changed_is_read_again(
    tmp_path: Path, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "PART_FILES", 3)
    planted = plant(tmp_path / "tree")
    run(index, planted.root)
    assert len(index.fragments) == 3
    before = bytes_of(Path(index.directory))
    assert run(index).read == 0
    assert bytes_of(Path(index.directory)) == before
    new = planted.root / "CMakeFiles/app.dir/new.cubin"
    new.write_bytes(unit("new"))
    changed = planted.root / "CMakeFiles/app.dir/b.cubin"
    times = changed.stat()
    changed.write_bytes(unit("changed", "kernel"))
    # Neither size nor time of change need tell; the system's own time does.
    os.utime(changed, ns=(times.st_atime_ns, times.st_mtime_ns))
    (planted.root / "lib/libmore.a").unlink()
    settle()
    done = run(index)
    assert (done.files, done.read, done.gone) == (7, 2, 1)
    after = bytes_of(Path(index.directory))
    assert {name: after[name] for name in before} == before
    assert [row["name"] for row in rows(index, "files")[7:]] == [
        "CMakeFiles/app.dir/b.cubin",
        "CMakeFiles/app.dir/new.cubin",
        "lib/libmore.a",
    ]
    assert run(index).read == 0


def test_what_changes_within_a_tick_is_read_again(
    tmp_path: Path, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "tree" / "a.cubin"
    file.parent.mkdir()
    file.write_bytes(unit("a"))
    monkeypatch.setattr("pylink.fleet.walk.TICK_NS", 3600 * 10**9)
    assert run(index, file.parent).read == 1
    assert run(index).read == 1  # it was younger than a clock can tell
    monkeypatch.undo()
    settle()
    assert run(index).read == 1
    assert run(index).read == 0


def test_a_file_that_is_replaced_while_it_is_read(
    tmp_path: Path, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "a.cubin").write_bytes(unit("a"))
    settle()
    whole = walk.walk

    def late(*arguments: Any) -> Any:
        found = whole(*arguments)
        (tree / "a.cubin").write_bytes(unit("another", "and", "more"))
        return found

    monkeypatch.setattr(updates, "walk", late)
    run(index, tree)
    monkeypatch.undo()
    assert rows(index, "objects")[0]["size"] == len(unit("another", "and", "more"))
    settle()
    assert run(index).read == 1
    assert run(index).read == 0


def test_members_of_thin_archives_are_looked_at_each_time(tmp_path: Path, index: Index) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "a.o").write_bytes(unit("a"))
    (tree / "lib.a").write_bytes(thin(["a.o"], [len(unit("a"))]))
    settle()
    assert run(index, tree).read == 2
    assert {row["kind"] for row in rows(index, "files")} == {"cubin", "thin archive"}
    assert run(index).read == 1


def test_a_folder_that_cannot_be_entered_loses_nothing(tmp_path: Path, index: Index) -> None:
    planted = plant(tmp_path / "tree")
    run(index, planted.root)
    shut = os.fsencode(planted.root / "lib")

    class Refused(Census):
        def walk(
            self, root: bytes, skipped: bytes, largest: int, youngest: int
        ) -> list[tuple[bytes, int]]:
            assert super().walk(root, shut, largest, youngest) == []
            return [(shut, errno.EACCES)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "Census", Refused)
        done = run(index)
    assert done.closed == [(shut, "Permission denied")]
    assert done.gone == 0
    assert done.files == 7
    assert run(index).read == 0


def test_an_index_inside_its_tree_is_not_indexed(tmp_path: Path) -> None:
    planted = plant(tmp_path)
    index = Index.open_or_make(tmp_path / "index")
    assert run(index, planted.root).files == 7
    assert run(index).files == 7


def test_an_index_inside_its_tree_is_known_by_any_name(tmp_path: Path) -> None:
    """By one over a link, to the tree or to the index; in a walk and in a list."""
    tree = plant(tmp_path / "real/tree").root
    (tmp_path / "link").symlink_to(tmp_path / "real")
    index = Index.open_or_make(tmp_path / "link/tree/index")
    assert run(index, tree).read == 7
    assert run(index).read == 0
    assert run(index, names=[os.fsencode(index.directory), bytes(tree / "index")]).read == 0
    assert run(index, tmp_path / "link/tree").files == run(index, tree).files


def test_a_closed_folder_of_the_whole_system_loses_nothing() -> None:
    """Names of files and of folders are put together the same way below any root."""
    unseen = walk.Files.of([walk.TreeFile(b"/", b"proc/1/x", walk.Stamp(1, 1, 1, 1))])
    tree = walk.Tree(parts.NO_FILES, unseen, [(b"/proc/1", "Permission denied")])
    assert updates._find_gone(tree, [b"/"]).rows == 0


def test_a_file_system_without_locks_is_told(
    index: Index, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Nobody else writes there."""

    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    assert main(["dedup", "index", "-o", index.directory]) == 1
    shown = capfd.readouterr().err
    assert shown == f"pylink dedup index: {index.directory}/lock: No locks available\n"


def test_links_that_lead_up_are_not_followed(tmp_path: Path, index: Index) -> None:
    planted = plant(tmp_path / "tree")
    (planted.root / "up").symlink_to(planted.root)
    (planted.root / "nowhere.o").symlink_to("not-there")
    (planted.root / "again.cubin").symlink_to("CMakeFiles/app.dir/a.cubin")
    os.mkfifo(planted.root / "pipe.o")
    assert run(index, planted.root).files == 8


def test_two_runs_do_not_write_at_once(index: Index, tmp_path: Path) -> None:
    with Writing(index.directory), pytest.raises(BusyIndex, match="another run"):
        run(index, tmp_path)


def test_what_is_no_index_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(BrokenIndex, match="is not an index"):
        Index.open_or_make(tmp_path)
    with pytest.raises(BrokenIndex, match="make one with"):
        Index(tmp_path)
    made = Index.open_or_make(tmp_path / "index")
    (Path(made.directory) / "index.json").write_text('{"format": 0}')
    with pytest.raises(BrokenIndex, match="another release"):
        Index(made.directory)


INTERRUPTED = """
import os, sys, time
from pathlib import Path
import signal
from pylink.fleet import parts, updates
from pylink.fleet.engine import Local
from pylink.fleet.index import Index
parts.PART_FILES = 1
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
index = Index.open_or_make(Path(sys.argv[1]))
updates.update(index, [os.fsencode(sys.argv[2])], Local(2), lambda *_: time.sleep(0.2))
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_ended_leaves_what_it_finished(
    tmp_path: Path, number: signal.Signals
) -> None:
    planted = plant(tmp_path / "tree")
    folder = tmp_path / "index"
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(folder), planted.root], stderr=subprocess.DEVNULL
    )
    while not folder.is_dir() or len(list(folder.glob("fragments/0*"))) < 2:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(number)
    assert process.wait() != 0
    index = Index(folder)
    done = len(index.fragments)
    assert 2 <= done < 7
    # Half a fragment, as of a process that was killed while it wrote one.
    unfinished = folder / "fragments/.unfinished000001-000006"
    shutil.copytree(index.fragment_path(index.fragments[0]), unfinished)
    (unfinished / "sections.parquet").unlink()
    assert len(read_state(index)) == done
    again = run(index, planted.root)
    assert (again.files, again.read) == (7, 7 - done)
    assert not unfinished.exists()
    names = sorted(row["name"] for row in rows(index, "files"))
    assert names == sorted(set(names))
    assert len(names) == 7


def test_many_small_fragments_become_one(
    tmp_path: Path, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "MANY_FRAGMENTS", 4)
    planted = plant(tmp_path / "tree")
    run(index, planted.root)
    for number in range(9):
        (planted.root / f"{number}.cubin").write_bytes(unit(f"new{number}"))
        (planted.root / f"{number - 2}.cubin").unlink(missing_ok=True)
        (planted.root / "notes.txt").write_bytes(b"%d" % number)
        settle()
        run(index)
        assert len(index.fragments) < 4
    assert index.fragments[0].startswith("000001-000000+")
    changed = walk.walk(Census(), [bytes(planted.root)]).changed
    there = [(file.root, file.path) for file in changed.files()]
    assert sorted(read_state(index)) == there
    fresh = Index.open_or_make(tmp_path / "fresh")
    run(fresh, planted.root)
    listed = rows(index, "files")
    assert sum(row["kind"] == "gone" for row in listed) == 7
    # Of a file that changed after the last joining two rows may be there.
    kept = {row["name"]: row["size"] for row in listed if row["kind"] != "gone"}
    assert kept == {row["name"]: row["size"] for row in rows(fresh, "files")}
    assert run(index).read == 0


def test_rows_that_no_longer_count_are_removed(
    tmp_path: Path, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "SMALL_FRAGMENT", 1)
    tree = tmp_path / "tree"
    tree.mkdir()
    for round in range(6):
        for number in range(5):
            (tree / f"{number}.cubin").write_bytes(unit(f"f{round}", f"g{number}"))
        settle()
        assert run(index, tree).read == 5
        assert len(rows(index, "files")) <= 11
        assert len(rows(index, "objects")) == len(rows(index, "files"))
    assert run(index).read == 0


def test_a_fragment_that_took_the_place_of_others_counts_alone(
    tmp_path: Path, index: Index
) -> None:
    planted = plant(tmp_path / "tree")
    run(index, planted.root)
    before = rows(index, "sections")
    saved = tmp_path / "saved"
    shutil.copytree(index.fragment_path(index.fragments[0]), saved)
    compaction.replace_fragments(
        index, index.fragments, compaction.find_current(index, index.fragments)
    )
    assert index.fragments == ["000001-000000+000001-000000.1"]
    assert rows(index, "sections") == before
    # As if the process had been killed before it removed the old one.
    shutil.copytree(saved, Path(index.directory) / "fragments/000001-000000")
    assert rows(index, "sections") == before
    assert index.next_run() == 2
    run(index)
    assert len(list((Path(index.directory) / "fragments").iterdir())) == 1


def test_an_index_has_numbers_for_no_more_runs(tmp_path: Path, index: Index) -> None:
    planted = plant(tmp_path / "tree")
    run(index, planted.root)
    last = index.fragment_path(f"{MOST_RUNS - 2:06d}-000000")
    os.rename(index.fragment_path(index.fragments[0]), last)
    (planted.root / "new.cubin").write_bytes(unit("new"))
    assert run(index).read == 1
    Database().add(index)
    (planted.root / "newer.cubin").write_bytes(unit("newer"))
    with pytest.raises(BrokenIndex, match="no run number is left: remove the index"):
        run(index)


def test_a_fragment_has_room_for_no_more_objects_than_numbers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, index: Index
) -> None:
    planted = plant(tmp_path / "tree")
    monkeypatch.setattr(fragment, "MOST_ROWS", 3)
    with pytest.raises(OverflowError, match="at most 3"):
        run(index, planted.root)
