"""Events of the order reference: the effects of each symbol, section and relocation of an input."""

from __future__ import annotations

from collections.abc import Callable

from helpers.order.entries import LINES, Entries
from helpers.order.lists import Lists, Section, Symbol
from helpers.order.reader import (
    COMMON,
    CONST0_SIZE,
    FUNC,
    LOCAL,
    SECTION,
    WEAK,
    Input,
    Mention,
    Part,
)

# Kinds of sections that all files share, and the class of the output section.
SHARED_BY_FILES = {
    "bank": "constant",
    "global": "nobits",
    "reserved": "nobits",
    "init": "init",
    "debug": "debug",
    "common shared": "nobits",
}


class Reading(Entries):
    """The lists while the inputs are read: everything is created, dead or alive."""

    def __init__(self, family: str, relocatable: bool, selected: Callable[[str], bool]) -> None:
        super().__init__(Lists(), family, relocatable)
        self.selected = selected
        self.prototypes: list[str] = []  # strings at the start of .strtab, in front of all names
        self.by_name: dict[str, Symbol] = {}
        self.functions: list[Symbol] = []  # in order of first mention
        self.entities: list[Symbol] = []  # functions and all others, in order of first mention
        self.calls: list[tuple[Symbol, Symbol]] = []
        self.indirect: list[tuple[Symbol, str]] = []
        self.takers: list[tuple[str, Symbol]] = []
        self.with_prototype: list[Symbol] = []
        self.pools: list[tuple[Symbol, Input]] = []
        for name in (".shstrtab", ".strtab", ".symtab", ".symtab_shndx"):
            self.lists.section(name, "table").is_written = name != ".symtab_shndx"
        for name in (".note.nv.tkinfo", ".note.nv.cuinfo"):
            self.lists.section(name, "note")
        self.lists.section(".nv.info", "info")
        if family != "A":
            self.lists.section(".nv.compat", "info")

    def open(self, file: Input) -> None:
        """Add the prototype strings of a file, also those of copies that lose."""
        block = 0  # the marker in front of the rows
        for caller, callee in file.rows("calls"):
            if caller == 0:
                block = callee
            elif block in (-2, -3):
                self.prototypes.append(file.text(callee))
        self.prototypes += [file.text(text) for _, text in file.rows("prototypes")]

    def read(self, file: Input) -> None:
        """Add the symbols, sections and relocations of a file."""
        for mention in file.mentions:
            if mention.type == FUNC:
                self._function(mention)
        self._calls(file)
        self._objects(file)
        for part in file.parts:
            if part not in file.unused:
                self._place(file, part)
            if part.home is not None and part.kind in ("debug", "bank", "init", "global"):
                _append(part, part.home)
        for part in file.parts:
            if part.kind == "info of" and part.owner is not None and not part.owner.lost:
                symbol = part.owner.output_symbol
                symbol.info = symbol.info or self.lists.section(part.name, "info", symbol)
        for part in file.parts:
            if part.kind == "relocations":
                self.relocations(file, part)

    # Symbols.

    def _mention(self, mention: Mention) -> tuple[Symbol, bool]:
        """Return the symbol of a mention, and whether it is new; decides between definitions."""
        # This name is local in each file, but the link has only one symbol with it.
        shared = mention.bind != LOCAL or mention.name == CONST0_SIZE
        symbol_of_name = self.by_name.get(mention.name) if shared else None
        symbol = symbol_of_name or Symbol(mention.name, mention=mention)
        if shared:
            self.by_name[mention.name] = symbol
        mention.symbol = symbol
        if symbol_of_name is None:
            self.entities.append(symbol)
        if mention.is_definition and symbol.copy is None:
            symbol.ptx = mention.file.ptx
            symbol.copy = mention
        elif mention.is_definition and symbol.copy is not None:
            if _wins(mention, symbol.copy, symbol.ptx):
                self._replace(symbol)
                symbol.copy = mention
            else:
                mention.lost = True
        return symbol, symbol_of_name is None

    def _list(self, symbol: Symbol, mention: Mention) -> None:
        """Append a new symbol to the list of local or of global symbols."""
        # Instances of extern arrays, from an earlier link with -r, count as definitions.
        array = self.space(mention) == "shared" and mention.size == 0
        early = mention.bind == LOCAL or (mention.bind == WEAK and (mention.is_definition or array))
        (self.lists.locals if early else self.lists.globals).append(symbol)

    def _function(self, mention: Mention) -> None:
        """Add a function, and its sections if it is new."""
        symbol, new = self._mention(mention)
        if new:
            self.functions.append(symbol)
            self._list(symbol, mention)
        if mention.part is None or mention.lost or symbol.text is not None:
            return
        symbol.text = self.lists.section(mention.part.name, "text", symbol)
        if symbol.is_kernel and self.selected(symbol.name):
            symbol.info = self.lists.section(f".nv.info.{symbol.name}", "info", symbol)
            symbol.shared = self.lists.section(f".nv.shared.{symbol.name}", "nobits", symbol)

    def _replace(self, symbol: Symbol) -> None:
        """Remove the code of the current copy, with its relocations.

        Its sections stay where they are.
        """
        old = symbol.copy
        if symbol.text is None or old is None:
            return
        file = old.file
        patched = any(
            part.kind == "relocations" and part.size and file.parts[part.info] is old.part
            for part in file.parts
        )
        for form in symbol.text.forms.values():
            form.entries.clear()
        symbol.pieces = [piece for piece in symbol.pieces if piece is not old]
        if (
            symbol.pool is not None
            and symbol.pool_is_lost
            and (self.relocatable or not symbol.is_kernel)
        ):
            for section in (symbol.pool, *symbol.pool.forms.values()):
                section.has_name, section.is_written, section.replaced = (
                    self.relocatable,
                    False,
                    True,
                )
            symbol.pool, symbol.pool_is_lost, symbol.has_pool = None, False, False
        if not patched:
            return
        for section in self.lists.sections:
            lines = section.target
            if lines is not None and lines.name in LINES and next(iter(lines.forms)):
                section.entries = [entry for entry in section.entries if entry[0] is not old]

    def _calls(self, file: Input) -> None:
        """Add the rows of a file's call graph."""
        block = 0  # the marker in front of the rows
        for caller, callee in file.rows("calls"):
            if caller == 0:
                block = callee
                continue
            mention = file.mentions[caller]
            if mention.lost:
                continue
            symbol = mention.output_symbol
            if block == -1:
                self.calls.append((symbol, file.mentions[callee].output_symbol))
            elif block == -2:
                symbol.is_taken = True
                self.takers.append((file.text(callee), symbol))
            elif block == -3:
                self.indirect.append((symbol, file.text(callee)))
        self.with_prototype += [
            file.mentions[function].output_symbol
            for function, _ in file.rows("prototypes")
            if function
        ]

    def _objects(self, file: Input) -> None:
        """Add the symbols of a file that are not functions."""
        number = 0
        used: set[Part] = set()
        pieces: set[Part] = set()
        for mention in file.mentions[1:]:
            if mention.type in (FUNC, SECTION) or mention.is_label:
                continue
            symbol, new = self._mention(mention)
            part = mention.part
            pool = part is not None and part.kind == "pool"
            if part is not None and part.kind == "global":
                pieces.add(part)
            if part is not None and pool and part.owner is not None and part.owner.lost:
                symbol.unnamed = True
            elif part is not None and not mention.lost:
                used.add(part)
                self._place(file, part)
            elif part is None and self.space(mention) == "shared" and mention.size == 0:
                self.lists.section_of_files(".nv_debug.shared", "nobits")
            symbol.common = symbol.common or mention.shndx == COMMON
            if self.family == "C" and pool and part is not None and part.owner is not None:
                number += 1  # constants of code lose their names
                symbol.name = f".nv.constant.optimizer.{part.owner.name}.{number}"
            if new:
                self._list(symbol, mention)
        file.unused = pieces - used

    # Sections.

    def _place(self, file: Input, part: Part) -> None:
        """Set the output section of an input section, and create it if it is new."""
        if part.kind in SHARED_BY_FILES:
            part.home = self.lists.section_of_files(part.name, SHARED_BY_FILES[part.kind])
        if part.owner is None:
            return
        symbol = part.owner.output_symbol
        if part.kind == "parameters" and not part.owner.lost:
            symbol.parameters = symbol.parameters or self._parameters(part.name, symbol)
            part.home = symbol.parameters
        elif part.kind == "pool":
            part.home = self._pool(file, part, part.owner, symbol)
        elif part.kind == "shared":  # of a kernel that is not a root
            symbol.shared = symbol.shared or self.lists.section(part.name, "nobits", symbol)
            part.home = symbol.shared

    def _parameters(self, name: str, symbol: Symbol) -> Section:
        """Create the section of a kernel's parameters."""
        if self.relocatable:
            return self.lists.section(name, "constant", symbol)

        def relocations_for_the_driver() -> None:
            """Create the relocation section of parameters, which is not written."""
            symbol.parameters_rel = self.lists.section(f".rel{name}", "relocations", symbol)
            symbol.parameters_rel.is_written = False

        return self.lists.section(
            name, "constant", symbol, before_symbol=relocations_for_the_driver
        )

    def _pool(self, file: Input, part: Part, owner: Mention, symbol: Symbol) -> Section | None:
        """Return the section for tables and literals of a function.

        A device function has a list of pieces.
        """
        if owner not in symbol.pieces:
            symbol.pieces.append(owner)
        if owner.lost:
            if symbol.pool is None and not symbol.has_pool:
                symbol.pool = self.lists.section(part.name, "constant", symbol)
                symbol.has_pool = symbol.pool_is_lost = True
            return symbol.pool
        if not symbol.has_pool:
            self.pools.append((symbol, file))
        symbol.has_pool = True
        if symbol.pool is None and (symbol.is_kernel or self.relocatable):
            symbol.pool = self.lists.section(part.name, "constant", symbol)
        return symbol.pool


def _append(part: Part, home: Section) -> None:
    """Place an input section at the end of an output section."""
    align = part.align or 1
    part.base = -(-home.size // align) * align
    part.appended = True
    home.size = part.base + part.size


def _wins(new: Mention, old: Mention, first_ptx: int) -> bool:
    """Return whether a definition replaces the current one.

    `first_ptx` is the SM number of the PTX of the first definition's file.
    """
    if old.shndx == COMMON:
        return new.shndx != COMMON
    if new.shndx == COMMON or (new.bind == WEAK != old.bind):
        return False
    if new.bind != WEAK:
        return True
    if new.type != FUNC:
        return False
    new_registers, current = (m.file.registers.get(m.index, 0) for m in (new, old))
    return new_registers < current if new_registers != current else new.file.ptx > first_ptx
