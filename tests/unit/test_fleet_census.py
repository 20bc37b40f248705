"""The native walk over build trees, beside a plain one."""

from __future__ import annotations

import errno
import os
import stat
import struct
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from helpers.privileges import ordinary_user
from hypothesis import given
from hypothesis import strategies as st

from pylink._native.census import Census
from pylink.fleet.walk import Files, Found, Stamp

if TYPE_CHECKING:
    from pylink._native.census import Columns


def test_who_may_not_enter_a_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "shut").mkdir(mode=0o700)
    os.chmod(tmp_path / "shut", 0)
    with ordinary_user():
        closed = Census().walk([bytes(tmp_path / "shut")], b"", 1 << 40, 0)
    assert closed == [(bytes(tmp_path / "shut"), errno.EACCES)]
    missing = [bytes(tmp_path / "gone"), bytes(tmp_path)]
    assert Census().walk(missing, bytes(tmp_path / "shut"), 1, 0) == [(missing[0], errno.ENOENT)]


def reference(root: bytes, largest: int) -> dict[bytes, tuple[int, ...]]:
    """The files below a root, found plainly: path and what tells a change."""
    found = {}
    for folder, _, names in os.walk(root):
        for name in names:
            full = os.path.join(folder, name)
            status = os.stat(full) if os.path.exists(full) else None
            if status and stat.S_ISREG(status.st_mode) and 0 < status.st_size <= largest:
                found[full[len(root.rstrip(b"/")) + 1 :]] = tuple(Stamp.of(status))
    return found


def test_a_walk_finds_what_is_there(tmp_path: Path) -> None:
    """Names of any bytes, links, pipes, empty and large files, deep and wide folders."""
    root = bytes(tmp_path / "root")
    deep = os.path.join(root, *([b"d" * 200] * 9))
    os.makedirs(deep)
    os.makedirs(os.path.join(root, b"empty", b"\xff\n"))
    for number in range(300):
        folder = os.path.join(root, b"w%d" % (number % 50))
        os.makedirs(folder, exist_ok=True)
        Path(os.fsdecode(os.path.join(folder, b"%d" % number))).write_bytes(bytes(number % 7))
    for name in (b"\xff\xfe", b"a b", b".hidden", b"new\nline"):
        Path(os.fsdecode(os.path.join(deep, name))).write_bytes(b"x")
    os.symlink("w1/8", os.path.join(root, b"to a file"))
    os.symlink("..", os.path.join(root, b"up"))
    os.symlink("nowhere", os.path.join(root, b"lost"))
    os.mkfifo(os.path.join(root, b"pipe"))
    for start in (root, root + b"/", root + b"//"):
        found = Census()
        assert found.walk([start, start], b"", 5, 1 << 62) == []
        changed = rows(found.compare())
        expected = reference(start, 5)
        assert found.count() == len(changed) == len(expected)
        assert {path: stamp for _, path, stamp in changed} == expected
        assert {one for one, _, _ in changed} == {start}
        assert changed == sorted(changed)
        assert sorted(found.files()) == sorted((start, path) for path in expected)
        assert rows(found.unseen()) == []


def rows(columns: Columns) -> list[tuple[bytes, bytes, tuple[int, ...]]]:
    """Root, path and stamp of each file."""
    return [(one.root, one.path, tuple(one.stamp)) for one in Files(*columns).files()]


@given(st.data())
def test_a_census_knows_what_changed(data: st.DataObject) -> None:
    """As dictionaries tell, whatever was known in which order."""
    names = [b"/r", b"/s"]
    row = st.tuples(
        st.sampled_from(names),
        st.sampled_from([b"a", b"b/c", b"b/cc", b""]),
        st.tuples(*[st.integers(0, 3)] * 4),
        st.booleans(),
    )
    known: dict[tuple[bytes, bytes], tuple[int, ...]] = {}
    found = Census()
    for some in data.draw(st.lists(st.lists(row, max_size=5), max_size=3)):
        paths = [path for _, path, _, _ in some]
        ends = [sum(map(len, paths[:number])) for number in range(len(some) + 1)]
        found.know(
            names,
            struct.pack(f"<{len(some)}i", *(names.index(root) for root, *_ in some)),
            struct.pack(f"<{len(ends)}q", *ends),
            b"".join(paths),
            b"".join(struct.pack("<4q", *stamp) for _, _, stamp, _ in some),
            bytes(gone for *_, gone in some),
        )
        for root, path, stamp, gone in some:
            known.pop((root, path), None)
            if not gone:
                known[root, path] = stamp
    assert sorted(found.known_roots()) == sorted({root for root, _ in known})
    assert rows(found.unseen()) == sorted((*key, stamp) for key, stamp in known.items())


def test_columns_that_do_not_fit_are_refused() -> None:
    good = {
        "names": [b"/r"],
        "roots": bytes(4),
        "ends": struct.pack("<2q", 0, 1),
        "text": b"x",
        "stamps": bytes(32),
        "gone": b"\0",
    }
    Census().know(**good)  # type: ignore[arg-type]
    wrong: list[tuple[str, object, type[Exception]]] = [
        ("roots", b"", ValueError),
        ("ends", bytes(8), ValueError),
        ("stamps", bytes(31), ValueError),
        ("gone", b"", ValueError),
        ("names", [], IndexError),
        ("roots", struct.pack("<i", -1), IndexError),
        ("ends", struct.pack("<2q", 0, 2), IndexError),
        ("ends", struct.pack("<2q", 1, 0), IndexError),
        ("ends", struct.pack("<2q", -1, 0), IndexError),
    ]
    for name, value, error in wrong:
        with pytest.raises(error):
            Census().know(**{**good, name: value})  # type: ignore[arg-type]


def test_some_files_alone_are_looked_at(tmp_path: Path) -> None:
    """As a walk finds them: whatever the list holds, more than once or not there at all."""
    root = bytes(tmp_path)
    for name in ("a", "b", "in/c", "in/deep/d", "inside", "own/e"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x" * len(name))
    (tmp_path / "empty").touch()
    os.symlink("b", tmp_path / "link")
    whole = reference(root, 1 << 20)
    known = Census()
    known.walk([root], b"", 1 << 20, 1 << 62)
    known.compare()
    assert known.known()[1:] == (b"", bytes(8), b"", b"")  # found is not known

    found = Census()
    files = Files.of(Found(root, path, Stamp(*stamp)) for path, stamp in whole.items())
    found.know(*files, bytes(len(whole)))
    assert found.known() == files
    (tmp_path / "a").write_bytes(b"other bytes")
    (tmp_path / "in/deep/new").write_bytes(b"new")
    (tmp_path / "in/c").unlink()
    (tmp_path / "in/deep/d").unlink()
    os.rename(tmp_path / "own", tmp_path / "in/own")
    names = [b"a", b"in", b"a", b"link", b"in/deep", b"nothing", b"empty", b"own", b"insid"]
    closed, rest = found.look(root, names, b"", 1 << 20, 1 << 62)
    assert closed == []
    assert rest == [b"in", b"in/deep", b"nothing", b"empty", b"own", b"insid"]
    assert [path for _, path, _ in rows(found.compare())] == [b"a", b"in/deep/new", b"in/own/e"]
    assert [path for _, path, _ in rows(found.unseen_of([root], [rest]))] == [
        b"in/c",
        b"in/deep/d",
        b"own/e",
    ]
    assert found.unseen_of([root], [[b""]]) == found.unseen()
    assert found.count() == len(whole) + 2
    # What is in the index itself is nobody's file.
    index = Census()
    assert index.look(root, [b"in", b"in/own/e", b"b"], root + b"/in", 9, 1 << 62) == ([], [])
    assert [path for _, path, _ in rows(index.compare())] == [b"b"]


def test_a_folder_that_goes_while_it_is_looked_at_has_nothing_in_it(tmp_path: Path) -> None:
    """Not so a root: who names it wants to know. `..` is a name that no walk finds."""
    root = bytes(tmp_path)
    (tmp_path / "file").write_bytes(b"x")
    closed = Census().walk([root + b"/gone", root + b"/file"], b"", 1, 0)
    assert [error for _, error in closed] == [errno.ENOENT, errno.ENOTDIR]
