"""What the order reference builds: one list of sections, two of symbols, and names by walks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from helpers.order.reader import ENTRY, FUNC, Mention

# Classes of sections in the order of the file.
CLASSES = (
    *("table", "debug", "note", "info", "calls", "relocations"),
    *("constant", "text", "init", "nobits"),
)


@dataclass(eq=False)
class Section:
    """A section of the output. `of` is what a relocation section patches."""

    name: str
    kind: str
    owner: Symbol | None = None
    of: Section | None = None
    shown: bool = True  # it leaves a header
    named: bool = True  # it leaves a name
    bare: bool = False  # its section symbol goes
    replaced: bool = False  # it went with a copy: the second program never sees it
    size: int = 0
    entries: list[tuple[Mention, str]] = field(default_factory=list)  # with their fates
    forms: dict[bool, Section] = field(default_factory=dict)  # relocations, by explicit

    @property
    def has_entries(self) -> bool:
        """Whether a relocation section has rows at the end."""
        return any(
            fate in ("kept", "array") and (m.symbol is None or m.symbol.live)
            for m, fate in self.entries
        )


@dataclass(eq=False)
class Symbol:
    """A symbol of the output, a section's if `section` is set. `copy` is its current definition."""

    name: str
    section: Section | None = None
    mention: Mention | None = None  # the first
    copy: Mention | None = None
    shown: bool = True
    named: bool = True
    live: bool = True
    text: Section | None = None
    info: Section | None = None
    shared: Section | None = None
    parameters: Section | None = None
    parameters_rel: Section | None = None
    pool: Section | None = None
    pieces: list[Mention] = field(default_factory=list)  # copies whose tables make up its pool
    has_pool: bool = False
    pool_is_lost: bool = False  # a section that only copies that lost have brought
    taken: bool = False
    common: bool = False
    unnamed: bool = False
    ptx: int = 0  # of the file of the first definition

    @property
    def current(self) -> Mention:
        found = self.copy or self.mention
        if found is None:
            raise ValueError(f"{self.name} is a section")
        return found

    @property
    def is_kernel(self) -> bool:
        copy = self.copy
        return copy is not None and copy.type == FUNC and bool(copy.other & ENTRY)

    @property
    def uses_array(self) -> bool:
        return self.text is not None and any(
            fate == "array" for form in self.text.forms.values() for _, fate in form.entries
        )


class Lists:
    """The section list and the lists of local and global symbols: all that events append to."""

    def __init__(self) -> None:
        self.sections: list[Section] = []
        self.locals: list[Symbol] = []
        self.globals: list[Symbol] = []
        self._of_file: dict[str, Section] = {}

    def section(
        self,
        name: str,
        kind: str,
        owner: Symbol | None = None,
        of: Section | None = None,
        before_symbol: Callable[[], None] | None = None,
    ) -> Section:
        """A new section and its symbol; each section has one, shown or not."""
        made = Section(name, kind, owner, of)
        self.sections.append(made)
        if before_symbol:
            before_symbol()
        self.locals.append(Symbol(name, made))
        return made

    def section_of_files(self, name: str, kind: str) -> Section:
        """The section that all files share under that name."""
        if name not in self._of_file:
            self._of_file[name] = self.section(name, kind)
        return self._of_file[name]

    def has(self, name: str) -> Section | None:
        return self._of_file.get(name)

    def symbols(self) -> list[Symbol]:
        """Those that are no section's, locals first."""
        return [y for y in self.locals + self.globals if y.section is None]

    def section_names(self) -> bytes:
        return string_table(s.name for s in self.sections if s.named)

    def symbol_names(self, prototypes: list[str]) -> bytes:
        """The walk writes after what reading has put there: the strings of prototypes."""
        named = [y.name for y in self.locals + self.globals if (y.section or y).named]
        return string_table(prototypes + named, "" in prototypes)

    def in_file_order(self) -> list[Section]:
        shown = [s for s in self.sections if s.shown]
        return sorted(shown, key=lambda s: CLASSES.index(s.kind))

    def shown_symbols(self) -> list[str]:
        """Names in the order of .symtab, the null symbol first."""
        names = [""]
        for symbol in self.locals + self.globals:
            section = symbol.section
            if section is None:
                if symbol.shown:
                    names.append(symbol.name)
            elif section.shown and not section.bare and _may_have_symbol(section):
                names.append(symbol.name)
        return names


def _may_have_symbol(section: Section) -> bool:
    if section.kind == "debug":
        return section.size != 0
    return section.kind not in ("table", "info", "relocations")


def string_table(names: Iterable[str], empty_prototype: bool = False) -> bytes:
    """Each string once; the empty string of a prototype is one of its own."""
    seen = set() if empty_prototype else {""}
    table = [b"\0"]
    for name in names:
        if name not in seen:
            seen.add(name)
            table.append(name.encode("latin1") + b"\0")
    return b"".join(table)
