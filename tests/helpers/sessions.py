"""Blocks that pages show: files, and what a shell prints.

A session has commands after a prompt, each followed by what it prints. A line `...` stands for any
number of lines, and `...` in a line for any text. Times may differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

FENCED = re.compile(r'^```(\w+)(?: title="([^"\n]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROMPT = re.compile(r"^\$ ", re.MULTILINE)
TIME = re.compile(r"\d(?:\\\.|\d)*(?=(?:\\ )?m?s\b)")  # in an escaped line


class Block(NamedTuple):
    """A block of a page: its language, the name of the file that it shows or "", and its text."""

    language: str
    title: str
    text: str


def blocks(page: str) -> Iterator[Block]:
    """Return the blocks of a page that name their language."""
    return (Block(*parts) for parts in FENCED.findall(page))


def sessions(page: str) -> Iterator[str]:
    """Return the blocks of a page that begin with a prompt."""
    return (text for text in BLOCK.findall(page) if PROMPT.match(text))


def needs_compiler(page: str) -> bool:
    """Return whether a session of the page starts nvcc or a host compiler."""
    return any(re.search(r"\b(?:nvcc|g\+\+)", session) for session in sessions(page))


def commands(session: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a session, and its output on the page."""
    for part in PROMPT.split(session.replace("\\\n", ""))[1:]:
        command, _, page_output = part.partition("\n")
        yield command, page_output


def prints(page_output: str, printed: str) -> bool:
    """Return whether the output of a command is the one on the page."""
    pattern = "".join(map(line_pattern, page_output.splitlines()))
    text = "".join(f"{line.rstrip()}\n" for line in printed.splitlines())
    return re.fullmatch(pattern, text) is not None


def line_pattern(line: str) -> str:
    """Return the regular expression for a line on a page."""
    if line == "...":
        return r"(?:.*\n)*?"
    words = re.escape(line.rstrip()).replace(re.escape("..."), ".*")
    return TIME.sub(r"\\d[\\d.]*", words) + r"\n"
