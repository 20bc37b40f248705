"""Runs that are killed before each thing that they do to files, and what goes on beside them."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.fleet_index import made_index, run
from helpers.fleet_reference import bytes_of, plant, settle, unit

from pylink.command.cli import main
from pylink.fleet import compaction
from pylink.fleet.database import Database
from pylink.fleet.engine import Local
from pylink.fleet.index import SETTINGS_FILE, Index
from pylink.fleet.locks import BusyIndex, Writing
from pylink.fleet.updates import NothingToRead, update

pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")

# What Python is about to do to files, as its audit events call it; opening may be for reading.
EVENTS = ("os.mkdir", "os.link", "os.rename", "os.remove", "os.rmdir", "open")
WRITES = os.O_WRONLY | os.O_RDWR

ROWS = (
    "SELECT path, size, kind, note FROM files ORDER BY ALL",
    "SELECT path, member, entry, kind, sm, size, fault FROM objects ORDER BY ALL",
    "SELECT path, entry, number, name, stored, digest"
    " FROM sections JOIN objects USING (object) ORDER BY ALL",
    "SELECT target, path, place FROM members JOIN files USING (file) ORDER BY ALL",
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return plant(tmp_path / "tree").root


def rows(folder: Path) -> list[object]:
    """Everything that an index says."""
    database = Database()
    database.add(Index(folder))
    return [database.ask(query).rows for query in ROWS]


def survives(work: Callable[[], object], moment: int) -> bool:
    """Do something in another process, which is killed before it changes files that many times."""
    child = os.fork()
    if child == 0:
        moments = itertools.count()

        def kill(event: str, values: tuple[object, ...]) -> None:
            reads = event == "open" and not (isinstance(values[2], int) and values[2] & WRITES)
            if event in EVENTS and not reads and next(moments) == moment:
                os.kill(os.getpid(), signal.SIGKILL)

        status = 1
        try:
            sys.addaudithook(kill)
            work()
            status = 0
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL), status
    return status == 0


Change = Callable[[Path, Path], tuple[list[Path], str | None]]


def nothing(_tree: Path, folder: Path) -> tuple[list[Path], str | None]:
    shutil.rmtree(folder)
    return [_tree], None


def some(tree: Path, _folder: Path) -> tuple[list[Path], str | None]:
    (tree / "new.cubin").write_bytes(unit("new"))
    (tree / "notes.txt").unlink()
    return [], None


def another_description(tree: Path, folder: Path) -> tuple[list[Path], str | None]:
    """No file has changed, and the index had other targets."""
    for number, name in enumerate(("one.json", "two.json")):
        (tree.parent / name).write_text(f'{{"target {number}": ["tree/*"]}}')
    settle()
    update(Index(folder), [], Local(), targets=str(tree.parent / "one.json"))
    return [], str(tree.parent / "two.json")


@pytest.mark.filterwarnings("default")  # of forks beside the threads of packages
@pytest.mark.parametrize("change", [nothing, some, another_description])
@pytest.mark.parametrize("joins", [False, True])
def test_an_index_can_be_killed_at_any_moment(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Change, joins: bool
) -> None:
    """What the next run makes of it is an index as one that is made at once."""
    monkeypatch.setattr(compaction, "MANY_FRAGMENTS", 2 if joins else 16)
    whole = tmp_path / "whole"
    made_index(whole, tree)
    roots, targets = change(tree, whole)
    settle()

    def work(folder: Path, targets: str | None) -> None:
        update(
            Index.open_or_make(folder), [bytes(root) for root in roots], Local(), targets=targets
        )

    at_once = tmp_path / "at once"
    update(Index.open_or_make(at_once), [bytes(tree)], Local(), targets=targets)
    before = tmp_path / "before"
    update(
        Index.open_or_make(before),
        [bytes(tree)],
        Local(),
        targets=Index(whole).settings["targets"] if whole.exists() else None,
    )
    expected = {Index(folder).settings["targets"]: rows(folder) for folder in (before, at_once)}
    killed = tmp_path / "killed"
    for moment in itertools.count():
        shutil.rmtree(killed, ignore_errors=True)
        if whole.exists():
            shutil.copytree(whole, killed)
        if survives(lambda: work(killed, targets), moment):
            break
        work(killed, None)
        assert rows(killed) == expected[Index(killed).settings["targets"]], moment
        work(killed, targets)
        assert rows(killed) == rows(at_once), moment
        assert not [name for name in bytes_of(killed) if "unfinished" in name]
    assert moment > 5


@pytest.fixture
def index(tmp_path: Path, tree: Path) -> Index:
    return made_index(tmp_path / "index", tree)


def test_a_folder_of_which_all_files_went_is_still_indexed(index: Index, tree: Path) -> None:
    """Also one that had no file yet, and one with another name than text has."""
    odd = Path(os.fsdecode(b"\xff.tree"))
    empty = tree.parent / odd
    empty.mkdir()
    shutil.move(tree, tree.parent / "aside")
    tree.mkdir()
    assert run(index, tree, empty).gone == 7
    assert run(Index(index.directory)).files == 0
    shutil.rmtree(tree)
    shutil.move(tree.parent / "aside", tree)
    (empty / "one.cubin").write_bytes(unit("one"))
    settle()
    assert run(Index(index.directory)).read == 8


def test_a_run_of_no_folder_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "index")
    for _ in range(2):
        assert main(["dedup", "index", "-o", folder]) == 1
        shown = capfd.readouterr().err
        assert (
            shown == f"pylink dedup index: {folder}: nothing is indexed yet: "
            "name the directories to index\n"
        )


def test_a_question_keeps_the_files_that_it_found(
    index: Index, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until it ends; the next run removes what a run left for it."""
    database = Database()
    database.add(index)
    before = database.ask("SELECT count(*) FROM sections").rows
    monkeypatch.setattr(compaction, "MANY_FRAGMENTS", 2)
    (tree / "new.cubin").write_bytes(unit("new"))
    settle()
    run(index)
    assert len(index.fragments) == 1
    assert database.ask("SELECT count(*) FROM sections").rows == before
    assert rows(Path(index.directory)) != before
    assert len([*(Path(index.directory) / "fragments").iterdir()]) == 3
    del database
    run(index)
    assert len([*(Path(index.directory) / "fragments").iterdir()]) == 1


def test_a_run_knows_what_one_wrote_since_it_began(index: Index, tree: Path) -> None:
    """Who opened an index and had to wait for the lock may not go back to its settings."""
    described = tree.parent / "targets.json"
    described.write_text('{"all": ["tree/host/*"]}')
    early = Index(index.directory)
    update(index, [], Local(), targets=str(described))
    (tree / "host/new.cubin").write_bytes(unit("new"))
    settle()
    run(early)
    database = Database()
    database.add(Index(index.directory))
    told = database.ask("SELECT target, count(*) FROM members GROUP BY target").rows
    assert told == [("all", 3)]


def test_who_makes_the_same_index_at_once_is_told(tmp_path: Path, tree: Path) -> None:
    folder = tmp_path / "both"
    folder.mkdir()
    with Writing(folder), pytest.raises(BusyIndex, match="another run"):
        Index.open_or_make(folder)
    assert not (folder / SETTINGS_FILE).exists()
    with pytest.raises(NothingToRead):
        run(Index.open_or_make(folder))
    assert run(Index.open_or_make(folder), tree).files == 7
