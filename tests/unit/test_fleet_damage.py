"""Indexes that somebody damaged, trees that change under a run, disks that are full."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from helpers.fleet_index import made_index, run
from helpers.fleet_reference import bytes_of, plant, settle, unit

from pylink.command.cli import main
from pylink.fleet import index as index_module
from pylink.fleet import updates
from pylink.fleet.compaction import find_current, replace_fragments
from pylink.fleet.database import Database
from pylink.fleet.index import FORMAT, SETTINGS_FILE, SUMS, BrokenIndex, Index
from pylink.fleet.walk import walk

pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return plant(tmp_path / "tree").root


@pytest.fixture
def index(tmp_path: Path, tree: Path) -> Index:
    return made_index(tmp_path / "index", tree)


def of_a_fragment(index: Index) -> Iterator[Path]:
    yield from sorted(Path(index.fragment_path(index.fragments[0])).iterdir())


def test_no_byte_of_a_fragment_changes_unnoticed(index: Index) -> None:
    """Nor may its end be missing, or a file of it."""
    for file in [*of_a_fragment(index)]:
        good = file.read_bytes()
        wrong = [good[:-1], good + b"\n", b"", None]
        for at in range(0, len(good), 61):
            wrong.append(good[:at] + bytes([good[at] ^ 0x10]) + good[at + 1 :])
        for data in wrong:
            file.unlink()
            if data is not None:
                file.write_bytes(data)
            with pytest.raises(BrokenIndex, match="remove the index and make it again"):
                Database().add(index)
            with pytest.raises(BrokenIndex):
                replace_fragments(index, index.fragments, None)
            file.write_bytes(good)
        Database().add(index)


@pytest.mark.parametrize("damage", ["short", "empty", "gone", "changed"])
def test_a_run_does_not_go_on_with_a_damaged_fragment(
    index: Index, tree: Path, capfd: pytest.CaptureFixture[str], damage: str
) -> None:
    """Whether or not there is anything to read: the next question would fail."""
    for file in [*of_a_fragment(index)]:
        good = file.read_bytes()
        file.unlink()
        if damage != "gone":
            middle = len(good) // 2
            changed = good[:middle] + bytes([good[middle] ^ 0x10]) + good[middle + 1 :]
            file.write_bytes({"short": good[:-1], "empty": b"", "changed": changed}[damage])
        assert main(["dedup", "index", str(tree), "-o", index.directory]) == 1
        said = capfd.readouterr().err
        assert said.startswith(f"pylink dedup index: {index.fragment_path(index.fragments[0])}")
        assert said.endswith(": remove the index and make it again\n")
        file.write_bytes(good)
    assert main(["dedup", "index", str(tree), "-o", index.directory]) == 0


def remove_fragments(folder: Path) -> None:
    shutil.rmtree(folder / "fragments")


def make_fragment_file(folder: Path) -> None:
    remove_fragments(folder)
    (folder / "fragments").touch()


def add_empty_fragment(folder: Path) -> None:
    (folder / "fragments/000009-000000").mkdir()


def marked(text: bytes) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / SETTINGS_FILE).write_bytes(text)

    return write


@pytest.mark.parametrize(
    "damage",
    [
        remove_fragments,
        make_fragment_file,
        add_empty_fragment,
        marked(b""),
        marked(b"\xff\xfe"),
        marked(b"[]"),
        marked(b"[" * 100_000),
        marked(b'{"format": %d}' % FORMAT),
        marked(b'{"format": %d, "targets": 5}' % FORMAT),
        marked(b'{"format": %d, "targets": null}' % (FORMAT - 1)),
        marked(b'{"format": %d, "targets": null}' % (FORMAT + 1)),
    ],
)
def test_an_index_that_is_damaged_is_refused_in_one_line(
    index: Index, damage: Callable[[Path], None], capfd: pytest.CaptureFixture[str]
) -> None:
    damage(Path(index.directory))
    folder = index.directory
    for words in (["index", "-o", folder], ["ask", folder, "files"], ["compare", folder, folder]):
        capfd.readouterr()
        assert main(["dedup", *words]) == 1
        shown = capfd.readouterr()
        assert shown.out == ""
        assert shown.err.startswith(f"pylink dedup {words[0]}: {folder}")
        assert shown.err.endswith(": remove the index and make it again\n")
        assert shown.err.count("\n") == 1


def test_a_damaged_fragment_is_not_joined(index: Index, tree: Path) -> None:
    (tree / "new.cubin").write_bytes(unit("new"))
    settle()
    run(index)
    sums = Path(index.fragment_path(index.fragments[1], SUMS))
    sums.write_text(sums.read_text().replace("sections", "section"))
    with pytest.raises(BrokenIndex, match=r"000002-000000/sections\.parquet: it is damaged"):
        replace_fragments(index, index.fragments, find_current(index, index.fragments))
    assert len(index.fragments) == 2


def test_a_full_disk_leaves_the_index_as_it_was(
    index: Index,
    tree: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    before = bytes_of(Path(index.directory))
    (tree / "new.cubin").write_bytes(unit("new"))
    settle()
    whole = index_module._write

    def full(path: str, data: bytes) -> None:
        if path.endswith("/sections.parquet"):
            whole(path, data[: len(data) // 2])
            raise OSError(28, "No space left on device")
        whole(path, data)

    with monkeypatch.context() as patch:
        patch.setattr(index_module, "_write", full)
        assert main(["dedup", "index", "-o", index.directory]) == 1
    place = Path(index.directory) / "fragments/000002-000000/sections.parquet"
    assert capfd.readouterr().err == f"pylink dedup index: {place}: No space left on device\n"
    assert len(index.fragments) == 1
    Database().add(index)
    assert run(index).read == 1
    after = bytes_of(Path(index.directory))
    assert {name: after[name] for name in before} == before
    assert not [name for name in after if "unfinished" in name]


def test_folders_that_go_while_they_are_walked_have_nothing_in_them(
    index: Index, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that go between the walk and the reading have a reason, and are gone the next time."""
    (tree / "CMakeFiles/app.dir/late.cubin").write_bytes(unit("late"))
    settle()

    def late(*arguments: object) -> object:
        found = walk(*arguments)  # type: ignore[arg-type]
        shutil.rmtree(tree / "CMakeFiles")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(updates, "walk", late)
        done = run(index)
    assert (done.files, done.read, done.gone) == (8, 1, 0)
    done = run(index)
    assert (done.files, done.read, done.gone) == (5, 0, 3)


NAMES = [
    "it's",
    "a'); DROP TABLE files; --",
    'a "b"',
    "new\nline",
    "{s}",
    "%s",
    "$1",
    "back\\slash",
]


def test_no_name_is_a_part_of_a_question(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Whatever files, targets, members, functions and the index itself are called."""
    tree = tmp_path / "tr'ee"
    for name in NAMES:
        (tree / name).mkdir(parents=True)
        (tree / name / f"{name}.cubin").write_bytes(unit(name, "f"))
        (tree / name / "second.cubin").write_bytes(unit(name, "f"))
    settle()
    folder = str(tmp_path / "in'dex")
    assert main(["dedup", "index", str(tree), "-o", folder]) == 0
    capfd.readouterr()
    for question in ("repeats", "contents", "templates", "targets", "files", "faults"):
        assert main(["dedup", "ask", folder, question, "--csv", "--confirm"]) == 0
    query = "SELECT DISTINCT target FROM members ORDER BY target"
    database = Database()
    database.add(Index(folder))
    assert [row[0] for row in database.ask(query).rows] == sorted(NAMES)
    database.add_functions()
    functions = {row[0] for row in database.ask("SELECT function FROM functions").rows}
    assert functions == {*NAMES, "f"}
    database.protect()
    assert main(["dedup", "compare", folder, folder, "objects"]) == 0
    assert "questions" not in os.listdir(tmp_path)
