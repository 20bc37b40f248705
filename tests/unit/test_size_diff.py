"""`pylink size --diff` and `--budget`: planted changes are found, named and added up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers.cubin_builder import Cubin
from helpers.fatbin_builder import container, entry, host_object

from pylink.command.sizes import main
from pylink.size import measure, rows
from pylink.size.budget import BadBudget, list_exceeded, read_budget
from pylink.size.diff import COLUMNS, changes, reasons, stem
from pylink.size.diffshow import JSON_LEVELS


def cubin(sizes: dict[str, int]) -> bytes:
    made = Cubin()
    for name, size in sizes.items():
        made.function(name, code=bytes(range(256)) * (size // 256))
    return made.build()


OLD = {"_Z1fIiEvv": 25600, "_Z4goneIiEvv": 12800, "_Z5grownIiEvv": 25600, "_Z4samev": 5120}
NEW = {
    "_Z1fIiEvv": 25600, "_Z1fIfEvv": 25600, "_Z5grownIiEvv": 51200, "_Z3newIiEvv": 12800,
    "_Z4samev": 5120,
}  # fmt: skip


@pytest.fixture(name="builds")
def make_builds(tmp_path: Path) -> tuple[Path, Path]:
    """Two releases of a library: functions, a target and a mode differ."""
    folders = tmp_path / "old", tmp_path / "new"
    for folder in folders:
        folder.mkdir()
    (folders[0] / "libfoo.so.1.2").write_bytes(
        host_object([(".nv_fatbin", container(entry(cubin(OLD), 80), entry(cubin(OLD), 70)))])
    )
    (folders[1] / "libfoo.so.1.3").write_bytes(
        host_object(
            [
                (".rodata", bytes(50_000)),
                (
                    ".nv_fatbin",
                    container(entry(cubin(NEW), 80, mode="zstd"), entry(cubin(NEW), 90)),
                ),
            ]
        )
    )
    return folders[0] / "libfoo.so.1.2", folders[1] / "libfoo.so.1.3"


def test_differences_add_up_at_every_level(builds: tuple[Path, Path]) -> None:
    old, new = (measure([str(path)]) for path in builds)
    for by in JSON_LEVELS:
        for column in COLUMNS:
            whole = getattr(rows(new, ())[0], column) - getattr(rows(old, ())[0], column)
            assert sum(change.difference(column) for change in changes(old, new, by)) == whole
    # Of another version it is the same file.
    (file,) = changes(old, new, ("file",))
    assert file.keys == ("libfoo.so",)
    assert file.old.installed
    assert file.new.installed


def test_planted_changes_are_the_reasons(builds: tuple[Path, Path]) -> None:
    old, new = (measure([str(path)]) for path in builds)
    texts = {reason.text for reason in reasons(old, new)}
    assert texts == {
        "relocatable cubin: target sm_70 gone (1 entries)",
        "relocatable cubin: target sm_90 added (1 entries)",
        "relocatable cubin of sm_80: stored -> zstd (1 entries)",
        "template f<>: instances 1 -> 2",
        "template gone<> gone",
        "template new<> new",
        "template grown<>: code grown by 100%, same instances",
    }
    assert not reasons(new, new)


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("a/libfoo.so.12.8.1", "a/libfoo.so"),
        ("foo-1.2.3-py3-none-any.whl", "foo-py3-none-any.whl"),
        ("foo-1.2.3.post1.dist-info/RECORD", "foo.dist-info/RECORD"),
        ("libfoo_cuda128.so", "libfoo_cuda128.so"),
        ("sm_90.cubin", "sm_90.cubin"),
    ],
)
def test_names_without_versions(name: str, plain: str) -> None:
    assert stem(name).replace("--", "-").replace("-.", ".") == plain


def test_forms_of_a_difference(
    builds: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(builds[1]), "--diff", str(builds[0])]
    assert main(words) == 0
    text = capsys.readouterr().out
    assert "target sm_90 added" in text
    assert main([*words, "--markdown"]) == 0
    assert "**Size of device code" in capsys.readouterr().out
    assert main([*words, "--csv", "--by", "target"]) == 0
    assert capsys.readouterr().out.startswith("target,unpacked_old,unpacked_new,")
    assert main([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [table["by"] for table in document["tables"]] == [list(by) for by in JSON_LEVELS]
    assert main([str(builds[1]), "--diff", "gone"]) == 2


@pytest.mark.parametrize(
    ("line", "status", "said"),
    [
        ('installed = "1 GB"', 0, ""),
        ('installed = "1 kB"', 1, "installed: "),
        ('"libfoo*" = "10 kB"', 1, "libfoo*: "),
        ('"libfoo*:sm_70" = "1 B"', 0, ""),
        ('"libfoo*:sm_90" = "1 KiB"', 1, "libfoo*:sm_90: "),
        ('growth = "-1 %"', 2, "not an amount"),
        ('growth = "1000 %"', 0, ""),
        ('growth = "1 B"', 1, "growth: installed +"),
        ('"libbar.so" = "1 MB"', 2, "no file has this name"),
        ('download = "1 MB"', 2, "in an archive"),
        ("installed = 5", 2, ":2: not a limit"),
        ('installed = "5 lightyears"', 2, ":2: not an amount"),
        ('installed = "1 GB"\ninstalled = "2 GB"', 2, "has a limit already"),
    ],
)
def test_budgets(
    line: str,
    status: int,
    said: str,
    builds: tuple[Path, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    budget = tmp_path / "budget.toml"
    budget.write_text(f"# limits\n{line}\n", encoding="utf-8")
    words = [str(builds[1]), "--diff", str(builds[0]), "--budget", str(budget)]
    assert main(words) == status
    err = capsys.readouterr().err
    assert said in err
    assert len(err.splitlines()) == (status != 0)


def test_growth_needs_a_build_to_compare_with(builds: tuple[Path, Path], tmp_path: Path) -> None:
    budget = tmp_path / "budget.toml"
    budget.write_text('growth = "1 %"\n', encoding="utf-8")
    with pytest.raises(BadBudget, match="--diff"):
        list_exceeded(read_budget(str(budget)), measure([str(builds[1])]), None)


def test_the_example_is_a_budget() -> None:
    example = Path(__file__).parents[2] / "examples" / "size" / "budget.toml"
    assert len(read_budget(str(example))) == 4
