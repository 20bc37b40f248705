"""The lists of the order reference: one of sections, two of symbols, and the names from them."""

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
    """A section of the output; `target` is the section that a relocation section patches."""

    name: str
    kind: str
    owner: Symbol | None = None
    target: Section | None = None
    is_written: bool = True  # whether its header is written
    has_name: bool = True  # whether its name is written
    bare: bool = False  # whether its section symbol is removed
    replaced: bool = False  # removed with a copy, so that the second program never sees it
    size: int = 0
    entries: list[tuple[Mention, str]] = field(default_factory=list)  # relocations and their fates
    forms: dict[bool, Section] = field(default_factory=dict)  # its REL (False) and RELA sections

    @property
    def has_entries(self) -> bool:
        """Whether a relocation section has entries in the output."""
        return any(
            fate in ("kept", "array") and (m.symbol is None or m.symbol.live)
            for m, fate in self.entries
        )


@dataclass(eq=False)
class Symbol:
    """A symbol of the output, a section's if `section` is set. `copy` is its current definition."""

    name: str
    section: Section | None = None
    mention: Mention | None = None  # the first one in the inputs
    copy: Mention | None = None
    is_written: bool = True  # whether its row is written
    has_name: bool = True  # whether its name is written
    live: bool = True
    # The sections of a function.
    text: Section | None = None
    info: Section | None = None
    shared: Section | None = None
    parameters: Section | None = None
    parameters_rel: Section | None = None
    pool: Section | None = None
    pieces: list[Mention] = field(default_factory=list)  # copies whose tables make up its pool
    has_pool: bool = False
    pool_is_lost: bool = False  # whether only copies that lost have created its section
    is_taken: bool = False  # whether the address of the function is taken
    common: bool = False  # whether any definition is a common symbol
    unnamed: bool = False  # a constant of code, which loses its name
    ptx: int = 0  # SM number of the PTX of the first definition's file

    @property
    def current(self) -> Mention:
        """The current definition, or the first mention; ValueError for a section symbol."""
        current = self.copy or self.mention
        if current is None:
            raise ValueError(f"{self.name} is a section")
        return current

    @property
    def is_kernel(self) -> bool:
        """Whether the current definition is a kernel."""
        copy = self.copy
        return copy is not None and copy.type == FUNC and bool(copy.other & ENTRY)

    @property
    def uses_array(self) -> bool:
        """Whether the function's own code uses an extern array."""
        return self.text is not None and any(
            fate == "array" for form in self.text.forms.values() for _, fate in form.entries
        )


class Lists:
    """The list of sections and the lists of local and global symbols, to which events append."""

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
        target: Section | None = None,
        before_symbol: Callable[[], None] | None = None,
    ) -> Section:
        """Create a section and its section symbol, whether they are written or not."""
        created = Section(name, kind, owner, target)
        self.sections.append(created)
        if before_symbol:
            before_symbol()
        self.locals.append(Symbol(name, created))
        return created

    def section_of_files(self, name: str, kind: str) -> Section:
        """Return the section that all files share under a name, created at its first use."""
        if name not in self._of_file:
            self._of_file[name] = self.section(name, kind)
        return self._of_file[name]

    def find_section_of_files(self, name: str) -> Section | None:
        """Return the section that all files share under a name; None without one."""
        return self._of_file.get(name)

    def symbols(self) -> list[Symbol]:
        """Return the symbols that are not section symbols, local ones first."""
        return [y for y in self.locals + self.globals if y.section is None]

    def section_names(self) -> bytes:
        """Return the contents of .shstrtab."""
        return string_table(s.name for s in self.sections if s.has_name)

    def symbol_names(self, prototypes: list[str]) -> bytes:
        """Return the contents of .strtab: strings of prototypes of all inputs, then the names."""
        names = [y.name for y in self.locals + self.globals if (y.section or y).has_name]
        return string_table(prototypes + names, "" in prototypes)

    def in_file_order(self) -> list[Section]:
        """Return the sections that are written, in the order of the file."""
        written_sections = [s for s in self.sections if s.is_written]
        return sorted(written_sections, key=lambda s: CLASSES.index(s.kind))

    def shown_symbols(self) -> list[str]:
        """Return the names in the order of .symtab, the null symbol first."""
        names = [""]
        for symbol in self.locals + self.globals:
            section = symbol.section
            if section is None:
                if symbol.is_written:
                    names.append(symbol.name)
            elif section.is_written and not section.bare and _may_have_symbol(section):
                names.append(symbol.name)
        return names


def _may_have_symbol(section: Section) -> bool:
    """Return whether the section symbol of a section may be written."""
    if section.kind == "debug":
        return section.size != 0
    return section.kind not in ("table", "info", "relocations")


def string_table(names: Iterable[str], empty_prototype: bool = False) -> bytes:
    """Return a string table with each string once.

    The empty string of a prototype is an additional one.
    """
    seen = set() if empty_prototype else {""}
    table = [b"\0"]
    for name in names:
        if name not in seen:
            seen.add(name)
            table.append(name.encode("latin1") + b"\0")
    return b"".join(table)
