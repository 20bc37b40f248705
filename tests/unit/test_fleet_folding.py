"""What folding saves per target, against files that were linked with it and without."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from helpers import demo
from helpers.archive_builder import gnu
from helpers.fatbin_builder import SEGMENT, container, entry, host_object
from helpers.fleet_index import made_index, run
from helpers.fleet_reference import settle

import pylink
from pylink.command.cli import main
from pylink.dedup import MercuryObject, fold
from pylink.fleet import folding
from pylink.fleet.database import Database
from pylink.fleet.engine import Local
from pylink.fleet.folding import find_tasks
from pylink.fleet.index import Index
from pylink.fleet.updates import update

pytest.importorskip("pyarrow")
duckdb = pytest.importorskip("duckdb")

CUBINS = {path.stem: path.read_bytes() for path in demo.cubins("sm_100")}
OLDER = {path.stem: path.read_bytes() for path in demo.cubins("sm_90a")}


def hosted(name: str) -> bytes:
    return host_object(
        [
            ("__nv_relfatbin", container(entry(CUBINS[name], 100, mode="zstd"))),
            ("__nv_module_id", f"_{name}_cu\0".encode()),
            SEGMENT,
        ]
    )


def plant(root: Path) -> dict[str, list[Path]]:
    """Targets by name, and the files of each in the order of a link."""
    pair = {f"{name}.cubin": CUBINS[name] for name in ("smoothing_a", "smoothing_b")}
    targets = {
        "whole": {f"{name}.cubin": data for name, data in CUBINS.items()},
        "pair": pair,
        "alone": {"smoothing_a.cubin": CUBINS["smoothing_a"]},
        "different": {"reduction.cubin": CUBINS["reduction"], "step.cubin": CUBINS["step"]},
        "older": {f"{name}.cubin": data for name, data in OLDER.items()},
        "both": {**pair, "random.cubin": OLDER["random"]},
        "hosted": {f"{name}.o": hosted(name) for name in ("smoothing_a", "smoothing_b")},
        "lib/libsmooth.a": {
            "": gnu(
                [
                    (f"{name}.o", CUBINS[name])
                    for name in ("smoothing_a", "smoothing_b", "reduction")
                ]
            )
        },
        "twice": {"a.cubin": CUBINS["reduction"], "b.cubin": CUBINS["reduction"]},
    }
    for target, files in targets.items():
        for name, data in files.items():
            path = root / target / name if name else root / target
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    settle()
    return {
        target: [root / target / name for name in sorted(files)]
        if "" not in files
        else [root / target]
        for target, files in targets.items()
    }


def difference(files: Sequence[Path]) -> int:
    """How much shorter the file is that pylink writes."""
    sizes = [
        len(pylink.link(files, arch="sm_100", merc_dedup=fold).image) for fold in ("off", "on")
    ]
    return sizes[0] - sizes[1]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return tmp_path / "tree"


@pytest.fixture
def targets(tree: Path) -> dict[str, list[Path]]:
    return plant(tree)


def made(tree: Path) -> Index:
    index = Index.open_or_make(tree.parent / "index")
    update(index, [bytes(tree)], Local())
    return index


def ask(index: Index, question: str, capfd: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    capfd.readouterr()
    assert main(["dedup", "ask", index.directory, question, "--json"]) == 0
    found: list[dict[str, Any]] = json.loads(capfd.readouterr().out)
    return found


def test_saving_is_the_difference_of_linked_files(
    tree: Path, targets: dict[str, list[Path]], capfd: pytest.CaptureFixture[str]
) -> None:
    rows = {row["target"]: row for row in ask(made(tree), "saving", capfd)}
    # Of `older` nothing has Mercury sections.
    assert set(rows) == set(targets) - {"older"}
    assert {row["arch"] for row in rows.values()} == {"sm_100"}
    expected = {name: difference(targets[name]) for name in ("whole", "alone", "pair", "hosted")}
    assert expected["whole"] == 848
    assert expected["alone"] == 0 < min(expected["pair"], expected["hosted"])
    expected["both"] = expected["pair"]
    expected["lib/libsmooth.a"] = difference([*targets["pair"], tree / "whole" / "reduction.cubin"])
    expected["different"] = 0
    assert {name: rows[name]["saved_bytes"] for name in expected} == expected
    assert {name: rows[name]["folded"] for name in expected} == {
        name: int(saved > 0) for name, saved in expected.items()
    }
    assert rows["twice"]["saved_bytes"] is None
    assert "Multiple definition" in rows["twice"]["note"]


def test_a_question_has_one_index_throughout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a run changes it between two looks, or after the last."""
    for target in ("one", "two"):
        for name in ("smoothing_a", "smoothing_b"):
            (tmp_path / "tree" / target).mkdir(parents=True, exist_ok=True)
            (tmp_path / "tree" / target / f"{name}.cubin").write_bytes(CUBINS[name])
    settle()
    index = made_index(tmp_path / "index", tmp_path / "tree")
    before = Database()
    before.add(index)
    check = Index.check

    def change(self: Index, fragments: Iterable[str]) -> None:
        check(self, fragments)
        shutil.rmtree(tmp_path / "tree/one", ignore_errors=True)
        run(index)

    monkeypatch.setattr(Index, "check", change)
    during = Database()
    during.add(index)
    for table in ("files", "objects", "members"):
        query = f"FROM {table} ORDER BY ALL"
        assert during.ask(query).rows == before.ask(query).rows
    assert find_tasks(during) == find_tasks(before)
    assert {task.target for task in find_tasks(during)} == {"one", "two"}


def test_results_of_targets_as_they_were_go(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    for number in range(2):
        for name in ("smoothing_a", "smoothing_b"):
            (tree / f"{name}.cubin").write_bytes(CUBINS[name] + bytes(number))
        settle()
        index = made_index(tmp_path / "index", tree)
        assert main(["dedup", "ask", index.directory, "saving"]) == 0
        assert len(os.listdir(Path(index.directory) / "folding")) == 1


def test_only_targets_with_ties_are_read(
    tree: Path,
    targets: dict[str, list[Path]],
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    index = made(tree)
    database = Database()
    database.add(index)
    may_fold = {task.target: task.may_fold for task in find_tasks(database)}
    assert may_fold == {
        name: name not in ("alone", "different") for name in targets if name != "older"
    }
    first = ask(index, "saving", capfd)
    read: list[str] = []
    fold_target = folding.fold_target

    def watched(task: folding.Task) -> tuple[folding.Task, bytes]:
        read.append(task.target)
        return fold_target(task)

    monkeypatch.setattr(folding, "fold_target", watched)
    assert ask(index, "saving", capfd) == first
    assert read == ["twice"]  # what failed is tried again
    read.clear()
    table = targets["pair"][0].with_name("reduction.cubin")
    table.write_bytes(CUBINS["reduction"])
    settle()
    update(index, [], Local())
    again = {row["target"]: row for row in ask(index, "saving", capfd)}
    assert read == ["pair", "twice"]
    assert again["pair"]["saved_bytes"] == difference([*targets["pair"], table])
    assert again["pair"]["saved_bytes"] == again["lib/libsmooth.a"]["saved_bytes"]


def test_a_target_that_changed_since_has_no_number(
    tree: Path, targets: dict[str, list[Path]], capfd: pytest.CaptureFixture[str]
) -> None:
    index = made(tree)
    targets["pair"][0].unlink()
    os.utime(targets["hosted"][0])
    rows = {row["target"]: row for row in ask(index, "saving", capfd)}
    for name in ("pair", "hosted"):
        assert rows[name]["saved_bytes"] is None
        assert rows[name]["note"] == f"{targets[name][0]} has changed since it was indexed"
    shutil.rmtree(tree)
    assert ask(index, "files", capfd)  # needs no files


def test_a_result_that_somebody_changed_is_found_out_anew(
    tree: Path, targets: dict[str, list[Path]], capfd: pytest.CaptureFixture[str]
) -> None:
    index = made(tree)
    expected = ask(index, "saving", capfd), ask(index, "blockers", capfd)
    changes: list[dict[str, Any]] = [{"sm": "100"}, {"target": 1}, {"note": []}, {"more": 1}]
    for change in changes:
        for name in os.listdir(Path(index.directory) / "folding"):
            file = Path(index.directory) / "folding" / name
            found = json.loads(file.read_bytes())
            found["saving"].update(change)
            for row in found["blockers"]:
                row.update(change)
            file.write_text(json.dumps(found))
        assert (ask(index, "saving", capfd), ask(index, "blockers", capfd)) == expected
    for name in os.listdir(Path(index.directory) / "folding"):
        (Path(index.directory) / "folding" / name).write_text("[" * 200_000)
    assert ask(index, "saving", capfd) == expected[0]


WITHOUT_PANDAS = """
import sys
from pylink.command.cli import main
assert main(sys.argv[1:]) == 0
assert "pandas" not in sys.modules
"""


def test_questions_do_without_pandas(tree: Path, targets: dict[str, list[Path]]) -> None:
    """It takes as long to load as most answers do."""
    pytest.importorskip("pandas")
    if int(duckdb.__version__.partition(".")[0]) < 2:
        pytest.skip("DuckDB before 2 loads pandas itself where a table of Arrow is read")
    index = made(tree)
    for question in ("templates", "saving", "blockers"):
        words = ["dedup", "ask", index.directory, question]
        subprocess.run([sys.executable, "-c", WITHOUT_PANDAS, *words], check=True)


def test_blockers_are_those_of_the_comparison(
    tree: Path, targets: dict[str, list[Path]], capfd: pytest.CaptureFixture[str]
) -> None:
    rows = ask(made(tree), "blockers", capfd)
    for name in ("whole", "pair", "different"):
        result = fold([MercuryObject.from_cubin(file.read_bytes()) for file in targets[name]])
        kept = sum(
            found is None and verdict is not None
            for found, verdict in zip(result.reference, result.verdicts, strict=True)
        )
        mine = [row for row in rows if row["target"] == name]
        assert sum(row["objects"] for row in mine) == kept
        assert all(row["code"] in (17, 18, 19) for row in mine)
    assert not [row for row in rows if row["target"] in ("pair", "alone", "older")]


def test_two_builds_save_differently(
    tree: Path, targets: dict[str, list[Path]], capfd: pytest.CaptureFixture[str]
) -> None:
    before = made(tree)
    later = tree.with_name("later")
    shutil.copytree(tree, later)
    (later / "pair/smoothing_b.cubin").unlink()
    settle()
    after = Index.open_or_make(tree.parent / "after")
    update(after, [bytes(later)], Local())
    capfd.readouterr()
    words = ["dedup", "compare", before.directory, after.directory, "saving", "--json"]
    assert main(words) == 0
    rows = {row["target"]: row for row in json.loads(capfd.readouterr().out)}
    saved = difference(targets["pair"])
    assert rows["pair"]["change"] == -saved
    assert (rows["pair"]["saved_before"], rows["pair"]["saved_after"]) == (saved, 0)
    assert rows["whole"]["change"] == 0
