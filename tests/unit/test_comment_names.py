"""Comments and docstrings: names in backquotes exist, lists have a line for each item."""

from __future__ import annotations

import re
from pathlib import Path

from helpers.english import comments

ROOT = Path(__file__).parents[2]
CODE = ("**/*.py", "**/*.pyi", "**/*.pyx", "**/*.pxd", "**/*.h", "**/*.c", "**/*.j2", "**/*.proto")
PLACES = ("src", "tests", "scripts", "benchmarks", "packaging")
# Examples, and names of other programs' files.
EXAMPLES = frozenset(
    [
        "__array__",
        "__cudaFoo",
        "_5f_a_cu_1",
        "compute_100f",
        "cudaFoo",
        "dram__bytes_read.sum",
        "dram__bytes_read.sum.per_second",
        "gpu/CMakeFiles/app.dir/a.cu.o",
        "gpu/app",
        "nvidia/cu13",
        "nvidia/cuda_nvcc",
        "pkg/_objs/app/a.o",
        "pkg/app",
        "sect",
        "unit__quantity.rollup",
    ]
)
NAME = re.compile(r"`+([A-Za-z_][\w./]*)`+")
# The mark of an item, or of a line of a comment, that a change of line ends left in the text.
FUSED = re.compile(r"(?:[^\W\d_]{2}|[.:;,]) \*(?: \S|$)", re.MULTILINE)
PROSE = re.compile(r'"""(?:.|\n)*?"""|#.*')


def sources(*places: str) -> list[Path]:
    return [
        path
        for place in places
        for pattern in CODE
        for path in (ROOT / place).glob(pattern)
        if ".venv" not in path.parts
    ]


def path_names(files: list[Path]) -> set[str]:
    """Names of files and folders, with and without suffix."""
    parts = {part for path in files for part in path.relative_to(ROOT).parts}
    return parts | {part.partition(".")[0] for part in parts}


def identifiers(files: list[Path]) -> set[str]:
    """Words of the code."""
    words: set[str] = set()
    for path in files:
        code = PROSE.sub("", path.read_text(encoding="utf-8", errors="replace"))
        words.update(re.findall(r"[A-Za-z_]\w*", code))
    return words


def is_known(name: str, words: set[str], names: set[str]) -> bool:
    last = name.rstrip("/").rpartition("/")[2]
    if "/" in name or last in names:
        return last in names or last.partition(".")[0] in names
    return all(len(part) <= 3 or part in words | names for part in name.split("."))


def stale(files: list[Path], words: set[str], names: set[str]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}: {name}"
        for path in files
        for text in comments(path)
        for name in NAME.findall(text)
        if name not in EXAMPLES and not is_known(name, words, names)
    ]


def test_names_in_comments_exist() -> None:
    files = sources(*PLACES)
    pages = [*ROOT.glob("*.*"), *ROOT.glob("docs/**/*.md")]
    assert stale(sources("src"), identifiers(files), path_names([*files, *pages])) == []


def test_stale_names_are_found() -> None:
    file = ROOT / "tests" / "unit" / Path(__file__).name
    words, names = identifiers([file]) - {"identifiers"}, path_names([file])
    assert is_known("stale", words, names)
    assert is_known("tests/unit", words, names)
    assert not is_known("identifiers", words, names)
    assert not is_known("tests/gone.py", words, names)
    assert not is_known("path.identifiers", words, names)


def fused(path: Path) -> list[str]:
    """Lines of comments with a star between words."""
    return [line for text in comments(path) for line in text.splitlines() if FUSED.search(line)]


def test_items_of_lists_begin_lines() -> None:
    found = {str(path.relative_to(ROOT)): fused(path) for path in sources(*PLACES)}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_fused_lists_are_found(tmp_path: Path) -> None:
    header, module = tmp_path / "a.h", tmp_path / "a.pyx"
    header.write_text("/* One. * *\n * Two *\n   three. */\n/* Four\n * five */\n")
    module.write_text(
        '"""Rows:\n\n* one; * two\n* three\n"""\nx = y * z    # `a * b` is f(a) * 2\n'
    )
    assert fused(header) == ["One. * *", "Two *"]
    assert fused(module) == ["* one; * two"]
