"""Texts and pages that users read follow the rules of plain English that a program can check.

nvlink's own words stay as they are; none of them breaks these rules.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from helpers.english import PAGE_WORDS, PRINTED_WORDS, WORDS, long_sentences, pages, paragraphs

from pylink.diagnostics.help import HELP as EXPLANATIONS
from pylink.diagnostics.kinds import KINDS
from pylink.options.commands import COMMANDS
from pylink.options.help import HELP

ROOT = Path(__file__).parents[2]


def texts() -> Iterator[tuple[str, str]]:
    """Name and text of messages, explanations, options, and commands with their options."""
    yield from ((f"message {kind}", template) for kind, (_, _, template) in KINDS.items())
    yield from ((f"explanation {kind}", text) for kind, text in EXPLANATIONS.items())
    yield from ((f"--{name}", text) for name, (_, text) in HELP.items())
    for name, command in COMMANDS.items():
        yield f"pylink {name}", command.about
        if command.parser:
            parser = import_module(command.parser).parser()
            assert isinstance(parser, argparse.ArgumentParser)
            yield f"pylink {name} --help", f"{parser.description or ''}\n{parser.epilog or ''}"
            for action in parser._actions:
                yield f"pylink {name} {action.dest}", str(action.help or "")


TEXTS = dict(texts())


def test_there_are_texts_of_all_sorts() -> None:
    assert len(TEXTS) > 600
    assert {"message unknown-input", "explanation internal-error", "--arch"} <= set(TEXTS)
    assert len([name for name in TEXTS if name.startswith("pylink ")]) > 100


def raised_texts() -> Iterator[tuple[str, str]]:
    """What exceptions say, by file and line; fields of a text are empty."""
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise) and node.exc is not None:
                parts = (part for part in ast.walk(node.exc) if isinstance(part, ast.Constant))
                text = " ".join(part.value for part in parts if isinstance(part.value, str))
                yield f"{path.relative_to(ROOT)}:{node.lineno}", text


RAISED = dict(raised_texts())


def test_there_are_texts_of_exceptions() -> None:
    assert len([text for text in RAISED.values() if " " in text]) > 400


@pytest.mark.parametrize(("pattern", "better"), WORDS.items())
def test_words_of_exceptions(pattern: str, better: str) -> None:
    found = re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE)
    assert {place: text for place, text in RAISED.items() if found.search(text)} == {}, better


def printed_texts() -> Iterator[tuple[str, str]]:
    """Strings with a blank that are not docstrings, by file and line: what commands may print."""
    for path in sorted((ROOT / "src").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        docstrings = {
            node.body[0].value
            for node in ast.walk(tree)
            if isinstance(node, kinds) and node.body and isinstance(node.body[0], ast.Expr)
        }
        for node in ast.walk(tree):
            if not isinstance(node, ast.Constant) or node in docstrings:
                continue
            if isinstance(node.value, str) and " " in node.value:
                yield f"{path.relative_to(ROOT)}:{node.lineno}: {node.value}", node.value


STRINGS = dict(printed_texts())


def test_there_are_texts_that_commands_print() -> None:
    assert len(STRINGS) > 4000


@pytest.mark.parametrize(("pattern", "better"), [*WORDS.items(), *PRINTED_WORDS.items()])
def test_words_that_commands_print(pattern: str, better: str) -> None:
    found = re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE)
    assert [place for place, text in STRINGS.items() if found.search(text)] == [], better


@pytest.mark.parametrize(("pattern", "better"), WORDS.items())
def test_words(pattern: str, better: str) -> None:
    found = re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE)
    assert {name: text for name, text in TEXTS.items() if found.search(text)} == {}, better


def test_sentences_are_short() -> None:
    assert {name: long for name, text in TEXTS.items() if (long := long_sentences([text]))} == {}


ROOT_PAGES = ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md")
PAGES = pages(ROOT)
# Says what pylink is, to anybody who comes.
FRONT = {"docs/index.md", *ROOT_PAGES}
# Tables of remarks have the texts that pylink prints.
PRINTED = {"docs/remark-passes.md", "docs/diagnostics.md"}
# Facts about formats, with the experiments, and pages with texts of the code.
NOTES = {
    "docs/device-link-cost.md",
    "docs/diagnostics.md",
    "docs/format-notes.md",
    "docs/older-objects.md",
    "docs/order.md",
    "docs/remark-passes.md",
    *(page for page in PAGES if page.startswith("docs/format-notes/")),
}
LONGEST_CELL = 40  # words; what needs more has a heading or a paragraph
GENERATED = "<!-- what follows is generated"


def prose(page: str) -> str:
    """A page without what it shows of programs: blocks, and code within a line."""
    text = re.sub(r"^```.*?^```$", "", PAGES[page], flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^    .*$", "", text, flags=re.MULTILINE)
    return re.sub(r"`[^`]*`", "CODE", text)


# Who reads a page and what it tells them, as in "For authors of build rules: how to start pylink."
GOAL = re.compile(r"For .+?: (?:how|what|which|where|its|the|every) ")


@pytest.mark.parametrize("page", sorted(PAGES.keys() - FRONT))
def test_a_page_begins_with_who_it_is_for_and_what_it_tells(page: str) -> None:
    heading, empty, first, second = PAGES[page].split("\n")[:4]
    assert heading.startswith("# ")
    assert not empty
    lead = f"{first} {second}"
    assert GOAL.match(lead) or "Every kind" in lead, lead


@pytest.mark.parametrize("page", sorted(PAGES.keys() - PRINTED))
def test_words_of_pages(page: str) -> None:
    text = " ".join(prose(page).split())
    words = {**WORDS, r"born|births?": "creation"}
    for pattern, better in words.items():
        if better == "like":  # On a page "the same" refers to what stands before.
            continue
        found = re.search(rf"\b(?:{pattern})\b", text, re.IGNORECASE)
        assert not found, f"{found.group()!r}: {better}" if found else ""


def guides() -> list[str]:
    """The pages below "Guides" in the navigation of the site that lie in docs/."""
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = site.partition("  - Guides:\n")[2].partition("  - Concepts:\n")[0]
    names = re.findall(r"- (?:.*: )?([\w-]+\.md)$", listed, re.MULTILINE)
    return [f"docs/{name}" for name in names if f"docs/{name}" in PAGES]


def test_there_are_guides() -> None:
    assert len(guides()) > 10
    assert "docs/builds.md" in guides()


@pytest.mark.parametrize("page", guides())
def test_a_guide_begins_with_the_goals_of_its_reader(page: str) -> None:
    """As sentences that begin with "To", or as a table of what a reader wants to do."""
    text = " ".join(prose(page).split())
    sentences = re.findall(r"(?:^|[.:!?|*] |\*\* )To [a-z]+ ", text)
    tables = re.findall(r"\| to(?: \w+)? \| [a-z]+ \| \|-", text)
    assert len(sentences) + 2 * len(tables) >= 2
    assert "```" in PAGES[page] or "\n    " in PAGES[page]


STARTS = ["docs/index.md", "docs/install.md", "docs/start.md"]


@pytest.mark.parametrize("page", [*STARTS, *guides()])
def test_a_guide_ends_with_what_to_read_next(page: str) -> None:
    """A list of two or three pages, each with what a reader finds there."""
    heading, _, steps = PAGES[page].rpartition("\n## ")[2].partition("\n")
    items = re.split(r"^\* ", steps, flags=re.MULTILINE)[1:]
    assert heading == "Next steps"
    assert 2 <= len(items) <= 3
    assert [item for item in items if not re.match(r"\[[^\]]+\]\([^)]+\): \w", item)] == []


@pytest.mark.parametrize("page", sorted(PAGES.keys() - NOTES))
def test_idioms_of_pages_for_users(page: str) -> None:
    text = " ".join(prose(page).partition(GENERATED)[0].replace("CODE", "`x`").split())
    for pattern, better in PAGE_WORDS.items():
        found = re.search(rf"\b(?:{pattern})\b", text, re.IGNORECASE)
        assert not found, f"{text[found.start() - 40 : found.end() + 40]!r}: {better}"


@pytest.mark.parametrize(
    "text",
    [
        "the exit status is that of the command",
        "those that are there stay",
        "On a file that is there, a link fails",
        "relocatable cubins go that the link contains",
        "For each that stays the reason is printed",
        "for it is a pointer",
        "Refused are: pointers into a container",
        "What was pruned so cannot be linked",
    ],
)
def test_idioms_are_found(text: str) -> None:
    assert any(re.search(rf"\b(?:{pattern})\b", text, re.IGNORECASE) for pattern in PAGE_WORDS)


@pytest.mark.parametrize(
    "text",
    ["there is a file", "where there are no inputs", "the code goes to the pools", "looks for it"],
)
def test_plain_sentences_are_not_idioms(text: str) -> None:
    found = [p for p in PAGE_WORDS if re.search(rf"\b(?:{p})\b", text, re.IGNORECASE)]
    assert found == []


@pytest.mark.parametrize("page", sorted(PAGES.keys() - NOTES - {"CONTRIBUTING.md"}))
def test_cells_of_tables_are_short(page: str) -> None:
    rows = re.findall(r"^\|.*$", PAGES[page].partition(GENERATED)[0], re.MULTILINE)
    cells = [cell.strip() for row in rows for cell in re.split(r"(?<!\\)\|", row)]
    assert [cell for cell in cells if len(cell.split()) > LONGEST_CELL] == []


@pytest.mark.parametrize("page", sorted(PAGES.keys() - PRINTED))
def test_sentences_of_pages_are_short(page: str) -> None:
    assert long_sentences(paragraphs(prose(page))) == []
