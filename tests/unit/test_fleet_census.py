"""The native walk over build trees, beside a plain one."""

from __future__ import annotations

import errno
import itertools
import os
import stat
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from helpers.privileges import ordinary_user
from hypothesis import given
from hypothesis import strategies as st

from pylink._native.census import Census, build_slots
from pylink.fleet.walk import Files, Stamp, TreeFile

if TYPE_CHECKING:
    from pylink._native.census import Columns


def test_who_may_not_enter_a_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "shut").mkdir(mode=0o700)
    os.chmod(tmp_path / "shut", 0)
    with ordinary_user():
        closed = Census().walk(bytes(tmp_path / "shut"), b"", 1 << 40, 0)
    assert closed == [(bytes(tmp_path / "shut"), errno.EACCES)]
    assert Census().walk(bytes(tmp_path), bytes(tmp_path / "shut"), 1, 0) == []
    missing = bytes(tmp_path / "gone")
    assert Census().walk(missing, b"", 1, 0) == [(missing, errno.ENOENT)]


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
        for _ in range(2):
            assert found.walk(start, b"", 5, 1 << 62) == []
        changed = rows(found.compare())
        expected = reference(start, 5)
        assert found.count() == len(changed) == len(expected)
        assert {path: stamp for _, path, stamp in changed} == expected
        assert {root for root, _, _ in changed} == {start}
        assert changed == sorted(changed)
        assert sorted(found.files()) == sorted((start, path) for path in expected)
        assert rows(found.find_missing()) == []


def rows(columns: Columns, *, ordered: bool = True) -> list[tuple[bytes, bytes, tuple[int, ...]]]:
    """Root, path and stamp of each file, which are in order."""
    found = [(file.root, file.path, tuple(file.stamp)) for file in Files(*columns).files()]
    assert not ordered or found == sorted(found)
    return sorted(found)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """Two roots with a few files."""
    roots = [bytes(tmp_path_factory.mktemp("small")) for _ in range(2)]
    for root in roots:
        os.mkdir(os.path.join(root, b"b"))
        for name in (b"a", b"b/c", b"b.c"):
            Path(os.fsdecode(os.path.join(root, name))).write_bytes(b"x")
    return roots


Key = tuple[bytes, bytes]


@given(st.data())
def test_a_census_knows_what_changed(small: list[bytes], data: st.DataObject) -> None:
    """As dictionaries tell, whatever was known in which order, and whatever is looked at."""
    there = {
        (root, path): stamp for root in small for path, stamp in reference(root, 1 << 20).items()
    }
    keys = st.tuples(
        st.sampled_from(small), st.sampled_from([b"a", b"b/c", b"b.c", b"b/gone", b""])
    )

    def stamped(key: Key) -> tuple[Key, tuple[int, ...], bool]:
        stamp = there.get(key, (1, 2, 3, 4))
        kind = data.draw(st.integers(0, 3))
        return key, (stamp if kind else (5, 6, 7, 8)), kind == 1

    known: dict[Key, tuple[int, ...]] = {}
    found = Census()
    first = data.draw(st.none() | st.lists(keys, unique=True, max_size=6))
    if first is not None:
        known = {key: stamp for key, stamp, _ in map(stamped, first)}
        set_base(found, known)
    for some in data.draw(st.lists(st.lists(keys, max_size=5), max_size=3)):
        learnt = [*map(stamped, some)]
        found.add_rows(*files_of([(key, stamp) for key, stamp, _ in learnt]), gone_of(learnt))
        for key, stamp, gone in learnt:
            known.pop(key, None)
            if not gone:
                known[key] = stamp
    assert rows(found.export_rows(), ordered=False) == sorted(
        (*key, stamp) for key, stamp in known.items()
    )
    walked = data.draw(st.lists(st.sampled_from(small)))
    is_whole = data.draw(st.booleans())
    for root in walked:
        if is_whole:
            found.walk(root, b"", 1 << 20, 1 << 62)
        else:
            found.find_at(root, [b"", b"a"], b"", 1 << 20, 1 << 62)
    seen = {key: stamp for key, stamp in there.items() if key[0] in walked}
    assert rows(found.compare()) == sorted(
        (*key, stamp) for key, stamp in seen.items() if known.get(key) != stamp
    )
    assert rows(found.compare()) == []
    assert found.count() == len({*known, *seen})
    assert sorted(found.files()) == sorted({*known, *seen})
    unseen = sorted((*key, stamp) for key, stamp in known.items() if key not in seen)
    assert rows(found.find_missing()) == unseen
    inside = [row for row in unseen if row[1].startswith(b"b/")]
    assert rows(found.find_missing_at(small, [[b"b"], [b"b", b"none"]])) == inside


def files_of(known: Sequence[tuple[Key, tuple[int, ...]]]) -> Files:
    return Files.of(TreeFile(*key, Stamp(*stamp)) for key, stamp in known)


def gone_of(learnt: Sequence[tuple[Key, tuple[int, ...], bool]]) -> bytes:
    return bytes(gone for *_, gone in learnt)


def set_base(census: Census, known: dict[Key, tuple[int, ...]]) -> None:
    """Have a census begin with these files, as they lie in a file."""
    files = files_of([*known.items()])
    slots = build_slots(files.root_numbers, files.ends, files.text)
    parts = (files.ends, files.stamps, files.root_numbers, slots, files.text)
    places = itertools.accumulate(map(len, parts), initial=8)
    census.set_base(files.root_names, bytes(8) + b"".join(parts) + b"more", places)


@pytest.mark.parametrize("name", ["more", "names", "number", "end", "cells", "twice", "short"])
def test_rows_that_do_not_fit_are_refused(name: str) -> None:
    files = files_of([((b"/r", b"x"), (1, 2, 3, 4))])
    slots = build_slots(files.root_numbers, files.ends, files.text)
    changed = {
        "names": files._replace(root_names=[b"/r", b"/r"]),
        "number": files._replace(root_numbers=b"\1\0\0\0"),
        "end": files._replace(ends=struct.pack("<2q", 0, 2)),
    }.get(name, files)
    if name == "cells":
        slots = slots[:-4]
    parts = [changed.ends, changed.stamps, changed.root_numbers, slots, changed.text]
    places = [*itertools.accumulate(map(len, parts), initial=0)]
    data = b"".join(parts)
    if name == "more":
        places[-1] += 1
    if name == "short":
        places[1] -= 8
    found = Census()
    if name == "twice":
        found.add_rows(*files, b"\0")
    with pytest.raises((ValueError, IndexError)):
        found.set_base(changed.root_names, data, places)
    # A table that leads nowhere, or round and round, finds nothing.
    for cell in (-1, 0, 7, -7):
        found = Census()
        wrong = struct.pack("<i", cell) * (len(slots) // 4)
        good = (files.ends, files.stamps, files.root_numbers, wrong, files.text)
        places = [*itertools.accumulate(map(len, good), initial=0)]
        if name != "cells":
            found.set_base(files.root_names, b"".join(good), places)
            found.add_rows(*files_of([((b"/r", b"other"), (1, 2, 3, 4))]), b"\0")
            assert found.count() == 2


def test_columns_that_do_not_fit_are_refused() -> None:
    good = {
        "names": [b"/r"],
        "roots": bytes(4),
        "ends": struct.pack("<2q", 0, 1),
        "text": b"x",
        "stamps": bytes(32),
        "gone": b"\0",
    }
    Census().add_rows(**good)  # type: ignore[arg-type]
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
            Census().add_rows(**{**good, name: value})  # type: ignore[arg-type]


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
    known.walk(root, b"", 1 << 20, 1 << 62)
    known.compare()
    assert known.export_rows()[1:] == (b"", bytes(8), b"", b"")  # found is not known

    found = Census()
    files = Files.of(TreeFile(root, path, Stamp(*stamp)) for path, stamp in whole.items())
    found.add_rows(*files, bytes(len(whole)))
    assert found.export_rows() == files
    (tmp_path / "a").write_bytes(b"other bytes")
    (tmp_path / "in/deep/new").write_bytes(b"new")
    (tmp_path / "in/c").unlink()
    (tmp_path / "in/deep/d").unlink()
    os.rename(tmp_path / "own", tmp_path / "in/own")
    names = [b"a", b"in", b"a", b"link", b"in/deep", b"nothing", b"empty", b"own", b"insid"]
    closed, rest = found.find_at(root, names, b"", 1 << 20, 1 << 62)
    assert closed == []
    assert rest == [b"in", b"in/deep", b"nothing", b"empty", b"own", b"insid"]
    assert [path for _, path, _ in rows(found.compare())] == [b"a", b"in/deep/new", b"in/own/e"]
    assert [path for _, path, _ in rows(found.find_missing_at([root], [rest]))] == [
        b"in/c",
        b"in/deep/d",
        b"own/e",
    ]
    assert found.find_missing_at([root], [[b""]]) == found.find_missing()
    assert found.count() == len(whole) + 2
    # What is in the index itself is nobody's file.
    index = Census()
    assert index.find_at(root, [b"in", b"in/own/e", b"b"], root + b"/in", 9, 1 << 62) == ([], [])
    assert [path for _, path, _ in rows(index.compare())] == [b"b"]


def test_a_folder_that_goes_while_it_is_looked_at_has_nothing_in_it(tmp_path: Path) -> None:
    """Not so a root: who names it wants to know. `..` is a name that no walk finds."""
    root = bytes(tmp_path)
    (tmp_path / "file").write_bytes(b"x")
    for name, reason in ((b"/gone", errno.ENOENT), (b"/file", errno.ENOTDIR)):
        assert Census().walk(root + name, b"", 1, 0) == [(root + name, reason)]
