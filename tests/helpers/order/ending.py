"""The order reference after the last input: dead code, pools, and sections without a name."""

from __future__ import annotations

from collections.abc import Callable

from helpers.order.lists import Section, Symbol
from helpers.order.reader import COMMON, CONST0_SIZE, LOCAL, Input
from helpers.order.reading import Reading
from helpers.order.shared import choose_shared

INTERNAL = 1  # visibility


class Ending(Reading):
    """The state after all inputs; `finish` decides which names and headers are written."""

    def __init__(
        self,
        family: str,
        relocatable: bool,
        selected: Callable[[str], bool],
        files: list[Input],
    ) -> None:
        super().__init__(family, relocatable, selected)
        self.files = files
        self.callees: dict[Symbol, list[Symbol]] = {}

    def finish(self) -> None:
        """Decide which sections and symbols are written, and which names."""
        if any(
            y.common and (y.copy is None or y.copy.shndx == COMMON) for y in self.lists.symbols()
        ):
            self.lists.section_of_files(".nv.global", "nobits")
        self.lists.section(".nv.callgraph", "calls")
        prototype = self.lists.section(".nv.prototype", "calls")
        self._bury()
        prototype.is_written = any(y.live and not y.is_taken for y in self.with_prototype)
        if self.relocatable:
            for symbol in self.functions:
                if symbol.uses_array:
                    self.lists.locals.append(Symbol("externsharedinstance"))
        else:
            self._spread_pools()
            if self.family != "C":
                self.lists.section(".nv.rel.action", "calls")
        self._hide_sections()
        self._hide_symbols()
        choose_shared(self)

    def reach(self, symbol: Symbol) -> set[Symbol]:
        """Return a function and all functions that it reaches by calls."""
        seen, todo = {symbol}, [symbol]
        while todo:
            for callee in self.callees.get(todo.pop(), ()):
                if callee not in seen:
                    seen.add(callee)
                    todo.append(callee)
        return seen

    def live_kernels(self) -> list[Symbol]:
        """Return the live kernels, in order of first mention."""
        return [y for y in self.functions if y.is_kernel and y.live]

    def _bury(self) -> None:
        """Remove dead code: functions that no root reaches and whose address is not taken."""
        for caller, callee in self.calls:
            self.callees.setdefault(caller, []).append(callee)
        for caller, prototype in self.indirect:
            reached = [y for text, y in self.takers if text == prototype]
            self.callees.setdefault(caller, []).extend(reached)
        if self.relocatable:
            return
        live: set[Symbol] = set()
        for symbol in self.functions:
            if symbol.is_kernel and self.selected(symbol.name) and symbol not in live:
                live |= self.reach(symbol)
        live |= {y for y in self.functions if y.is_taken and y.copy}
        live |= {callee for caller, callee in self.calls if caller in live and callee.copy is None}
        for symbol in self.functions:
            if symbol in live:
                continue
            symbol.live = symbol.has_name = symbol.is_written = False
            own_sections = [symbol.text, symbol.info, symbol.parameters]
            own_sections += [symbol.parameters_rel, symbol.pool]
            own_sections += [s for s in self.lists.sections if s.target and s.target is symbol.text]
            for section in own_sections:
                if section is not None:
                    section.has_name = section.is_written = False

    def _spread_pools(self) -> None:
        """Create pools (sections of bank 2) of kernels that reach a device function with a pool.

        The last function comes first, and for each the last kernel.
        """
        kernels = self.live_kernels()
        reached = {kernel: self.reach(kernel) for kernel in kernels}
        prefix = ".nv.constant.optimizer." if self.family == "C" else ".nv.constant2."
        for symbol, file in reversed(self.pools):
            if not symbol.live or symbol.is_kernel or not symbol.pieces:
                continue
            new_pools: list[tuple[str, Section]] = []
            for kernel in reversed(kernels):
                if symbol in reached[kernel] and kernel.pool is None:
                    name = prefix + kernel.name
                    kernel.pool = self.lists.section(name, "constant", kernel)
                    new_pools.append((name, kernel.pool))
            for name, pool in new_pools if self.family == "C" else ():
                rela = self.lists.section(f".rela{name}", "relocations", None, pool)
                rela.entries.append((file.mentions[0], "kept"))
                pool.forms[True] = rela

    def _hide_sections(self) -> None:
        """Hide relocation sections without entries; their names stay."""
        for section in self.lists.sections:
            if section.target is None:
                continue
            stays = self.family == "C" and (
                section.target.name.startswith(".nv.constant.optimizer.")
                or any(fate == "shared" for _, fate in section.entries)
            )
            section.is_written = section.is_written and (section.has_entries or stays)

    def _hide_symbols(self) -> None:
        """Remove names and rows of symbols that the output does not have."""
        for symbol in self.lists.symbols():
            if symbol.mention is None:
                continue
            current = symbol.current
            space = self.space(current)
            internal = current.bind == LOCAL and current.other & 3 == INTERNAL
            if not symbol.name or symbol.unnamed:
                symbol.has_name = symbol.is_written = False
            elif self.relocatable:
                continue
            elif space == "shared" or internal or symbol.name == CONST0_SIZE:
                symbol.has_name = symbol.is_written = False
            elif space == "unified":
                symbol.is_written = False
