"""Native functions are as short as the account of what they do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

NATIVE = Path(__file__).parents[2] / "src" / "_native"
LONGEST = 60  # lines with the signature


def functions(text: str) -> Iterator[tuple[str, int]]:
    """Name and number of lines of each function of a module or header."""
    lines = text.splitlines()
    for start, line in enumerate(lines):
        head = re.match(r"( *)(?:cdef(?! class)|def|cpdef)\b[^=(]*?(\w+)\(", line)
        if not head or ":" not in "".join(lines[start : start + 12]):
            continue
        end = start + 1
        for number in range(start + 1, len(lines)):
            inside = lines[number]
            if inside.strip() and len(inside) - len(inside.lstrip()) <= len(head[1]):
                break
            end = number + 1 if inside.strip() else end
        yield head[2], end - start


def test_functions_are_found_with_their_length() -> None:
    text = "cdef int a(int x,\n           int y) nogil:\n    return x\n\n\ndef b():\n    pass\n"
    assert list(functions(text)) == [("a", 3), ("b", 2)]


def test_no_native_function_is_long() -> None:
    found = {
        f"{path.relative_to(NATIVE)}: {name}": size
        for path in NATIVE.glob("*/*.p[yx][xd]")
        for name, size in functions(path.read_text(encoding="utf-8"))
    }
    assert len(found) > 500
    assert {name: size for name, size in found.items() if size > LONGEST} == {}


# A continued line that begins so may be indented further.
OPERATOR = re.compile(r"(?:and|else|for|if|not|or)\b|[-!&*+/<=>^|)\]}]")
TEXT = re.compile(r"""(?:[bcu]?)(?:\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*')""")


def misplaced(text: str) -> Iterator[int]:
    """Numbers of the lines with a parameter or an argument that is not under those before."""
    columns: list[int | None] = []  # after each open bracket; None at the end of a line
    code = re.sub(r'"""(?:.|\n)*?"""', lambda found: "\n" * found[0].count("\n"), text)
    for number, line in enumerate(code.splitlines(), 1):
        words = re.sub(r"#.*", "", TEXT.sub(lambda found: "s" * len(found[0]), line)).rstrip()
        start = len(words) - len(words.lstrip())
        expected = columns[-1] if columns else None
        if words and expected not in (None, start) and not OPERATOR.match(words[start:]):
            yield number
        for column, character in enumerate(words, 1):
            if character in "([{":
                columns.append(column if column < len(words) else None)
            elif character in ")]}" and columns:
                columns.pop()


def test_misplaced_lines_are_found() -> None:
    text = "def f(int a,\n      int b=g(\n          1)):\n    h(a,\n     b)\n"
    assert list(misplaced(f"{text}    if (a\n            or b):\n")) == [5]


def test_parameters_and_arguments_stand_under_each_other() -> None:
    found = [
        f"{path.relative_to(NATIVE)}:{number}"
        for path in NATIVE.glob("*/*.p[yx][xd]")
        for number in misplaced(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_sources_name_what_they_take_of_a_header() -> None:
    sources = [*NATIVE.glob("*/*.p[yx][xd]"), *NATIVE.parent.glob("pylink/_native/*.pxd")]
    assert len(sources) > 100
    star = re.compile(r"^\s*from \S+ cimport \(?\s*\*", re.MULTILINE)
    assert [path.name for path in sources if star.search(path.read_text(encoding="utf-8"))] == []


def test_functions_in_c_stand_in_c_files() -> None:
    """A compiler then reports file and line; text in a source has preprocessor lines only."""
    verbatim = re.compile(r'^cdef extern from [^\n]*:\n    """\n(.*?)"""', re.MULTILINE | re.DOTALL)
    found = [
        f"{path.relative_to(NATIVE)}: {line.strip()}"
        for path in NATIVE.glob("*/*.p[yx][xd]")
        for text in verbatim.findall(path.read_text(encoding="utf-8"))
        for line in text.splitlines()
        if line.strip() and not line.strip().startswith("#")
    ]
    assert found == []


# Who asks for memory without a Scratch, and why.
OWN_MEMORY = {
    "base/blocks.pxd": "what all other memory is made of",
    "base/vector.pxd": "rows that grow, which a table may take",
    "base/nameindex.pxd": "indices and string tables that grow, chunks of texts",
    "base/spans.pxd": "tables of keys, also of objects that outlive a call",
    "base/scratch.pxd": "Scratch itself",
    "tables/tables.pyx": "pages that a table has",
    "mercury/dedup.pyx": "tables of keys that an object makes when they are first needed",
    "mercury/objects.pxd": "the same",
    "reports/arrow.pyx": "structs that whoever reads the stream releases",
    "fleet/census.pyx": "arrays of each folder and each root, in rows that move",
    "size/payloads.pxd": "buffers that a thread uses for one payload after the other",
    "size/ledger.pyx": "what holds the buffers of a thread",
}


def test_memory_of_a_call_is_in_a_scratch() -> None:
    """Each kernel then frees in one place."""
    asks = re.compile(
        r"\b(?:malloc|calloc|realloc|free|block_\w+|table_init|table_free"
        r"|(?:vec|index|strings)_(?:init|free))\("
    )
    found = {
        str(path.relative_to(NATIVE))
        for path in NATIVE.glob("*/*.p[yx][xd]")
        if asks.search(path.read_text(encoding="utf-8"))
    }
    assert found == set(OWN_MEMORY)


def test_one_function_raises_for_want_of_memory() -> None:
    raising = [
        str(path.relative_to(NATIVE))
        for path in NATIVE.glob("*/*.p[yx][xd]")
        if "raise MemoryError" in path.read_text(encoding="utf-8")
    ]
    assert raising == ["base/memory.pxd"]


def test_a_kernel_that_uses_a_scratch_frees_it() -> None:
    for path in NATIVE.glob("*/*.pyx"):
        text = path.read_text(encoding="utf-8")
        for body in re.split(r"^(?=def |cdef |cpdef |    def )", text, flags=re.MULTILINE):
            assert "scratch_init(&scratch)" not in body or "scratch_free(&scratch)" in body, (
                f"{path.name}: {body.splitlines()[0]}"
            )


# --- names, comments and cimports ----------------------------------------------------------------

SOURCES = sorted([*NATIVE.glob("*/*.pyx"), *NATIVE.glob("*/*.pxd")])
# What an action of a kernel begins with. Functions of one type begin with its name: `vec_push`.
VERBS = re.compile(
    r"(?:absorb|add|adopt|align|allocate|append|assign|begin|bind|build|change|check|claim|"
    r"clear|compare|compress|convert|copy|count|create|cut|decide|decompress|digest|drop|emit|end|enter|"
    r"expect|extend|fetch|fill|find|finish|flag|fold|follow|free|gather|grow|guard|hash|index|"
    r"inherit|insert|intern|join|keep|learn|link|list|make|map|mark|mask|match|measure|"
    r"mention|merge|move|name|next|number|open|order|overtake|paint|pair|parse|patch|pick|"
    r"place|prefer|prefetch|prepare|push|put|read|rebuild|record|recycle|redirect|refuse|"
    r"release|rename|renew|repeat|replace|request|reserve|resize|resolve|retarget|rewrite|run|scan|"
    r"select|set|settle|shorten|sort|split|start|stop|swap|take|translate|unload|unmap|unpack|"
    r"update|view|widen|write)"
)
TYPES = re.compile(r"block|columns|compat|cutting|graph|index|pool|scratch|strings|table|vec|words")
PREDICATES = re.compile(r"are|can|has|is|needs|was")
# Names that say nothing about what they name.
EMPTY_NAMES = re.compile(
    r"(?:found|made|known|said|wanted|given|taken|told|mine|theirs|ours|each|one|here|there|nice)"
)
LARGE_STATES = re.compile(
    r"\b(?:Merge|Info|Compat|Resolver|Reader|Rewriting|Writer|Contents|SharedLists|Plan)\* \w\b"
)


def without_texts(text: str) -> str:
    """A source with blanks for its docstrings, strings and comments; lines stay."""
    pattern = re.compile(
        r'"""(?:\\.|[^\\])*?"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|#[^\n]*', re.DOTALL
    )
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def kernels(text: str) -> Iterator[tuple[str, str, str, str]]:
    """Return type, name, parameters and `inline` of each function of C in a source."""
    head = re.compile(
        r"^ *cdef (?!class)(inline )?((?:const )?\w+\**) (\w+)"
        r"\(([^()]*(?:\([^()]*\)[^()]*)*)\)[^\n:]*:",
        re.MULTILINE,
    )
    for match in head.finditer(without_texts(text)):
        yield match[2], match[3], " ".join(match[4].split()), match[1] or ""


def all_kernels() -> Iterator[tuple[str, str, str, str, str]]:
    for path in SOURCES:
        for row in kernels(path.read_text(encoding="utf-8")):
            yield str(path.relative_to(NATIVE)), *row


def test_functions_of_c_are_read() -> None:
    text = (
        "cdef inline bint is_new(int a,\n                        int b) noexcept nogil:\n    pass\n"
    )
    assert list(kernels(text)) == [("bint", "is_new", "int a, int b", "inline ")]
    assert sum(1 for _ in all_kernels()) > 900


def test_actions_have_names_of_actions() -> None:
    """A function without a result does something; one that returns a truth asks or does."""
    for path, result, name, _, _ in all_kernels():
        first = re.split(r"[_\d]", name)[0]
        acts = VERBS.fullmatch(first) or TYPES.fullmatch(first)
        if result == "void":
            assert acts, f"{path}: {name}: a verb comes first"
        if result == "bint":
            asks = PREDICATES.fullmatch(first)
            assert acts or asks, f"{path}: {name}: is_, has_, can_, needs_ or a verb"


def test_names_of_inline_functions_are_unique() -> None:
    """Headers that one kernel reads together cannot mean two things by a name."""
    places: dict[str, list[str]] = {}
    for path, _, name, _, inline in all_kernels():
        if inline:
            places.setdefault(name, []).append(path)
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_parameters_say_what_they_are() -> None:
    for path, _, name, parameters, _ in all_kernels():
        names = [
            part.split("=")[0].split()[-1].lstrip("*") for part in parameters.split(",") if part
        ]
        assert "at" not in names, f"{path}: {name}: a row, an index or an offset?"
        assert not any(map(EMPTY_NAMES.fullmatch, names)), f"{path}: {name}"
        assert not any(word.endswith("_") for word in names), (
            f"{path}: {name}: a better noun exists"
        )
        assert not LARGE_STATES.search(parameters), f"{path}: {name}: the state has a word"


def test_functions_are_not_called_by_a_participle() -> None:
    participle = re.compile(r"(?!speed|need|feed|embed)[a-z]+(?:ed|wn|aken|iven|ritten)")
    for path, _, name, _, _ in all_kernels():
        assert "_" in name or not participle.fullmatch(name), f"{path}: {name}"


def cimported(text: str) -> list[tuple[str, list[str]]]:
    """Modules of the cimports at the head of a source, with the names of each."""
    pattern = re.compile(r"^from (\S+) cimport (?:\(([^)]*)\)|([^\n]*))", re.MULTILINE)
    return [
        (match[1], [name.strip() for name in (match[2] or match[3]).split(",") if name.strip()])
        for match in pattern.finditer(without_texts(text))
    ]


def sort_key(name: str) -> tuple[int, list[str | int]]:
    """Constants, then types, then functions, numbers by their size: the order of isort."""
    group = 0 if re.fullmatch(r"[A-Z0-9_]+", name) else 1 if name[0].isupper() else 2
    return group, [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def test_a_module_is_cimported_once_and_in_order() -> None:
    for path in SOURCES:
        rows = cimported(path.read_text(encoding="utf-8"))
        modules = [module for module, _ in rows]
        assert len(modules) == len(set(modules)), path.name
        standard = [name for name in modules if name.split(".")[0] in ("cpython", "libc", "posix")]
        others = [name for name in modules if name not in standard]
        assert modules == sorted(standard) + sorted(others), path.name
        for module, names in rows:
            assert names == sorted(names, key=sort_key), f"{path.name}: {module}"


def struct_columns(text: str) -> Iterator[tuple[str, set[int]]]:
    """Name of each struct, and the columns in which comments beside its fields begin."""
    bare = without_texts(text).splitlines()
    lines = text.splitlines()
    for start, line in enumerate(lines):
        head = re.match(r"( *)(?:ctypedef |cdef )(?:packed )?struct (\w+):", line)
        if not head:
            continue
        columns = set()
        for number in range(start + 1, len(lines)):
            field = lines[number]
            if field.strip() and len(field) - len(field.lstrip()) <= len(head[1]):
                break
            code = bare[number].rstrip()
            if code and field[len(code) :].strip().startswith("#"):
                columns.add(field.index("#", len(code)))
        yield head[2], columns


def test_comments_of_a_struct_stand_in_one_column() -> None:
    for path in SOURCES:
        for name, columns in struct_columns(path.read_text(encoding="utf-8")):
            assert len(columns) < 2, f"{path.name}: {name}"


def foreign_functions(text: str) -> Iterator[str]:
    """Names in C of the functions that a source declares as those of a header."""
    code = re.sub(r'"""(?:.|\n)*?"""', "", text)
    for block in re.findall(
        r"^cdef extern from [^\n]*:\n((?:[ ]+[^\n]*\n|\n)+)", code, re.MULTILINE
    ):
        for name, name_in_c in re.findall(
            r'^    (?!#)[^\n(#]*?(\w+)(?: "(\w+)")?\((?!\*)', block, re.MULTILINE
        ):
            yield name_in_c or name


def test_a_function_in_c_is_declared_once() -> None:
    text = (
        'cdef extern from "<a.h>" nogil:\n    int b(int c,\n          int d)\n    int e "f"()\n\n'
    )
    assert list(foreign_functions(text)) == ["b", "f"]
    places: dict[str, list[str]] = {}
    for path in SOURCES:
        for name in foreign_functions(path.read_text(encoding="utf-8")):
            places.setdefault(name, []).append(str(path.relative_to(NATIVE)))
    assert len(places) > 60
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


# A package cimports those of lower floors; those of one floor do not know each other.
FLOORS = (
    ("base",),
    ("tables",),
    ("debug", "exits", "info", "mercury", "reports", "shared"),
    ("read",),
    ("fleet", "inputs", "resolve"),
    ("merge", "size"),
    ("layout",),
    ("image",),
)


def test_packages_cimport_lower_floors() -> None:
    floor = {name: number for number, names in enumerate(FLOORS) for name in names}
    packages = {path.parent.name for path in NATIVE.glob("*/*.p[xy][dx]")}
    assert packages == set(floor)
    upward = [
        f"{path.parent.name}/{path.name}: {package}"
        for path in NATIVE.glob("*/*.p[xy][dx]")
        for package in re.findall(
            r"^from (\w+)\.\w+ cimport", path.read_text(encoding="utf-8"), re.M
        )
        if package in floor
        and package != path.parent.name
        and floor[package] >= floor[path.parent.name]
    ]
    assert upward == []


# Lines with the number of bytes beside a text, only falling: base/texts.pxd counts them.
COUNTED_LINES = 0


def test_texts_stand_without_the_number_of_their_bytes() -> None:
    """Of one byte, which ends or joins something, the number may be there."""
    counted = re.compile(r'b"(?:[^"\\]|\\.)+", (?:[2-9]|\d\d+)[,)]')
    found = [
        f"{path.relative_to(NATIVE)}: {line.strip()}"
        for path in SOURCES
        for line in path.read_text(encoding="utf-8").splitlines()
        if counted.search(line)
    ]
    assert len(found) <= COUNTED_LINES, found


DEF = re.compile(r"^ *def (\w+)\(((?:[^()]|\([^()]*\))*)\):", re.MULTILINE)
# A parameter that may be None, but whose default is not: kernels would read the bytes of None.
UNGUARDED = re.compile(r"(?:bytes|bytearray|list|tuple|dict|set) \w+")


def unguarded(text: str) -> list[tuple[str, str]]:
    """Return the function and the text of each such parameter."""
    return [
        (name, parameter)
        for name, parameters in DEF.findall(text)
        for parameter in (" ".join(part.split()) for part in parameters.split(","))
        if UNGUARDED.fullmatch(parameter)
    ]


def test_objects_are_not_none() -> None:
    text = "def a(bytes b, list c not None,\n      dict d=None, int e):\n  def f(self,\n set g):\n"
    assert unguarded(text) == [("a", "bytes b"), ("f", "set g")]
    found = {
        str(path.relative_to(NATIVE)): names
        for path in NATIVE.glob("*/*.pyx")
        if (names := unguarded(path.read_text(encoding="utf-8")))
    }
    assert found == {}
