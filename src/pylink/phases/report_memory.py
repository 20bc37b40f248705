"""Part of layout: memory that is too small for what was linked, and who takes how much of it.

Loaded only when there is something to report. Who takes what is found when somebody looks at it.
"""

from __future__ import annotations

import re

from pylink.facts import sectionkinds
from pylink.facts.target import FAMILY_C
from pylink.tables import (
    CONSTANT_KIND,
    DEFINED,
    WON,
    entity_name,
    symbol_name,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pylink.diagnostics import Diagnostic, Sink
    from pylink.phases.results import Merged, Placed

    # A symbol row and the bytes that it takes.
    Share = tuple[int, int]

# So many rows of a table are shown, the largest; the rest is one sum.
MOST_SHARES = 10

# No constant is read in larger pieces, so nvlink keeps to no larger alignment where room is short.
PACKED_ALIGN = 8

# The bank of literal pools and jump tables.
POOL_BANK = 2

# What nvlink puts in front of the name, from sm_100 on: it cuts `.nv.constant.optimizer.NAME` where
# `.nv.constant2.NAME` begins with the name.
_BEFORE_NAME = "optimizer."


def report_pools(placed: Placed, large: Sequence[int], limit: int, sink: Sink) -> None:
    """The functions whose literals and jump tables, OutRows `large`, do not fit into their bank."""
    merged = placed.merged
    objects = merged.objects
    prefix = _BEFORE_NAME if objects.job.target.family == FAMILY_C else ""
    for out in large:
        size, function = placed.outs[out].size, placed.outs[out].entity
        name = entity_name(merged, function)
        shares = list(_pool_shares(merged, function))
        sink.report(
            "too-many-literals",
            explain=_explained(merged, function, shares, size, limit),
            symbol=name,
            entry=prefix + name,
        )


def _pool_shares(merged: Merged, function: int) -> Iterator[Share]:
    """Whose literals and tables the pool of a function has, that of a copy that lost included."""
    objects = merged.objects
    for row in merged.pools:
        if row.kernel == function:
            yield _share(merged, row.section)
    for number, section in enumerate(objects.sections):
        if section.kind != sectionkinds.CONSTANT_FUNC or section.bank != POOL_BANK:
            continue
        if merged.section_function[number] == function and merged.section_role[number] == WON:
            yield _share(merged, number)


def _share(merged: Merged, section: int) -> Share:
    """The function that a section of bank 2 belongs to, and its bytes."""
    sections = merged.objects.sections
    return sections[sections[section].target].target, sections[section].size


def report_constants(placed: Placed, size: int, limit: int, sink: Sink) -> None:
    """The variables of all files do not fit into the bank of constants."""
    merged = placed.merged
    shares = [
        (entity.winner, merged.objects.symbols[entity.winner].size)
        for entity in merged.entities
        if entity.kind == CONSTANT_KIND
        and entity.flags & DEFINED
        and _is_of_file(merged, entity.winner)
    ]
    packed = packed_size(share for _, share in shares)
    size = packed if packed > limit else size
    sink.report(
        "too-much-file-memory",
        explain=_explained(merged, -1, shares, size, limit),
        space="constant",
        size=size,
        limit=limit,
    )


def packed_size(sizes: Iterable[int]) -> int:
    """The bytes that nvlink gives variables before it refuses them: whole, whatever they declare.

    Small ones are aligned to their size, which need not be a power of two, and come last.
    """
    end = 0
    for size in sorted(sizes, key=lambda size: (-min(size, PACKED_ALIGN), size)):
        end += -end % max(min(size, PACKED_ALIGN), 1) + size
    return end


def _is_of_file(merged: Merged, symbol: int) -> bool:
    """Whether a constant is a variable in a section that the output has, and no literal."""
    section = merged.objects.symbols[symbol].section
    if section < 0:
        return False
    kind = merged.objects.sections[section].kind
    return kind == sectionkinds.CONSTANT and merged.out_of[section] >= 0


def report_shared(
    merged: Merged,
    oversized: Sequence[tuple[int, int]],
    shares: Callable[[int], list[Share]],
    limit: int,
    sink: Sink,
) -> None:
    """The kernels, each with its bytes, that use more shared memory than there is."""
    for kernel, size in oversized:
        sink.report(
            "too-much-memory",
            explain=_explained(merged, kernel, shares(kernel), size, limit),
            symbol=entity_name(merged, kernel),
            space="shared",
            size=size,
            limit=limit,
        )


def _explained(
    merged: Merged, function: int, shares: list[Share], size: int, limit: int
) -> Callable[[Diagnostic], None]:
    """The place of a function, unless it is -1, and who takes how much, the largest first."""

    def explain(diagnostic: Diagnostic) -> None:
        from pylink.diagnostics.record import note  # noqa: PLC0415 -- when it is looked at
        from pylink.locate.places import places_of  # noqa: PLC0415

        places = places_of(merged.objects)
        if function >= 0:
            winner = merged.entities[function].winner
            places.fill_definition(diagnostic, winner)
        shown = sorted(shares, key=lambda share: -share[1])
        rest = shown[MOST_SHARES:]
        diagnostic.notes.append(note("memory-needed", size=size, limit=limit, over=size - limit))
        diagnostic.notes += [
            places.note_definition(
                "memory-share", symbol, size=taken, name=_readable(merged, symbol)
            )
            for symbol, taken in shown[:MOST_SHARES]
        ]
        if rest:
            total = sum(taken for _, taken in rest)
            diagnostic.notes.append(note("memory-rest", count=len(rest), size=total))

    return explain


def _readable(merged: Merged, symbol: int) -> str:
    """A symbol row's name in source: `f()::x` for what the compiler calls `$___ZZ1fvE1x__24`."""
    from pylink.demangle import demangle  # noqa: PLC0415 -- when it is looked at

    name = symbol_name(merged.objects, symbol)
    local = re.fullmatch(r"\$__(_ZZ.*?)(?:__\d+)?", name, re.DOTALL)
    return demangle(local[1] if local else name)
