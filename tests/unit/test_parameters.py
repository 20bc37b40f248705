"""A call that is read gives few values by their place: no function takes more than six so.

Values that are given by name say at the call what they are, and do not count. What belongs together
is one argument: a struct in native code, a result or a record in Python.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src"
MOST = 6
HEAD = re.compile(r"^ *(?:cdef|cpdef|def)\b[^\n=(:]*?(\w+)\(", re.MULTILINE)
# What follows the parameters of a function, and not those of a call.
TAIL = re.compile(r"\s*(?:noexcept\b|except\b|nogil\b|->|:)")


def closing(text: str, at: int) -> int:
    """Where the bracket ends that was opened before `at`."""
    depth = 1
    while depth:
        depth += (text[at] in "([{") - (text[at] in ")]}")
        at += 1
    return at - 1


def split(text: str) -> Iterator[str]:
    """The parts between commas outside of all brackets."""
    start = at = 0
    while at < len(text):
        if text[at] in "([{":
            at = closing(text, at + 1)
        elif text[at] == ",":
            yield text[start:at].strip()
            start = at + 1
        at += 1
    yield text[start:].strip()


def native(text: str) -> Iterator[tuple[str, int]]:
    """Each function of a native source, with the number of what it takes by place."""
    for head in HEAD.finditer(text):
        end = closing(text, head.end())
        if TAIL.match(text, end + 1):
            given = [part for part in split(text[head.end() : end]) if part not in ("", "self")]
            by_place = given.index("*") if "*" in given else len(given)
            yield head[1], by_place


def python(text: str) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = [*node.args.posonlyargs, *node.args.args]
            yield (
                node.name,
                len([argument for argument in given if argument.arg not in ("self", "cls")]),
            )


def test_parameters_are_counted() -> None:
    text = (
        "cdef inline bint a(int x, int (*f)(int, int) noexcept,\n   int y=g(1, 2)) nogil:\n"
        "    b(1, 2)\n\ndef c(self, x, *, y=1):\n    pass\ncdef class D:\n    def e(self):\n"
    )
    assert list(native(text)) == [("a", 3), ("c", 1), ("e", 0)]
    assert list(python("def f(self, a, b=1, /, c=2, *, d): ...")) == [("f", 3)]


def test_no_function_takes_many_values_by_place() -> None:
    found = {}
    for pattern, functions in ("**/*.p[yx][xd]", native), ("**/*.py", python):
        for path in SOURCES.glob(pattern):
            for name, count in functions(path.read_text(encoding="utf-8")):
                found[f"{path.relative_to(SOURCES)}: {name}"] = count
    assert len(found) > 4500
    assert {name: count for name, count in found.items() if count > MOST} == {}
