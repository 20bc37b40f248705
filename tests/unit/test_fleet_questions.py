"""Questions about an index, against answers that were planted or counted another way."""

from __future__ import annotations

import json
import random
import shutil
import struct
from array import array
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.fatbin_builder import PTX, container, entry, host_object
from helpers.fleet_reference import BLEND, SMOOTH, Planted, family, plant, sections, settle, unit
from helpers.sized import library, wheel

from pylink import size
from pylink.command.cli import main
from pylink.demangle.templates import describe
from pylink.fleet import confirmation as confirm_module
from pylink.fleet import database as database_module
from pylink.fleet.confirmation import confirm
from pylink.fleet.database import BadQuery, Database
from pylink.fleet.engine import Local
from pylink.fleet.index import Index
from pylink.fleet.manifest import BadDescription, read_members
from pylink.fleet.parts import LARGE_FILE
from pylink.fleet.questions import COMPARISONS, QUESTIONS
from pylink.fleet.targets import directory_targets
from pylink.fleet.updates import update
from pylink.fleet.walk import ends_of

pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")
pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    return plant(tmp_path_factory.mktemp("fleet") / "tree")


@pytest.fixture(scope="module")
def index(planted: Planted) -> Index:
    made = Index.open_or_make(planted.root.parent / "index")
    update(made, [bytes(planted.root)], Local())
    return made


@pytest.fixture
def database(index: Index) -> Database:
    made = Database()
    made.add(index)
    return made


def ask(database: Database, name: str) -> list[tuple[Any, ...]]:
    if "functions" in QUESTIONS[name].needs:
        database.add_functions()
    return database.ask(QUESTIONS[name].query).rows


def test_repeats_by_family(database: Database, planted: Planted) -> None:
    found = {row[0]: (row[1], row[2], row[4], row[5]) for row in ask(database, "repeats")}
    assert found == planted.repeats()
    assert found[".text"][2] > 0


def test_contents_that_repeat(database: Database, planted: Planted) -> None:
    expected: Counter[tuple[str, str]] = Counter()
    for _, _, _, cubin in planted.cubins:
        for section in sections(cubin):
            if section.data:
                expected[family(section.name), section.digest.hex()] += 1
    rows = ask(database, "contents")
    found = {(family(str(row[0])), row[3]): row[5] for row in rows}
    assert found == {key: copies for key, copies in expected.items() if copies > 1}
    assert [row[6] for row in rows] == sorted((row[6] for row in rows), reverse=True)
    assert all(row[6] == row[4] * (row[5] - 1) for row in rows)


def test_templates(database: Database) -> None:
    found = {row[0]: row[1:4] for row in ask(database, "templates")}
    # Instances, objects, targets: `shared` is in four of them, and in `b.cubin` is one function.
    assert found == {"smooth<>": (1, 5, 4), "blend<>": (2, 5, 4), "(no template)": (2, 2, 2)}


def test_sizes(database: Database, planted: Planted) -> None:
    rows = ask(database, "sizes")
    assert {row[:2] for row in rows} == {("relocatable cubin", "sm_100")}
    assert rows[0][3] == len(planted.cubins)
    # In a container a stored cubin has up to 7 bytes of padding.
    padding = rows[0][4] - sum(len(cubin) for _, _, _, cubin in planted.cubins)
    assert 0 <= padding < 8 * rows[0][3]


def test_functions_and_templates_with_most_bytes(database: Database, planted: Planted) -> None:
    sums: Counter[str] = Counter()
    codes: Counter[str] = Counter()
    for _, _, _, cubin in planted.cubins:
        for section in sections(cubin):
            stem = family(section.name)
            if stem != section.name and section.name.startswith((".text", ".nv.capmerc.text")):
                name = section.name.removeprefix(stem + ".")
                sums[name] += len(section.data)
                codes[name] += len(section.data) if stem == ".text" else 0
    rows = ask(database, "functions")
    assert [row[4] for row in rows] == sorted((row[4] for row in rows), reverse=True)
    assert {row[0]: row[3] for row in rows} == {
        describe(name)[0]: size for name, size in codes.items()
    }
    assert sum(row[4] for row in rows) == sum(sums.values())
    templates = ask(database, "largest")
    assert {row[0] for row in templates} == {"smooth<>", "blend<>"}
    assert sum(row[3] for row in templates) < sum(sums.values())


def test_packed_bytes_are_those_of_pylink_size(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    made = unit("one", SMOOTH)
    entries = [entry(made, 100, mode=mode, flags=0x11) for mode in ("none", "lz4", "zstd")]
    text = entry(b".version 8.0\n.target sm_80\n" * 99, 80, kind=PTX, mode="zstd")
    (tree / "lib.so").write_bytes(host_object([(".nv_fatbin", container(*entries, text))]))
    (tree / "one.cubin").write_bytes(made)
    index = Index.open_or_make(tmp_path / "index")
    update(index, [bytes(tree)], Local())
    database = Database()
    database.add(index)
    found = {(row[0], row[1]): (row[3], row[4], row[5]) for row in ask(database, "sizes")}
    sized = size.rows(size.measure([str(tree)]), ("kind", "target"))
    assert found == {
        (row.keys[0].replace("relocatable PTX", "PTX"), row.keys[1]): (
            row.count,
            row.unpacked,
            row.installed,
        )
        for row in sized
        if row.count
    }
    assert len(found) == 2


def test_linked_code_beside_its_copies_and_equal_code(tmp_path: Path) -> None:
    first = unit("one", SMOOTH)
    linked = bytearray(first)
    linked[16:18] = b"\2\0"
    tree = tmp_path / "tree"
    tree.mkdir()
    both = host_object(
        [
            (".nv_fatbin", container(entry(bytes(linked), 100))),
            ("__nv_relfatbin", container(entry(first, 100))),
        ]
    )
    (tree / "both.o").write_bytes(both)
    (tree / "plain.cubin").write_bytes(first.replace(b".one\0", b".two\0"))
    index = Index.open_or_make(tmp_path / "index")
    update(index, [bytes(tree)], Local())
    database = Database()
    database.add(index)
    padded = len(first) + -len(first) % 8
    assert ask(database, "relocatable") == [("both.o", "sm_100", 1, 1, padded, padded + 64)]
    [alias] = ask(database, "aliases")
    assert alias[:3] == ("one", 2, 3)
    assert alias[3] == alias[4] == len(b"code of one") + 200


@pytest.mark.parametrize("padding", [0, LARGE_FILE])
def test_files_are_called_what_they_are(padding: int, tmp_path: Path) -> None:
    """By their ELF headers, whatever their names are; large files are read another way."""
    tree = tmp_path / "tree"
    tree.mkdir()
    fat = container(entry(unit(*BLEND), 80)) + bytes(padding)
    sections = [(".nv_fatbin", fat)]
    (tree / "a.o").write_bytes(host_object(sections))
    (tree / "liba.so.1").write_bytes(library(sections))
    (tree / "fixed").write_bytes(library(sections, elf_type=2))
    data = bytearray(library(sections))
    segments = len(data)
    data += b"\6\0\0\0".ljust(56, b"\0") + b"\3\0\0\0".ljust(56, b"\0")  # the loader's name
    if not padding:  # of a usual file they are at its start; of one this small near it
        struct.pack_into("<Q", data, 32, segments)
        struct.pack_into("<HH", data, 54, 56, 2)
        (tree / "program").write_bytes(data)
    made = Index.open_or_make(tmp_path / "index")
    update(made, [bytes(tree)], Local())
    database = Database()
    database.add(made)
    counts = {row[0]: row[1] for row in ask(database, "files")}
    assert counts == {
        "host object": 1,
        "shared library": 1,
        "executable": 1 if padding else 2,
    }


@pytest.mark.parametrize("padding", [0, 2 << 20])
def test_wheels_are_indexed(padding: int, tmp_path: Path) -> None:
    """Small ones, and those of more bytes than are read without a closer look."""
    fat = container(entry(unit("one"), 100), entry(b".version 8.0", 90, kind=PTX))
    members = {"lib/a.so": host_object([(".nv_fatbin", fat)]), "b.cubin": unit("two")}
    if padding:
        members["data"] = random.Random(1).randbytes(padding)
    tree = tmp_path / "tree"
    tree.mkdir()
    whole = wheel(tree / "some.whl", members).read_bytes()
    (tree / "cut.whl").write_bytes(whole[: len(whole) // 2])
    index = Index.open_or_make(tmp_path / "index")
    update(index, [bytes(tree)], Local())
    database = Database()
    database.add(index)
    rows = database.ask("SELECT path, member, kind, sm FROM objects ORDER BY member, kind").rows
    assert [row for row in rows if row[0] == "some.whl"] == [
        ("some.whl", "b.cubin", "cubin", 100),
        ("some.whl", "lib/a.so", "PTX", 90),
        ("some.whl", "lib/a.so", "cubin", 100),
    ]
    assert [row[:2] for row in ask(database, "faults")] == [("cut.whl", "")]
    assert {row[:2] for row in ask(database, "sizes")} == {
        ("relocatable cubin", "sm_100"),
        ("PTX", "compute_90"),
    }
    assert {row[0] for row in ask(database, "files")} == {"zip file"}


def test_targets(database: Database, planted: Planted) -> None:
    rows = {row[0]: row[1:] for row in ask(database, "targets")}
    everywhere: dict[tuple[str, bytes], set[str]] = {}
    inside: dict[str, Counter[tuple[str, bytes]]] = {}
    for _, _, target, cubin in planted.cubins:
        for section in sections(cubin):
            if section.data:
                key = family(section.name), section.data
                everywhere.setdefault(key, set()).add(target)
                inside.setdefault(target, Counter())[key] += 1
    for target, contents in inside.items():
        size = sum(len(key[1]) * copies for key, copies in contents.items())
        repeated = sum(len(key[1]) * (copies - 1) for key, copies in contents.items())
        shared = sum(len(key[1]) for key in contents if len(everywhere[key]) > 1)
        assert rows[target][2:] == (size, repeated, shared)
    assert rows["app"][:2] == (2, 2)
    assert rows["host"][:2] == (2, 2)
    assert rows["lib/libmore.a"][:2] == (1, 2)


def test_files_and_faults(database: Database) -> None:
    assert [row[:3] for row in ask(database, "files")] == [
        ("cubin", 3, 3),
        ("other", 2, 0),
        ("archive", 1, 2),
        ("host object", 1, 2),
    ]
    assert ask(database, "faults") == []


def test_only_what_is_there_counts(planted: Planted, tmp_path: Path) -> None:
    """After every run the answers are those of an index that was made at once."""
    tree = tmp_path / "tree"
    shutil.copytree(planted.root, tree)
    settle()
    index = Index.open_or_make(tmp_path / "index")
    update(index, [bytes(tree)], Local())
    steps: list[Callable[[], object]] = [
        (tree / "lib/libmore.a").unlink,
        lambda: (tree / "CMakeFiles/app.dir/b.cubin").write_bytes(unit("a", "b", SMOOTH)),
        lambda: (tree / "CMakeFiles/app.dir/c.cubin").write_bytes(unit(SMOOTH)),
        lambda: (tree / "lib/libmore.a").write_bytes(unit("no archive any more")),
        lambda: shutil.rmtree(tree / "host"),
    ]
    for number, step in enumerate(steps):
        step()
        settle()
        update(index, [], Local())
        fresh = Index.open_or_make(tmp_path / f"fresh{number}")
        update(fresh, [bytes(tree)], Local())
        first, second = Database(), Database()
        first.add(index)
        second.add(fresh)
        for name, question in QUESTIONS.items():
            if not set(question.needs) - {"functions"}:
                assert ask(first, name) == ask(second, name), (number, name)


def test_names_are_taken_apart_once(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    first = Database()
    first.add(index)
    first.add_functions()

    def refuse(_: str) -> tuple[str, str | None]:
        raise AssertionError("a name was taken apart again")

    monkeypatch.setattr(database_module, "describe", refuse)
    again = Database()
    again.add(index)
    again.add_functions()
    query = "SELECT * FROM functions ORDER BY function"
    assert first.ask(query).rows == again.ask(query).rows
    assert len(again.ask(query).rows) == 5


@pytest.mark.parametrize(
    ("function", "template"),
    [
        (SMOOTH, "smooth<>"),
        (BLEND[0], "blend<>"),
        ("kernel", None),
        ("_Z7field_0PK8ParticlePfi", None),
        ("_ZN2ns3FooIiE3barIfEEvT_", "ns::Foo<>::bar<>"),
        ("_ZN3cub11EmptyKernelIvEEvv", "cub::EmptyKernel<>"),
        ("_ZN6thrust4axpyIN4nsab5TupleIJifEEEEEvT_", "thrust::axpy<>"),
        ("_ZNK2aaclIfEEvv", "aa::operator()<>"),
        ("_ZN1aIiEclEi", "a<>::operator()"),
        ("_ZlsIiERSoS0_T_", "operator<<<>"),
        ("_ZN1aIiEltES0_", "a<>::operator<"),
        ("_Z1fSt6vectorIiSaIiEE", None),
        ("_Z1fIXadL_Z1gvEEEvv", "f<>"),
    ],
)
def test_the_template_of_a_function(function: str, template: str | None) -> None:
    assert describe(function)[1] == template


FILES = [(b"/b", name) for name in (b"a.o", b"b.o", b"sub/c.o", b"with space.o", b"lib.a")]


def members(name: Path, text: str) -> dict[str, list[str]]:
    name.write_text(text)
    files = [(bytes(name.parent), path) for _, path in FILES]
    found: dict[str, list[str]] = {}
    for file in read_members(str(name), files):
        assert file.place == len(found.setdefault(file.target, []))
        found[file.target].append(file.path.decode())
    return found


def test_targets_that_a_file_describes(tmp_path: Path) -> None:
    rules = (
        "app: b.o a.o \\\n sub/c.o with\\ space.o\n# no: a.o\nother : none.o\nlib:x\n\tcc: a.o\n"
    )
    assert members(tmp_path / "link.d", rules) == {"app": ["b.o", "a.o", "sub/c.o", "with space.o"]}
    ninja = (
        "rule ld\n  command = ld\nbuild app: ld b.o $\n  a.o | sub/c.o || lib.a\n"
        "build all: phony a.o\nbuild two$ words$:x | extra: ld with$ space.o b.o\n"
    )
    assert members(tmp_path / "build.ninja", ninja) == {
        "app": ["b.o", "a.o", "sub/c.o"],
        "two words:x": ["with space.o", "b.o"],
    }
    described = {"app": ["sub/*.o", "a.o", "a.o", "none*"], "all": ["*.o"], "empty": []}
    assert members(tmp_path / "targets.json", json.dumps(described)) == {
        "app": ["sub/c.o", "a.o"],
        "all": ["a.o", "b.o", "sub/c.o", "with space.o"],
    }
    for wrong in ("[", "[1]", '{"a": "b"}', '{"a": [1]}', "[" * 100_000):
        with pytest.raises(BadDescription, match=r"targets\.json"):
            members(tmp_path / "targets.json", wrong)
    with pytest.raises(BadDescription, match="No such file"):
        list(read_members(str(tmp_path / "none.json"), []))


def test_targets_that_folders_say() -> None:
    paths = {
        b"a.o": ".",
        b"x/y/a.o": "x/y",
        b"CMakeFiles/app.dir/src/a.cu.o": "app",
        b"src/CMakeFiles/app.dir/a.cu.o": "src/app",
        b"bin/pkg/_objs/core/a.o": "bin/pkg/core",
        b"lib/libx.a": "lib/libx.a",
        b"CMakeFiles/app.dir/libx.a": "CMakeFiles/app.dir/libx.a",
        b"\xff/a.o": "\\xff",
    }
    names, numbers = directory_targets(ends_of(paths), b"".join(paths))
    assert dict(zip(paths, map(names.__getitem__, array("i", numbers)), strict=True)) == paths
    for ends in (b"", bytes(7), bytes(12)):
        with pytest.raises(ValueError, match="differ in length"):
            directory_targets(ends, b"")
    for pair in ((0, 2), (1, 0), (-1, 0)):
        with pytest.raises(IndexError):
            directory_targets(array("q", pair).tobytes(), b"x")


def test_equal_digests_are_confirmed(
    planted: Planted,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(confirm_module, "TASK_PAIRS", 3)
    tree = tmp_path / "tree"
    shutil.copytree(planted.root, tree)
    settle()
    index = Index.open_or_make(tmp_path / "index")
    update(index, [bytes(tree)], Local())
    database = Database()
    database.add(index)
    result = confirm(database, Local())
    repeats = planted.repeats().values()
    assert (result.compared, result.bytes) == (
        sum(r[2] for r in repeats),
        sum(r[3] for r in repeats),
    )
    assert (result.different, result.missing) == ([], [])
    # As if digests had deceived: one byte of a section's code is another one now.
    file = tree / "lib/CMakeFiles/core.dir/a copy.cubin"
    data = bytearray(file.read_bytes())
    at = data.index(b"code of " + SMOOTH.encode())
    data[at + 30] ^= 1
    file.write_bytes(data)
    (tree / "host/main.o").unlink()
    result = confirm(database, Local())
    number = next(
        section.number for section in sections(bytes(data)) if section.name == f".text.{SMOOTH}"
    )
    found = [(place.path, place.entry, place.number) for place in result.different]
    assert found == [(b"lib/CMakeFiles/core.dir/a copy.cubin", 0, number)]
    assert {place.path for place in result.missing} == {b"host/main.o"}
    # What was counted is a note; what makes the exit status 1 is not.
    capfd.readouterr()
    folder = str(tmp_path / "index")
    assert main(["dedup", "ask", folder, "repeats", "--confirm"]) == 1
    note, *errors = capfd.readouterr().err.splitlines()
    assert note.startswith("pylink dedup ask: note: ")
    lines = [*result.different, *result.missing]
    assert [error.partition(": section ")[0] for error in errors] == [
        f"pylink dedup ask: {place.path.decode()}: object {place.entry}" for place in lines
    ]


def test_queries_reach_no_other_files(database: Database, tmp_path: Path) -> None:
    database.protect()
    assert database.ask("SELECT count(*) FROM sections").rows[0][0] > 0
    (tmp_path / "secret.csv").write_text("a\n1\n")
    for query in (
        f"SELECT * FROM read_csv('{tmp_path}/secret.csv')",
        f"COPY (SELECT 1) TO '{tmp_path}/made.csv'",
        "SET enable_external_access = true",
        "nonsense",
    ):
        with pytest.raises(BadQuery):
            database.ask(query)
    assert not (tmp_path / "made.csv").exists()


def test_the_commands(planted: Planted, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "index")
    assert main(["dedup", "index", str(planted.root), "-o", folder]) == 0
    assert capfd.readouterr().out.startswith("7 files: 7 read (")
    assert main(["dedup-index", "-o", folder]) == 0
    assert capfd.readouterr().out == "7 files: 0 read (0 bytes), 0 gone, 7 as they were\n"
    query = "SELECT path FROM files WHERE kind = 'archive'"
    assert main(["dedup", "ask", folder, "--sql", query, "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == [{"path": "lib/libmore.a"}]
    query = "SELECT template, count(*) AS n FROM functions GROUP BY ALL ORDER BY ALL"
    plot = tmp_path / "own.svg"
    assert main(["dedup", "ask", folder, "--sql", query, "--csv", "--plot", str(plot)]) == 0
    assert capfd.readouterr().out == "template,n\nblend<>,2\nsmooth<>,1\n,2\n"
    assert b"smooth&lt;&gt;" in plot.read_bytes()
    assert main(["dedup", "ask", folder, "repeats", "--top", "2", "--confirm"]) == 0
    shown = capfd.readouterr()
    assert "more rows with --top" in shown.out
    assert shown.err.startswith("pylink dedup ask: note: ")
    assert shown.err.endswith(" are equal byte by byte\n")
    for words, reason in (
        (["ask", folder], "ask one of repeats,"),
        (["ask", folder, "repeats", "--sql", "SELECT 1"], "ask one of repeats,"),
        (["ask", str(tmp_path), "repeats"], "not an index: make one with"),
        (["ask", folder, "faults", "--plot", str(plot)], "nothing to draw"),
        (["ask", folder, "files", "--plot", "x.bmp"], "a plot is .svg, .png or .pdf"),
        (["ask", folder, "--sql", "SELEC"], "syntax error"),
        (["index", "nowhere", "-o", folder], "nowhere: not a directory"),
        (["index", str(planted.root), "-o", str(planted.root)], "is not an index"),
        (["index", "-o", folder, "--targets", "none.json"], "none.json: No such file"),
        (["compare", folder, str(tmp_path / "none")], "not an index"),
    ):
        assert main(["dedup", *words]) == 1
        shown = capfd.readouterr()
        assert reason in shown.err
        assert shown.err.startswith(f"pylink dedup {words[0]}: ")
        assert shown.err.count("\n") == 1
        assert not shown.out
    assert main(["dedup", "ask", folder, "no-such-question"]) == 2


def test_targets_are_remembered(
    planted: Planted, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder, described = str(tmp_path / "index"), tmp_path / "targets.json"
    described.write_text(
        json.dumps({"all": [f"{planted.root}/*"], "one": [f"{planted.root}/lib/*"]})
    )
    assert (
        main(["dedup", "index", str(planted.root), "-o", folder, "--targets", str(described)]) == 0
    )
    assert main(["dedup", "index", "-o", folder]) == 0
    capfd.readouterr()
    query = "SELECT target, count(*) AS n FROM members GROUP BY ALL ORDER BY ALL"
    assert main(["dedup", "ask", folder, "--sql", query, "--csv"]) == 0
    assert capfd.readouterr().out == "target,n\nall,7\none,2\n"
    assert main(["dedup", "index", "-o", folder, "--targets", ""]) == 0
    capfd.readouterr()
    assert main(["dedup", "ask", folder, "--sql", query, "--csv"]) == 0
    assert "app,2\n" in capfd.readouterr().out


def test_all_device_code_of_two_builds_is_compared(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """What has no sections, and what two folders have under one name."""
    ptx = [container(entry(b".version" * count, 90, kind=PTX)) for count in (1, 2, 3)]
    before = {"x/c.cubin": unit("f"), "y/c.cubin": unit("f"), "x/same.fatbin": ptx[0]}
    after = {"x/c.cubin": unit("g"), "y/c.cubin": unit("g"), "x/same.fatbin": ptx[0]}
    before |= {"x/gone.fatbin": ptx[0], "x/other.fatbin": ptx[1]}
    after |= {"x/new.fatbin": ptx[0], "x/other.fatbin": ptx[2]}
    indexes = []
    for name, files in (("before", before), ("after", after)):
        for path, data in files.items():
            (tmp_path / name / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / path).write_bytes(data)
        indexes.append(str(tmp_path / f"index-{name}"))
        roots = [str(tmp_path / name / root) for root in "xy"]
        assert main(["dedup", "index", *roots, "-o", indexes[-1]]) == 0
    capfd.readouterr()
    assert main(["dedup", "compare", *indexes, "objects", "--json"]) == 0
    rows = json.loads(capfd.readouterr().out)
    assert [(row["fate"], row["path"], row["arch"], row["change"]) for row in rows] == [
        ("changed", "c.cubin", "sm_100", 0),
        ("gone", "gone.fatbin", "compute_90", -8),
        ("new", "new.fatbin", "compute_90", 8),
        ("changed", "other.fatbin", "compute_90", 8),
    ]


def test_two_builds_are_compared(
    planted: Planted, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    later = tmp_path / "later"
    shutil.copytree(planted.root, later)
    new = unit(SMOOTH, *BLEND)
    (later / "CMakeFiles/app.dir/c.cubin").write_bytes(new)
    (later / "lib/CMakeFiles/core.dir/a copy.cubin").unlink()
    (later / "CMakeFiles/app.dir/b.cubin").write_bytes(unit(SMOOTH, "kernel", frame=b"new frame"))
    indexes = []
    for tree in (planted.root, later):
        indexes.append(str(tmp_path / f"index-{tree.name}"))
        assert main(["dedup", "index", str(tree), "-o", indexes[-1]]) == 0
    capfd.readouterr()

    def compare(what: str) -> list[dict[str, object]]:
        assert main(["dedup", "compare", *indexes, what, "--json"]) == 0
        found: list[dict[str, object]] = json.loads(capfd.readouterr().out)
        return found

    assert [(row["fate"], row["path"]) for row in compare("objects")] == [
        ("changed", "CMakeFiles/app.dir/b.cubin"),
        ("new", "CMakeFiles/app.dir/c.cubin"),
        ("gone", "lib/CMakeFiles/core.dir/a copy.cubin"),
    ]
    stored = sum(len(section.data) for section in sections(new))
    rows = {row["target"]: row for row in compare("targets")}
    # The new unit is a copy of one that was there: all of its bytes repeat.
    assert rows["app"]["change"] == stored
    assert rows["lib/core"]["bytes_after"] == 0
    assert rows["host"]["change"] == 0
    families = [row for row in compare("families") if row["target"] == "app"]
    assert sum(int(str(row["change"])) for row in families) == stored
    plot = tmp_path / "changes.svg"
    for what in COMPARISONS:
        assert main(["dedup", "compare", *indexes, what, "--plot", str(plot)]) == 0
    assert plot.read_bytes().startswith(b"<?xml")
