"""Runs after the first: what they look at, load and remember."""

from __future__ import annotations

import io
import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from helpers.archive_builder import gnu
from helpers.fleet_index import made_index, read_state, run
from helpers.fleet_reference import bytes_of, plant, settle, unit

import pylink
from pylink.command.cli import main
from pylink.fleet import state, updates
from pylink.fleet.engine import Local
from pylink.fleet.index import Index
from pylink.fleet.manifest import read_members
from pylink.fleet.state import STATE_FILE, State
from pylink.fleet.updates import NothingToRead, Update
from pylink.fleet.walk import split_by_root

pytest.importorskip("pyarrow")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return plant(tmp_path / "tree").root


@pytest.fixture
def index(tmp_path: Path, tree: Path) -> Index:
    return made_index(tmp_path / "index", tree)


def counts(done: Update) -> tuple[int, int, int]:
    return done.files, done.read, done.gone


LOADED = """
import sys
before = {*sys.modules}
from pylink.command.cli import main
main(sys.argv[1:])
heavy = ("pyarrow", "numpy", "pandas", "duckdb", "ctypes", "pathlib", "pylink.fleet.manifest",
         "pylink.inspect", "pylink.fleet.parquet")
print([name for name in heavy if name in {*sys.modules} - before])
"""


def test_where_nothing_changed_no_package_is_loaded(index: Index, tree: Path) -> None:
    def loaded(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", LOADED, "dedup", "index", "-o", index.directory, *words],
            env={**os.environ, "PYTHONPATH": str(Path(pylink.__file__).parents[1])},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.splitlines()[-1]

    assert loaded() == "[]"
    assert loaded("--changed-from", os.devnull) == "[]"
    (tree / "new.cubin").write_bytes(unit("new"))
    assert loaded() == "['pylink.fleet.parquet']"
    (tree / "new.a").write_bytes(gnu([("a.o", unit("more"))]))
    assert loaded() == "['pylink.inspect', 'pylink.fleet.parquet']"


JOINED = """
import sys
from pylink.fleet import compaction
from pylink.fleet.index import Index
index = Index(sys.argv[1])
fragments = index.fragments
compaction.replace_fragments(index, fragments, compaction.find_current(index, fragments))
assert "pandas" not in sys.modules
"""


def test_fragments_are_joined_without_pandas(index: Index) -> None:
    """It takes as long to load as joining many does."""
    pytest.importorskip("pandas")
    subprocess.run([sys.executable, "-c", JOINED, index.directory], check=True)


def of(state: State) -> list[tuple[bytes, bytes]]:
    state.census.compare()
    return sorted(state.census.files())


def lose(file: Path) -> None:
    file.unlink()


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


def spoil(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)


def make_foreign(file: Path) -> None:
    file.write_bytes(b"#!/bin/sh\n" * 100)


def make_endless(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[16:24] = b"\xff" * 8
    file.write_bytes(data)


@pytest.mark.parametrize("damage", [lose, cut, spoil, make_foreign, make_endless])
def test_a_state_that_is_damaged_is_made_anew(index: Index, damage: Callable[[Path], None]) -> None:
    assert State(index).is_saved
    damage(Path(index.directory) / STATE_FILE)
    assert not State(index).is_saved
    assert counts(run(index)) == (7, 0, 0)
    assert State(index).is_saved
    assert of(State(index)) == sorted(read_state(index))


def test_every_byte_of_a_state_counts(index: Index) -> None:
    file = Path(index.directory) / STATE_FILE
    good = file.read_bytes()
    for at in range(0, len(good), 3):
        data = bytearray(good)
        data[at] ^= 0x41
        file.write_bytes(data)
        assert not State(index).is_saved, at


def test_a_state_of_other_fragments_does_not_count(index: Index, tree: Path) -> None:
    """One that lacks the last ones is completed; one that has more is made anew."""
    older = (Path(index.directory) / STATE_FILE).read_bytes()
    (tree / "new.cubin").write_bytes(unit("new"))
    (tree / "notes.txt").unlink()
    settle()
    assert counts(run(index)) == (7, 1, 1)
    (Path(index.directory) / STATE_FILE).write_bytes(older)
    known = State(index)
    known.read_rest()
    assert of(known) == sorted(read_state(index))
    assert not known.is_saved
    assert counts(run(index)) == (7, 0, 0)
    assert State(index).is_saved
    # As of one who removes the last fragment, to have its files read again.
    shutil.rmtree(index.fragment_path(index.fragments[-1]))
    assert counts(run(index)) == (7, 1, 1)


def test_a_state_grows_by_what_is_new(
    index: Index, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until it is written anew; and what is damaged at its end costs reading alone."""
    monkeypatch.setattr(state, "_GROWTH_ROWS", 5)
    file = Path(index.directory) / STATE_FILE
    sizes = [file.stat().st_size]
    for number in range(9):
        before = file.read_bytes()
        (tree / f"new{number}.cubin").write_bytes(unit(f"f{number}"))
        (tree / f"new{number - 1}.cubin").unlink(missing_ok=True)
        settle()
        assert counts(run(index)) == (8, 1, number > 0)
        now = file.read_bytes()
        sizes.append(len(now))
        assert State(index).is_saved
        assert of(State(index)) == sorted(read_state(index))
        if now.startswith(before):
            for end in (len(before), len(before) + 7, len(now) - 1):
                file.write_bytes(now[:end])
                known = State(index)
                known.read_rest()
                assert not known.is_saved
                assert of(known) == sorted(read_state(index))
            file.write_bytes(now)
    grown = [late > early for early, late in itertools.pairwise(sizes)]
    assert 5 < sum(grown) < len(grown)


def test_a_state_that_cannot_be_written_is_no_error(
    index: Index, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    (Path(index.directory) / STATE_FILE).unlink()
    monkeypatch.setattr(state, "write_whole", full)
    (tree / "new.cubin").write_bytes(unit("new"))
    settle()
    assert counts(run(index)) == (8, 1, 0)
    assert counts(run(index)) == (8, 0, 0)


def test_only_what_a_list_names_is_looked_at(index: Index, tree: Path, tmp_path: Path) -> None:
    """And then the index is as after a run that looks at all."""
    other = Index.open_or_make(tmp_path / "other")
    run(other, tree)
    (tree / "CMakeFiles/app.dir/new.cubin").write_bytes(unit("new"))
    (tree / "CMakeFiles/app.dir/b.cubin").write_bytes(unit("b", "changed"))
    (tree / "notes.txt").unlink()
    shutil.rmtree(tree / "lib/CMakeFiles")
    settle()
    names = [b"CMakeFiles/app.dir/new.cubin", b"CMakeFiles/app.dir/b.cubin", b"notes.txt"]
    names = [os.path.join(bytes(tree), name) for name in names]
    done = run(index, names=[*names, names[0], b"/usr/bin/elsewhere"])
    assert counts(done) == (7, 2, 1)
    assert done.outside == 1
    # A folder stands for all that is and was in it.
    assert counts(run(index, names=[bytes(tree / "lib")])) == (6, 0, 1)
    assert counts(run(index)) == (6, 0, 0)
    assert counts(run(other)) == (6, 2, 2)
    assert of(State(index)) == of(State(other))


def test_a_list_and_a_walk_agree_on_links(tmp_path: Path) -> None:
    real = tmp_path / "real"
    (real / "in").mkdir(parents=True)
    os.symlink(real, tmp_path / "alias")
    os.symlink(real / "in", real / "to in")
    os.symlink("in/x", real / "to x")
    root, alias = bytes(real), bytes(tmp_path / "alias")
    names = {
        b"/in/x": [b"in/x"],
        b"/to in/x": [b"in/x"],
        b"/to x": [b"to x"],
        b"/in/../in/x/": [b"in/x"],
        b"/gone/y": [b"gone/y"],
        b"": [b""],
        b"/.": [b""],
        b"/..": [b""],
    }
    for name, paths in names.items():
        assert split_by_root([root + name], [root]) == ({root: paths}, 0), name
    assert split_by_root([root + b"/in/x"], [alias]) == ({alias: [b"in/x"]}, 0)
    assert split_by_root([root + b"/in/x"], [root, root + b"/in"]) == (
        {root: [b"in/x"], root + b"/in": [b"x"]},
        0,
    )
    assert split_by_root([root + b"al", b"/", b"nowhere"], [root]) == ({root: [b""]}, 2)
    assert split_by_root([b"/etc"], [b"/"]) == ({b"/": [b"etc"]}, 0)


def test_the_command_takes_lists_of_any_kind(
    index: Index,
    tree: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tree)
    folder = index.directory
    strange = tree / "new\nline.cubin"
    lists: list[tuple[bytes, bytes]] = [
        (b"one.cubin", b"one.cubin\n\nnone\n"),
        (b"two.cubin", b"./two.cubin"),
        (os.fsencode(strange.name), os.fsencode(strange) + b"\0one.cubin\0"),
        (b"\xff.cubin", b"\xff.cubin\nhost/../one.cubin\n"),
    ]
    for number, (name, text) in enumerate(lists):
        Path(os.fsdecode(name)).write_bytes(unit(f"f{number}"))
        settle()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text)))
            assert main(["dedup", "index", "-o", folder, "--changed-from", "-"]) == 0
        shown = capfd.readouterr()
        assert shown.out == (
            f"{8 + number} files: 1 read ({len(unit('f0'))} bytes), 0 gone, "
            f"{7 + number} as they were\n"
        )
        assert shown.err == ""
    (tree / "list").write_text("/elsewhere\n")
    assert main(["dedup", "index", "-o", folder, "--changed-from", "list"]) == 0
    assert capfd.readouterr().err == (
        "pylink dedup index: note: 1 of 1 names are in no directory that is indexed\n"
    )
    assert main(["dedup", "index", "-o", folder, "--changed-from", "no list"]) == 1
    assert capfd.readouterr().err == "pylink dedup index: no list: No such file or directory\n"
    words = [str(tree / "host"), "-o", folder, "--changed-from", "list"]
    assert main(["dedup", "index", *words]) == 1
    assert "not indexed yet" in capfd.readouterr().err


def test_a_list_from_nowhere(index: Index) -> None:
    """Standard input that is shut."""
    words = ["dedup", "index", "-o", index.directory, "--changed-from", "-"]
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" <&-', "sh", sys.executable, "-m", "pylink", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == "pylink dedup index: -: standard input is shut\n"


def test_a_list_is_no_beginning(tmp_path: Path, tree: Path) -> None:
    fresh = Index.open_or_make(tmp_path / "fresh")
    with pytest.raises(NothingToRead, match="run once without"):
        run(fresh, tree, names=[bytes(tree / "notes.txt")])
    assert bytes_of(Path(fresh.directory)) == {}


def test_a_description_is_read_when_it_or_a_file_changed(
    index: Index, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    described = tree.parent / "targets.json"
    described.write_text('{"all": ["tree/*"]}')
    settle()
    calls = []

    def counted(*arguments: object) -> object:
        calls.append(1)
        return read_members(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("pylink.fleet.manifest.read_members", counted)
    updates.update(index, [], Local(), targets=str(described))
    assert len(calls) == 1
    run(index)
    assert len(calls) == 1
    described.write_text('{"some": ["tree/host/*"]}')
    settle()
    run(index)
    assert len(calls) == 2
    (tree / "host/main.o").unlink()
    run(index)
    assert len(calls) == 3
    # A run that ended before it came to the description.
    (Path(index.directory) / STATE_FILE).unlink()
    run(index)
    assert len(calls) == 4
    run(index)
    assert len(calls) == 4
