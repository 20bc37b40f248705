"""A diagnostic: its kind, its place, and the records below it."""

from __future__ import annotations

from pylink.diagnostics.kinds import KINDS
from pylink.diagnostics.severity import NOTE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import TypeAlias

    from pylink.diagnostics.levels import Severity

    # A value of a report: a part of the place, or an argument of the template.
    Fact: TypeAlias = str | int | None
    Facts: TypeAlias = Mapping[str, Fact]

# Types of a record. Only top-level records have a location and a label (such as `error:`) of their
# own. A detail belongs to the message above it, a child explains how the event came about, and a
# continuation is further text of the message above it.
TOP_LEVEL = 0
DETAIL = 1
CHILD = 2
CONTINUATION = 3

# The start of templates that begin with the place. Renderers that print the place themselves omit
# this start.
_WHERE = "{where}: "
# The end of some templates, mostly of messages of nvlink that do not name a file: the place and the
# symbol, in brackets.
_AT = "{at}"


class Source:
    """A place in source text: line and column from 1, the column in code points, 0 if unknown.

    `column_end` is the last column of a range, or 0. `tab_width` is that of the file, None if
    unknown. `text` is the line itself if an input contains it and `file` does not name a file: PTX
    that a cubin was compiled from.
    """

    __slots__ = ("column", "column_end", "file", "line", "tab_width", "text")

    def __init__(
        self,
        file: str,
        line: int,
        column: int = 0,
        column_end: int = 0,
        tab_width: int | None = None,
        text: str | None = None,
    ) -> None:
        self.file = file
        self.line = line
        self.column = column
        self.column_end = column_end
        self.tab_width = tab_width
        self.text = text


# Facts of a report that are the place in an input; the others are arguments of the template.
PLACE = ("file", "section", "index", "offset", "symbol")

# Attributes that a record's function `explain` may set. Before it is called, those without a value
# become None, or an empty list.
_EXPLAINED = (*PLACE, "source", "notes", "context")


class RepeatedName(str):
    """The name of an input that an earlier input also has; `input` is its own number, from 0."""

    __slots__ = ("input",)

    input: int

    def __new__(cls, name: str, number: int) -> RepeatedName:
        self = super().__new__(cls, name)
        self.input = number
        return self

    def __reduce__(self) -> tuple[type[RepeatedName], tuple[str, int]]:
        return RepeatedName, (str(self), self.input)


class Diagnostic:
    """A record of an event and its place.

    It has lists of further records: `children` (details of the message), `notes` (related places),
    `context` (how the place came about) and `extra`. `hints`, the first of the notes, add short
    facts that the message does not have. The place, the source and the notes are computed at their
    first use. Until then, the record keeps the inputs of its link in memory.
    """

    # `level` is the severity as a plain number, `original` that of the table, and `assigned` the
    # one that an option assigned, or 0. `facts` are those of the report: names in `PLACE` become
    # attributes, and others become `args` for the template. `extra` has further records, such as
    # the options file that has an option. `hidden` has kinds of notes to omit. With a function
    # `explain`, the parameters `source`, `notes` and `context` are not used: the function sets the
    # attributes of `_EXPLAINED` when one without a value is first used. So showing only messages
    # costs little.

    __slots__ = (
        "_explain", "args", "assigned", "children", "context", "extra", "file", "hidden", "hints",
        "index", "input_numbers", "kind", "level", "notes", "number", "offset", "original",
        "parent", "section", "source", "symbol", "template", "type",
    )  # fmt: skip

    number: int
    """The number that options take and that does not change, such as 401."""
    kind: str
    """The name that options take and that does not change, such as `undefined-reference`."""
    file: str | None
    """The input that it is about, `archive:member` for a member; None for no input."""
    section: str | None
    """The section of that file."""
    index: int | None
    """The number of an entry of the section, such as a symbol or a relocation."""
    offset: int | None
    """The offset in the section, or in the file without a section, in bytes."""
    symbol: str | None
    """The name of the symbol that it is about, as in the file."""
    source: Source | None
    """The place in source text; None if the input has no line information."""
    notes: list[Diagnostic]
    """Related places, such as each use of an undefined symbol."""
    context: list[Diagnostic]
    """How the place came about, such as calls that were inlined."""

    def __init__(
        self,
        kind: str,
        facts: Facts | None = None,
        *,
        source: Source | None = None,
        type: int = TOP_LEVEL,
        children: Iterable[Diagnostic] = (),
        notes: Iterable[Diagnostic] = (),
        context: Iterable[Diagnostic] = (),
        extra: Iterable[Diagnostic] = (),
        hints: Iterable[Diagnostic] = (),
        explain: Callable[[Diagnostic], None] | None = None,
    ) -> None:
        self.number, self.original, self.template = KINDS[kind]
        self.kind = kind
        self.level = self.original
        self.assigned = 0
        self.type = type
        self.parent: Diagnostic | None = None
        self.hidden: frozenset[str] = frozenset()
        self.input_numbers: Mapping[str, int] = {}
        self.children = list(children)
        self.extra = list(extra)
        self.hints = list(hints)
        self._explain = explain
        self.args: dict[str, str | int] = {}
        for name, value in (facts or {}).items():
            if name in PLACE:
                setattr(self, name, value)
            elif value is not None:
                self.args[name] = value
        if explain is None:
            self.source, self.context = source, list(context)
            self.notes = [*self.hints, *notes]
            self._set_unknown()
            self._set_parents()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Call `explain` for an attribute without a value, and return the value it has then."""
            if name not in _EXPLAINED:
                raise AttributeError(name)
            self._apply_explanation()
            return getattr(self, name)

    def __getstate__(self) -> tuple[None, dict[str, object]]:
        """Return all attributes for pickle; `explain` is not kept: it holds the link's inputs."""
        self._apply_explanation()
        return None, {name: getattr(self, name) for name in self.__slots__}

    def _apply_explanation(self) -> None:
        """Call `explain`, unless that was done."""
        explain, self._explain = self._explain, None
        self._set_unknown()
        if explain is not None:
            explain(self)
            self.notes[:0] = self.hints
            self._set_parents()
            self.hide(self.hidden)

    def _set_unknown(self) -> None:
        """Set attributes of `_EXPLAINED` without a value to None, or to an empty list."""
        for name in _EXPLAINED:
            try:
                object.__getattribute__(self, name)
            except AttributeError:
                setattr(self, name, [] if name in ("notes", "context") else None)

    def hide(self, kinds: frozenset[str]) -> None:
        """Omit records of these kinds below this record and its notes: hints, notes and context."""
        self.hidden = kinds
        self.hints = [hint for hint in self.hints if hint.kind not in kinds]
        if self._explain is None:
            self.notes = [note for note in self.notes if note.kind not in kinds]
            self.context = [line for line in self.context if line.kind not in kinds]
            for note in self.notes:
                note.hide(kinds)

    def _set_parents(self) -> None:
        """Make this diagnostic the parent of its children, notes, context and extra records."""
        for record in (*self.children, *self.notes, *self.context, *self.extra):
            record.parent = self

    @property
    def severity(self) -> Severity:
        """The severity after promotion by options; ordered, and an `int` for comparisons."""
        from pylink.diagnostics.levels import Severity

        return Severity(self.level)

    @property
    def demangled(self) -> str | None:
        """The readable name of the symbol, or the name if it is not mangled; None for no symbol."""
        if self.symbol is None:
            return None
        from pylink.demangle import demangle

        return demangle(self.symbol)

    @property
    def input(self) -> int | None:
        """The number, from 0, of the input of `pylink.link` that is the file or contains it.

        None if the record has no file or the file was not an input of a call.
        """
        name = self.file or ""
        if isinstance(name, RepeatedName):
            return name.input
        while name:
            if name in self.input_numbers:
                return self.input_numbers[name]
            name = name.rpartition(":")[0]
        return None

    @property
    def place(self) -> str:
        """The place in the file as `section[index]+0xoffset`, without unknown parts."""
        place = self.section or ""
        if self.index is not None:
            place += f"[{self.index}]"
        if self.offset is not None:
            place += f"+{self.offset:#x}"
        return place

    @property
    def where(self) -> str:
        """The place as `file: section[index]+0xoffset`, without unknown parts."""
        return ": ".join(part for part in (self.file, self.place) if part)

    @property
    def at(self) -> str:
        """The place and the symbol in brackets, after a blank; empty if both are unknown."""
        place = ": ".join(part for part in (self.where, self.symbol) if part)
        return f" ({place})" if place else ""

    @property
    def message(self) -> str:
        """The text without location, severity or number."""
        return self.template.format_map(Fields(self))

    @property
    def bare_message(self) -> str:
        """The message without the place in brackets at its end."""
        return self.template.removesuffix(_AT).format_map(Fields(self))

    @property
    def names_place(self) -> bool:
        """Whether the message has the place at its start or end."""
        return self.template.startswith(_WHERE) or self.template.endswith(_AT)

    @property
    def short_template(self) -> str:
        """The template without the place, for a line that already starts with the place."""
        return self.template.removeprefix(_WHERE).removesuffix(_AT)

    def __repr__(self) -> str:
        return f"<Diagnostic {self.number} {self.kind}: {self.message}>"


class Fields:
    """The values of the fields that a template can name: arguments, and attributes of the record.

    `convert` is applied to each text; a field that is None becomes empty.
    """

    def __init__(self, diagnostic: Diagnostic, convert: Callable[[str], str] = str) -> None:
        self.diagnostic = diagnostic
        self.convert = convert

    def __getitem__(self, name: str) -> str | int:
        value = self.diagnostic.args.get(name)
        if value is None:
            value = getattr(self.diagnostic, name)
        if value is None:
            return ""
        return value if isinstance(value, int) else self.convert(value)


def note(
    kind: str, *, source: Source | None = None, context: Iterable[Diagnostic] = (), **facts: Fact
) -> Diagnostic:
    """Return a record to put below another one, as in `report(..., notes=[note(...)])`."""
    type = TOP_LEVEL if KINDS[kind][1] == NOTE else CHILD
    return Diagnostic(kind, facts, source=source, context=context, type=type)
