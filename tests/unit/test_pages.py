"""Pages name what exists, show commands in blocks, and have lines of one width."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.english import pages

from pylink.options.commands import COMMANDS

ROOT = Path(__file__).parents[2]
PAGES = pages(ROOT)
# Written by programs, paragraph by paragraph in one line.
GENERATED = {"docs/diagnostics.md", "docs/python.md"}
# Pages that name modules and functions of pylink.
SOURCE_PAGES = (
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "docs/format-notes/releases.md",
    "docs/glossary.md",
    "docs/order.md",
    "docs/profile.md",
)
# Names of other projects, of examples, and of metrics that are composed.
OTHER_NAMES = {
    "KPARAM_INFO",
    "Py_LIMITED_API",
    "link__read_time_share",
    "perf_event_open",
    "perf_event_paranoid",
    "second_kernel",
}
FOLDERS = ("src", "tests", "benchmarks", "scripts", "demo", "packaging", "docs")
WIDTH = 120


def outside_blocks(page: str) -> Iterator[tuple[int, str]]:
    """Number and text of the lines that are not in a code block."""
    in_block = False
    for number, line in enumerate(PAGES[page].split("\n"), 1):
        if line.lstrip().startswith("```"):
            in_block = not in_block
        elif not in_block:
            yield number, line


def prose_lines(page: str) -> Iterator[tuple[int, str]]:
    """The lines outside of blocks, tables, headings and pictures."""
    for number, line in outside_blocks(page):
        if not line.startswith(("    ", "|", "#", "<", "![")):
            yield number, line


@pytest.mark.parametrize("page", sorted(PAGES))
def test_commands_stand_in_blocks(page: str) -> None:
    command = re.compile(rf"pylink (?:{'|'.join(COMMANDS)}) .*-")
    assert [line for _, line in outside_blocks(page) if command.match(line)] == []


@pytest.mark.parametrize("page", sorted(PAGES.keys() - GENERATED))
def test_lines_have_one_width(page: str) -> None:
    long = [(number, line) for number, line in prose_lines(page) if len(line) > WIDTH]
    # A link or a name that is longer than a line cannot be divided.
    assert [(number, line) for number, line in long if len(line.split()) > 1] == []


def files() -> list[Path]:
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    return [*paths, *ROOT.glob("*"), *ROOT.glob(".*")]


FILES = files()
FILE_NAMES = {path.name for path in FILES} | {path.stem for path in FILES}


def identifiers() -> Counter[str]:
    """All identifiers of sources, without comments and docstrings."""
    names: Counter[str] = Counter()
    for path in FILES:
        if path.suffix in (".py", ".pyi", ".pyx", ".pxd", ".h", ".c", ".toml", ".rows"):
            text = path.read_text(encoding="utf-8", errors="replace")
            text = re.sub(r'"""(?:.|\n)*?"""', "", text)
            names.update(re.findall(r"[A-Za-z_]\w*", re.sub(r"(?:^|\s)#.*", "", text)))
    return names


IDENTIFIERS = identifiers()
QUOTED = re.compile(r"`([A-Za-z_][\w./]*)`")
SOURCE = re.compile(r"[\w/]+\.(?:py|pyi|pyx|pxd)$")


def is_name(text: str) -> bool:
    """Whether a quoted text is a name of the sources: of several words, or in capitals."""
    return "/" not in text and bool(re.search(r"[a-z]_[a-z]|[A-Z]_[A-Z]", text))


@pytest.mark.parametrize("page", SOURCE_PAGES)
def test_names_exist(page: str) -> None:
    text = "\n".join(line for _, line in outside_blocks(page))
    missing = set()
    for quoted in QUOTED.findall(text):
        if SOURCE.match(quoted):
            missing |= {quoted} - {quoted if quoted.rpartition("/")[2] in FILE_NAMES else ""}
        elif is_name(quoted):
            parts = {part for part in quoted.split(".") if part not in FILE_NAMES}
            missing |= {part for part in parts if part not in IDENTIFIERS} - OTHER_NAMES
    assert missing == set()


def test_a_function_is_in_the_module_that_a_page_names() -> None:
    reference = re.compile(r"`(\w+)` of `([\w/]+\.(?:py|pyx|pxd))`")
    for page in SOURCE_PAGES:
        for name, module in reference.findall(PAGES[page]):
            paths = [path for path in FILES if str(path).endswith(f"/{module}")]
            assert paths, f"{page}: {module}"
            texts = [path.read_text(encoding="utf-8") for path in paths]
            assert any(re.search(rf"\b{name}\b", text) for text in texts), f"{page}: {name}"


def test_a_room_has_one_line() -> None:
    page = PAGES["ARCHITECTURE.md"]
    rooms = page[page.index("| room | subject |") : page.index("## Facts about formats")]
    cells = [row.split("|")[2].split() for row in rooms.splitlines() if row.startswith("| `")]
    assert len(cells) > 40
    assert [" ".join(words) for words in cells if len(words) > 25] == []


def test_every_room_is_named() -> None:
    page = PAGES["ARCHITECTURE.md"]
    folders = [path.parent.name for path in (ROOT / "src/pylink").glob("*/__init__.py")]
    assert [name for name in folders if f"`{name}/`" not in page and name != "_native"] == []
