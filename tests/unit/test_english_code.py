"""Comments and docstrings follow the rules of plain English that a program can check."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.english import WORDS, c_comments, comments, long_sentences, paragraphs

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src"
PYTHON = (".py", ".pyi")
PATTERNS = ("**/*.py", "**/*.pyi", "**/*.pyx", "**/*.pxd", "**/*.h", "**/*.c")
FILES = [path for pattern in PATTERNS for path in SOURCES.glob(pattern)]
HELPERS_IN_C = sorted(ROOT.glob("tests/**/*.c"))
TOOLS = sorted(
    path for room in ("benchmarks", "demo", "scripts") for path in ROOT.glob(f"{room}/*.py")
)
HELPERS = sorted(ROOT.glob("tests/helpers/**/*.py"))
OTHERS = {"C of tests": HELPERS_IN_C, "tools": TOOLS, "helpers of tests": HELPERS}
ROOMS = sorted({str(path.parent.relative_to(SOURCES)) for path in FILES})


def prose(path: Path) -> list[str]:
    """What a file says, without code."""
    texts = [re.sub(r"``?[^`]*``?", "CODE", text) for text in comments(path)]
    return [paragraph for text in texts for paragraph in paragraphs(text)]


def test_comments_of_all_sorts_are_found() -> None:
    assert len(ROOMS) > 50
    assert "_native/merge" in ROOMS
    said = " ".join(prose(Path(__file__)))
    assert "Comments and docstrings follow" in said  # and this, at the end of a line
    assert "and this, at the end of a line" in said
    assert "is not a comment" not in said


def test_comments_of_c_are_found() -> None:
    text = 'a; // first\n// second,\n// third\n/* fourth\n * fifth */ "// none" \'"\' /* sixth */\n'
    found = [" ".join(comment.split()) for comment in c_comments(text)]
    assert found == ["first", "second, third", "fourth fifth", "sixth"]


def test_the_formatter_obeys_its_pragmas() -> None:
    """A pragma that is a part of another comment is ignored, and a table becomes unreadable."""
    python = [path for path in FILES if path.suffix in PYTHON]
    lines = {f"{path}: {line}" for path in python for line in path.read_text().splitlines()}
    found = [line for line in lines if "fmt: o" in line]
    assert len(found) > 15
    assert [line for line in found if not re.search(r": +# fmt: o(?:n|ff)$", line)] == []


@pytest.mark.parametrize("room", [*ROOMS, *OTHERS])
def test_words_and_sentences(room: str) -> None:
    files = [path for path in FILES if path.parent == SOURCES / room] or OTHERS[room]
    assert files
    for path in files:
        said = prose(path)
        assert long_sentences(said) == [], path.name
        for text in said:
            assert not re.search(r"(?:^|[.:?!] )Of [a-z]", text), f"{path.name}: {text}: of what?"
            for pattern, better in WORDS.items():
                found = re.search(rf"\b(?:{pattern})\b", text, re.IGNORECASE)
                assert not found, f"{path.name}: {text}: {better}"


# Participles and pronouns: as names they leave open what they hold or do.
BARE = frozenset(
    """
    each found given here kept known looks made mine named nice of one ours own said shown taken
    theirs there told wanted what where whole
    """.split()  # noqa: SIM905 -- as words of a text they are read at once
)
BARE_FUNCTIONS = BARE - {"of"} | frozenset(
    """
    checked chosen compared compiled counted cut defined described done editable expanded explained
    followed forgotten gathered grouped grown joined left limited listed lost measured missing moved
    omitted opened packed padded parsed plain printed quoted readable recorded replaced restored
    rounded searched seen selected stripped written
    """.split()  # noqa: SIM905 -- as above
)
# Names that users or a protocol know.
PUBLISHED = {
    "_native/tables.pyi": {"whole"},
    "api/values.py": {"given"},
    "diagnostics/record.py": {"where"},
    "inspect/difference.py": {"where"},
    "inspect/rows.py": {"where"},
    "profile/counts.py": {"kept"},
    "profile/model.py": {"opened"},
    "profile/tables.py": {"kept"},
    "scripts/program_sources.py": {"made"},
    "size/zips.py": {"readable"},
    "tabular/table.py": {"where"},
}


def names(tree: ast.AST) -> Iterator[tuple[int, str, frozenset[str]]]:
    """Line and name of each variable, parameter, attribute and function, and what it is not."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id, BARE
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg, BARE
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr, BARE
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno, node.name, BARE_FUNCTIONS


def test_names_say_what_they_hold() -> None:
    package = SOURCES / "pylink"
    modules = {str(path.relative_to(package)): path for path in FILES if path.suffix in PYTHON}
    modules |= {str(path.relative_to(ROOT)): path for path in (*TOOLS, *HELPERS)}
    bare = [
        f"{module}:{line}: {name}"
        for module, path in modules.items()
        for line, name, forbidden in names(ast.parse(path.read_text(encoding="utf-8")))
        if name.strip("_") in forbidden and name.strip("_") not in PUBLISHED.get(module, ())
    ]
    assert bare == []


def test_one_is_the_name_of_nothing() -> None:
    places = [ROOT / name for name in ("tests", "benchmarks", "scripts", "demo")]
    paths = [path for place in places for path in place.rglob("*.py")]
    assert [
        f"{path.relative_to(ROOT)}:{line}"
        for path in paths
        for line, name, _ in names(ast.parse(path.read_text(encoding="utf-8")))
        if name == "one"
    ] == []


# Clauses without a verb of their own: a reader needs the line below to know what they are about.
CLAUSE = re.compile(r"(?:What|How|Where|Which|Who|When|The same|Those|That of|As|It|Its|They)\b")


def is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any("property" in ast.unparse(decorator) for decorator in node.decorator_list)


def test_functions_say_what_they_return() -> None:
    """The first sentence of a docstring is understood without the others around it."""
    unclear = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {docstring.splitlines()[0]}"
        for path in (*FILES, *TOOLS, *HELPERS)
        if path.suffix in PYTHON
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and (docstring := ast.get_docstring(node))
        and (CLAUSE.match(docstring) or (docstring.startswith("Whether") and not is_property(node)))
    ]
    assert unclear == []


# What the docstrings of functions begin with.
VERBS = frozenset(
    """
    absorb add advance allocate analyze answer append apply ask assemble assert assign attribute
    begin block build call cancel chain change check choose classify clear close collect combine
    commit compare compile complete compress compute concatenate configure continue convert copy
    correct count create cut decide decode decompress define delete describe destroy divide do
    double draw drop duplicate emit empty encode end enter expand fetch fill find finish fit fix
    flag flush fold follow forget fork form format forward free give go group grow guard handle hash
    hide import include index inflate insert install intern join keep kill label lay leave let limit
    link list load lock make map mark match measure merge move name number omit open order overwrite
    pack pad parse pass pick pickle place plan print profile propose prune put query quote raise
    read rebuild record recycle reduce refuse release remove rename render replace report require
    reserve resolve restart return rewrite run scale scan select send serve set show shrink skip
    sort split start stop store sum support swap take tell undo unmap unpack update use wait warn
    work wrap write yield
    """.split()  # noqa: SIM905 -- as above
)


def begins_with_verb(docstring: str) -> bool:
    """Whether a docstring begins in the imperative: not with a noun, as in `Name of X`."""
    first = re.split(r"\W", docstring)[0]
    return first.lower() in VERBS and (first == "Warn" or not docstring.startswith(f"{first} of "))


def test_nouns_in_front_of_docstrings_are_found() -> None:
    verbs = ["Return the name.", "Return, by name, X.", "Name X."]
    nouns = ["Name of X.", "The name.", "HTML of X."]
    assert [begins_with_verb(text) for text in verbs + nouns] == [True] * 3 + [False] * 3


def test_docstrings_of_functions_begin_with_verbs() -> None:
    """`Return the X of Y.`, not `The X of Y.`: one mood, as CONTRIBUTING.md says."""
    nouns = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {docstring.splitlines()[0]}"
        for path in (*FILES, *TOOLS, *HELPERS)
        if path.suffix in PYTHON
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and (docstring := ast.get_docstring(node))
        and not begins_with_verb(docstring)
        and not is_property(node)
        and not node.name.startswith("test_")
    ]
    assert nouns == []


# The docstring of a native function.
NATIVE_DOCSTRING = re.compile(
    r'^ *(?:cdef|cpdef|def)\b(?! class)[^\n]*\((?:[^:]|:(?!\n))*:\n\s+"""((?:.|\n)*?)"""',
    re.MULTILINE,
)


def test_docstrings_of_native_functions_begin_with_verbs() -> None:
    docstrings = {
        path: NATIVE_DOCSTRING.findall(path.read_text(encoding="utf-8"))
        for path in FILES
        if path.suffix in (".pyx", ".pxd")
    }
    assert sum(map(len, docstrings.values())) > 1000
    assert [
        f"{path.relative_to(SOURCES)}: {text.strip().splitlines()[0]}"
        for path, texts in docstrings.items()
        for text in texts
        if not begins_with_verb(text.strip())
    ] == []


def test_functions_in_c_return_whether() -> None:
    """A comment that begins with Whether is that of a variable."""
    function = re.compile(r"/\* Whether (?:[^*]|\*(?!/))*\*/\n[\w ]*\w+ \*?\w+\(")
    assert [
        f"{path.relative_to(SOURCES)}: {found[0].splitlines()[0]}"
        for path in FILES
        if path.suffix in (".c", ".h")
        for found in function.finditer(path.read_text(encoding="utf-8"))
    ] == []


def test_comments_say_what_is_done_or_what_a_thing_is() -> None:
    assert len(FILES) > 700
    unclear = [
        f"{path.relative_to(ROOT)}: {text.strip().splitlines()[0]}"
        for path in (*FILES, *TOOLS, *HELPERS)
        for text in comments(path)
        if CLAUSE.match(text.strip())
    ]
    assert unclear == []


# A comment that begins with a preposition has a comma after the phrase, so that the sentence has a
# subject of its own. `By X: ...` labels what is looked up by an X. With a participle, a comment
# says of nothing what is done to it.
PHRASE = re.compile(r"(?:With|Without|Before|After|At|For|From|In|Like|On|Since|Until)\b")
PARTICIPLE = re.compile(
    r"(?:[A-Z]\w*[^e]ed(?:,| (?:after|at|before|below|by|for|from|here|if|in|late|on|only|to)\b)"
    r"|(?:Built|Given|Held|Kept|Made|Shown|Written) (?:by|for|here|in|late|on|only|to|with)\b"
    r"|(?:Cut|Put|Read|Set|Split) (?:before|by|first|for|here|if|late|only)\b"
    r"|Not (?:after|before|for|here|if|in|on|until|when|while|with)\b)"
)


def is_elliptic(comment: str) -> bool:
    """Whether a comment begins with a phrase that has no sentence, or with a participle."""
    first = re.split(r"[.;:?!](?:\s|$)", " ".join(comment.split()))[0]
    return bool(PARTICIPLE.match(first) or (PHRASE.match(first) and "," not in first))


def test_comments_have_a_subject() -> None:
    # The docstrings of options are their help texts.
    files = [path for path in FILES if path.name != "options.py" or path.parent.name != "api"]
    files += HELPERS
    elliptic = [
        f"{path.relative_to(ROOT)}: {text.strip().splitlines()[0]}"
        for path in files
        for text in comments(path)
        if is_elliptic(text.strip())
    ]
    assert elliptic == []


@pytest.mark.parametrize(
    "text",
    [
        "With a copy of the inputs: they would stay.",
        "With -r the value stays.",
        "Set before kernels are selected.",
        "Truncated, since no name is as long.",
        "Written by hand: a link is small.",
        "Not while names are written: both threads\nwould write.",
    ],
)
def test_comments_without_a_subject_are_found(text: str) -> None:
    assert is_elliptic(text)


@pytest.mark.parametrize(
    "text",
    [
        "With -r, the value stays.",
        "By entity: its value.",
        "Set the value before it is read.",
        "Read at least one byte.",
        "Compressed bytes between two marks.",
        "Need: those of a file.",
    ],
)
def test_sentences_with_a_subject_are_not_found(text: str) -> None:
    assert not is_elliptic(text)


def test_clauses_are_found(tmp_path: Path) -> None:
    module = tmp_path / "a.pyx"
    module.write_text(
        '"""What it does."""\nx = 1  # Where it is.\n# Number of rows.\n# As above.\n'
    )
    assert [bool(CLAUSE.match(text.strip())) for text in comments(module) if text] == [
        True,
        True,
        False,
    ]


# Options and keywords that users know.
FOLDERS = frozenset({"folder", "section_folder", "section_folder_recursive"})
LAUNCHER = SOURCES / "_native" / "launcher"


def test_a_directory_has_one_name() -> None:
    """Names and comments say directory, like the system, nvlink's options and the messages."""
    package = SOURCES / "pylink"
    held = [path for path in FILES if {package, LAUNCHER} & {*path.parents}]
    assert any(path.suffix == ".c" for path in held)
    found = [
        f"{path.relative_to(package)}:{line}: {name}"
        for path in FILES
        if path.suffix in (".py", ".pyi") and package in path.parents
        for line, name, _ in names(ast.parse(path.read_text(encoding="utf-8")))
        if "folder" in name.lower() and name not in FOLDERS
    ]
    found += [
        f"{path.name}: {name}"
        for path in held
        if path.suffix in (".c", ".h")
        for name in re.findall(r"\w*folder\w*", path.read_text(encoding="utf-8"), re.IGNORECASE)
    ]
    found += [
        f"{path.relative_to(SOURCES)}: {text}"
        for path in held
        for text in prose(path)
        if re.search(r"(?<![-\w])folders?\b", text, re.IGNORECASE)
    ]
    assert found == []


def test_an_exemption_from_a_rule_says_why() -> None:
    places = [ROOT / name for name in ("src", "tests", "benchmarks", "scripts", "demo")]
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in (path for place in places for path in place.rglob("*.py"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"[#] noqa(?!: [A-Z0-9]+(, [A-Z0-9]+)* --? ?\S)", line)
    ]
    assert found == []
