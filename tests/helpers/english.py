"""Checks of plain English: words to avoid, and the length of sentences."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

# By regular expression of words to avoid: the words to write instead.
WORDS = {
    r"unless (?:told|given)": "(default: ...)",
    r"(?<!there )(?:is|are|was|were) no (?!(?:longer|more|less|one)\b)": "is not a",
    r"ha(?:s|ve) to be": "must",
    r"(?<!one )pass(?:es|ed)? over": "ignore, skip",
    r"lea(?:ves?|ving) (?:\w+ )?out|left out": "omit",
    r"found out": "detected",
    r"mended": "fixed",
    r"the same with": "like",
    r"(?<!left )(?<!leaves )behind": "after",
    r"but for": "except for",
    r"whole or not at all": "atomically",
    r"(?:for|so|so that) who (?!can\b)": "who needs a noun: readers, callers, the process that",
    r"(?:some|no|any)body watches|who watches": "observe",
    r"(?:colour|behaviour|favour|neighbour)\w*|centre|grey|learnt|spelt": "American spelling",
    r"(?:analy|optimi|recogni|normali|initiali|seriali)s(?:e[ds]?|ing|ation)": "American spelling",
}
# Further words to avoid in texts that commands print.
PRINTED_WORDS = {
    r"lea(?:ves?|ving) (?:\w+ ){0,4}(?:out|away)|left (?:\w+ ){0,4}(?:out|away)": "omit",
    r"nobody|somebody": "name the program or person",
    r"anew": "again",
    r"in vain": "without success",
    r"made by CUDA": "compiled with CUDA",
}
# Further words to avoid on pages for users, but not on those about formats.
PAGE_WORDS = {
    r"th(?:at|ose) of": "repeat the noun, or write: nvlink's",
    r"(?:is|are|was|were) there(?! (?:a|an|no|any|more)\b)|there already": (
        "exist: if the output exists"
    ),
    r"(?:code|copy|copies|cubins?|entr(?:y|ies)|functions?|kernels?|members?|relocations?|symbols?)"
    r" (?:go|goes|stays?)(?! (?:to|on|through)\b)": "is removed, is kept",
    r"(?:that|which|they|it|PTX|LTO-IR) (?:goes|stays?)(?! (?:to|on|through|beyond)\b)": (
        "is removed, is kept"
    ),
    r"for (?:they|it|he|she) (?:is|are|has|have)|so does each \w+, for": "because",
    r"(?:refused|omitted|ignored) are": "pylink refuses",
    r"was \w+ed so|\w+ed so cannot": "this way",
}
LONGEST = 35  # words of a sentence


def sentences(text: str) -> list[str]:
    """Return the sentences of a text.

    Items of a list after a colon or with semicolons count as sentences.
    """
    return re.split(r"(?<=[.;:?!])\s+|(?<=[.?!]\))\s+", text)


def long_sentences(texts: Iterable[str]) -> list[str]:
    """Return the sentences with more than LONGEST words."""
    candidates = [sentence for text in texts for sentence in sentences(text)]
    return [sentence for sentence in candidates if len(sentence.split()) > LONGEST]


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs, items of lists and cells of tables in a text, each in one line."""
    parts = re.split(r"\n\s*\n|\n\s*(?:[-*]|\d+\.) +|\n?\s*\|| {3,}", text)
    return [" ".join(part.split()) for part in parts]


def pages(root: Path) -> dict[str, str]:
    """Return the texts of the project's pages by path."""
    roots = (root / name for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"))
    return {
        str(path.relative_to(root)): path.read_text(encoding="utf-8")
        for path in sorted([*root.glob("docs/**/*.md"), *roots])
    }


# A comment of C, or a string or character, which may contain the start of a comment.
C_COMMENT = re.compile(
    r"""/\*(?P<block>.*?)\*/|(?P<lines>(?:(?<![^\n])[ \t]*//[^\n]*\n)+)|//(?P<rest>[^\n]*)"""
    r"""|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""",
    re.DOTALL,
)


def c_comments(text: str) -> Iterator[str]:
    """Yield the comments of C; comments on consecutive lines of their own are one."""
    for match in C_COMMENT.finditer(text):
        fills_line = match["block"] or match["lines"] or match["rest"]
        if fills_line:
            yield re.sub(r"^[ \t]*(?://|\*)?[ \t]?", "", fills_line, flags=re.MULTILINE)


def comments(path: Path) -> Iterator[str]:
    """Yield the docstrings and comments of a file of Python, Cython or C."""
    text = path.read_text(encoding="utf-8")
    if path.suffix in (".c", ".h"):
        yield from c_comments(text)
        return
    if path.suffix in (".py", ".pyi"):
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, kinds)]
        yield from filter(None, map(ast.get_docstring, nodes))
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        # Tokens, since strings may contain the start of a comment.
        marks = [token for token in tokens if token.type == tokenize.COMMENT]
        numbered = [(token.start[0] - 1, token.start[1], token.string) for token in marks]
    else:
        docstring = re.compile(r'"""(.*?)"""', re.DOTALL)
        yield from docstring.findall(text)
        bare = docstring.sub(lambda match: "\n" * match[0].count("\n"), text)
        numbered = [
            (row, match.start(1), match[1])
            for row, line in enumerate(bare.splitlines())
            if (match := re.search(r"(?:^|\s)(#.*)", line))
        ]
    fills_line = [line.lstrip().startswith("#") for line in text.splitlines()]
    block: list[str] = []
    end = (-1, -1)
    for row, column, comment in numbered:
        # Comments after code are not joined.
        if (row, column) != (end[0] + 1, end[1]) or not fills_line[row]:
            yield "\n".join(block)
            block = []
        block.append(comment.lstrip("#:").removeprefix(" "))
        end = row, column
    yield "\n".join(block)
