"""One diagnostic: its kind, its place, and the records that hang below it."""

from __future__ import annotations

from pylink.diagnostics.kinds import KINDS
from pylink.diagnostics.severity import NOTE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# Types of a record. Only those at top level have a location and a label of their own; a detail
# belongs to the message above it, a child tells how that came about.
TOP_LEVEL = 0
DETAIL = 1
CHILD = 2
CONTINUATION = 3

# A template that starts with the place: a renderer that shows the place in front leaves it out.
_WHERE = "{where}: "


class Source:
    """A place in source text: 1-based line and column, in code points; column 0 is unknown.

    `column_end` is the last column of the range, 0 when only a point is known.
    """

    __slots__ = ("column", "column_end", "file", "line", "tab_width")

    def __init__(
        self, file: str, line: int, column: int = 0, column_end: int = 0, tab_width: int = 8
    ) -> None:
        self.file = file
        self.line = line
        self.column = column
        self.column_end = column_end
        self.tab_width = tab_width


class Diagnostic:
    """A record of what happened and where.

    `original` is the severity in the table, `severity` the one after promotion; `assigned` is the
    one an option gave this number, 0 for none. `file`, `section`, `index`, `offset` (bytes) and
    `symbol` are the place in the input, None where unknown; `source` is the place in source text.
    The four lists hold records below this one: `children` (details of the message), `notes`
    (related places), `context` (how the linker came here), `extra`.
    """

    __slots__ = (
        "args",
        "assigned",
        "children",
        "context",
        "extra",
        "file",
        "index",
        "kind",
        "notes",
        "number",
        "offset",
        "original",
        "parent",
        "section",
        "severity",
        "source",
        "symbol",
        "template",
        "type",
    )

    def __init__(
        self,
        kind: str,
        *,
        file: str | None = None,
        section: str | None = None,
        index: int | None = None,
        offset: int | None = None,
        symbol: str | None = None,
        source: Source | None = None,
        args: dict[str, str | int] | None = None,
        type: int = TOP_LEVEL,
        children: Iterable[Diagnostic] = (),
        notes: Iterable[Diagnostic] = (),
        context: Iterable[Diagnostic] = (),
        extra: Iterable[Diagnostic] = (),
    ) -> None:
        self.number, self.original, self.template = KINDS[kind]
        self.kind = kind
        self.severity = self.original
        self.assigned = 0
        self.file = file
        self.section = section
        self.index = index
        self.offset = offset
        self.symbol = symbol
        self.source = source
        self.args = args or {}
        self.type = type
        self.parent: Diagnostic | None = None
        self.children = self._adopt(children)
        self.notes = self._adopt(notes)
        self.context = self._adopt(context)
        self.extra = self._adopt(extra)

    def _adopt(self, records: Iterable[Diagnostic]) -> list[Diagnostic]:
        adopted = list(records)
        for record in adopted:
            record.parent = self
        return adopted

    @property
    def place(self) -> str:
        """The place in the file as `section[index]+0xoffset`, without what is not known."""
        place = self.section or ""
        if self.index is not None:
            place += f"[{self.index}]"
        if self.offset is not None:
            place += f"+{self.offset:#x}"
        return place

    @property
    def where(self) -> str:
        """The place as `file: section[index]+0xoffset`, without what is not known."""
        return ": ".join(part for part in (self.file, self.place) if part)

    def fields(self) -> dict[str, str | int]:
        """What the template may name: the place and the arguments of the report."""
        named: dict[str, str | int] = {
            "file": self.file or "",
            "section": self.section or "",
            "symbol": self.symbol or "",
            "where": self.where,
        }
        if self.index is not None:
            named["index"] = self.index
        if self.offset is not None:
            named["offset"] = self.offset
        named.update(self.args)
        return named

    @property
    def message(self) -> str:
        """The text without location, severity or number."""
        return self.template.format_map(self.fields())

    @property
    def short_template(self) -> str:
        """The template for a line that already starts with the place."""
        return self.template[len(_WHERE) :] if self.template.startswith(_WHERE) else self.template

    def __repr__(self) -> str:
        return f"<Diagnostic {self.number} {self.kind}: {self.message}>"


def note(
    kind: str,
    *,
    file: str | None = None,
    section: str | None = None,
    index: int | None = None,
    offset: int | None = None,
    symbol: str | None = None,
    source: Source | None = None,
    **args: str | int,
) -> Diagnostic:
    """A record to hang below another one, as in `report(..., notes=[note(...)])`."""
    return Diagnostic(
        kind,
        file=file,
        section=section,
        index=index,
        offset=offset,
        symbol=symbol,
        source=source,
        args=args,
        type=TOP_LEVEL if KINDS[kind][1] == NOTE else CHILD,
    )
