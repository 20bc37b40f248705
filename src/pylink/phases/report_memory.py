"""Part of layout: reports memory that is too small, with the size of each function or variable.

Loaded only if there is something to report. A share is what one function or variable takes.
"""

from __future__ import annotations

import re

from pylink.facts import sectionkinds
from pylink.facts.elf import round_up
from pylink.facts.rownumbers import EntityFlag, EntityKind, Resolution
from pylink.facts.target import CONSTANT_BANK, CONSTANT_LIMIT, FAMILY_C, LITERAL_BANK
from pylink.tables import entity_name, symbol_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pylink.diagnostics import Diagnostic, Sink
    from pylink.phases.results import Merged, Placed
    from pylink.phases.shared import Oversized

    # Part of a memory: the symbol row of a variable or of a function with literals, and the bytes.
    Share = tuple[int, int]

# Most variables or functions that notes list with their bytes, largest first; others are summed up.
MOST_SHARES = 10

# nvlink's message has this in front of the name, from sm_100 on: it cuts
# `.nv.constant.optimizer.NAME` at the position where the name begins in `.nv.constant2.NAME`.
_BEFORE_NAME = "optimizer."


def report_pools(placed: Placed, large: Sequence[int], limit: int, sink: Sink) -> None:
    """Report functions whose literals and jump tables exceed their bank.

    `large` are the numbers of the output sections, and `limit` is in bytes.
    """
    merged = placed.merged
    objects = merged.objects
    prefix = _BEFORE_NAME if objects.job.target.family == FAMILY_C else ""
    for section in large:
        size, function = placed.outs[section].size, placed.outs[section].entity
        name = entity_name(merged, function)
        shares = list(_pool_shares(merged, function))
        sink.report(
            "too-many-literals",
            explain=_explain_shares(merged, function, shares, size, limit),
            symbol=name,
            entry=prefix + name,
        )


def _pool_shares(merged: Merged, function: int) -> Iterator[Share]:
    """Yield the shares of a function's bank 2: sections placed in its pool, then its own one."""
    objects = merged.objects
    for row in merged.pools:
        if row.kernel == function:
            yield _share_of(merged, row.section)
    for number, section in enumerate(objects.sections):
        if section.kind != sectionkinds.CONSTANT_FUNC or section.bank != LITERAL_BANK:
            continue
        if (
            merged.section_function[number] == function
            and merged.section_resolution[number] == Resolution.WON
        ):
            yield _share_of(merged, number)


def _share_of(merged: Merged, section: int) -> Share:
    """Return the share of a bank 2 section: its function's symbol row, and the section's size."""
    sections = merged.objects.sections
    return sections[sections[section].target].target, sections[section].size


def report_variables(placed: Placed, oversized: Oversized | None, sink: Sink) -> None:
    """Report variables that exceed a kernel's shared memory or the constant bank.

    Reports are in creation order of the output's sections.
    """
    limit = placed.merged.objects.job.target.shared_limit
    kernels = oversized.kernels if oversized is not None else {}
    for out in placed.outs:
        if oversized is not None and out.kind == sectionkinds.SHARED and out.entity in kernels:
            _report_shared(oversized, out.entity, limit, sink)
        is_file_scope = out.kind == sectionkinds.CONSTANT and out.entity < 0
        if is_file_scope and out.bank == CONSTANT_BANK and out.size > CONSTANT_LIMIT:
            _report_constants(placed, out.size, CONSTANT_LIMIT, sink)


def _report_shared(oversized: Oversized, kernel: int, limit: int, sink: Sink) -> None:
    """Report a kernel (an entity) that needs more than `limit` bytes of shared memory."""
    merged, size = oversized.merged, oversized.kernels[kernel]
    sink.report(
        "too-much-memory",
        explain=_explain_shares(merged, kernel, oversized.shares(kernel), size, limit),
        symbol=entity_name(merged, kernel),
        space="shared",
        size=size,
        limit=limit,
    )


def _report_constants(placed: Placed, size: int, limit: int, sink: Sink) -> None:
    """Report that the section of constant variables has `size` bytes, more than `limit`."""
    shares = _constant_shares(placed.merged)
    size = _size_to_report(shares, size, limit)
    sink.report(
        "too-much-file-memory",
        explain=_explain_shares(placed.merged, -1, shares, size, limit),
        space="constant",
        size=size,
        limit=limit,
    )


def needed_constants(placed: Placed, size: int, limit: int) -> int:
    """Return the bytes that messages state for a constant bank whose section has `size` bytes."""
    if size <= limit:
        return size
    return _size_to_report(_constant_shares(placed.merged), size, limit)


def _constant_shares(merged: Merged) -> list[Share]:
    """Return the shares of the constant variables that are not literals."""
    return [
        (entity.winner, merged.objects.symbols[entity.winner].size)
        for entity in merged.entities
        if entity.kind == EntityKind.CONSTANT
        and entity.flags & EntityFlag.DEFINED
        and _is_of_file(merged, entity.winner)
    ]


def _size_to_report(shares: list[Share], size: int, limit: int) -> int:
    """Return the variables' bytes as nvlink packs them, or `size` if they are within `limit`."""
    packed = packed_size(share for _, share in shares)
    return packed if packed > limit else size


def packed_size(sizes: Iterable[int]) -> int:
    """Return the total size of variables as nvlink packs them, ignoring their alignment, in bytes.

    Variables of 8 bytes or more come first, aligned to 8 bytes. Smaller ones follow, aligned to
    their size, which need not be a power of two.
    """
    end = 0
    for size in sorted(sizes, key=lambda size: (-min(size, sectionkinds.PACKED_ALIGN), size)):
        end = round_up(end, min(size, sectionkinds.PACKED_ALIGN)) + size
    return end


def _is_of_file(merged: Merged, symbol: int) -> bool:
    """Return whether a constant is a variable in a section of the output, not a literal."""
    section = merged.objects.symbols[symbol].section
    if section < 0:
        return False
    kind = merged.objects.sections[section].kind
    return kind == sectionkinds.CONSTANT and merged.out_of[section] >= 0


def _explain_shares(
    merged: Merged, function: int, shares: list[Share], size: int, limit: int
) -> Callable[[Diagnostic], None]:
    """Return a function that completes a diagnostic when it is shown.

    It adds the place of `function` (unless -1), and notes on the shares, largest first.
    """

    def explain(diagnostic: Diagnostic) -> None:
        from pylink.diagnostics.record import note
        from pylink.locate.places import places_of

        places = places_of(merged.objects)
        if function >= 0:
            winner = merged.entities[function].winner
            places.fill_definition(diagnostic, winner)
        by_size = sorted(shares, key=lambda share: -share[1])
        unlisted = by_size[MOST_SHARES:]
        diagnostic.notes.append(note("memory-needed", size=size, limit=limit, over=size - limit))
        diagnostic.notes += [
            places.note_definition(
                "memory-share", symbol, size=share_size, name=_source_name(merged, symbol)
            )
            for symbol, share_size in by_size[:MOST_SHARES]
        ]
        if unlisted:
            total = sum(share_size for _, share_size in unlisted)
            diagnostic.notes.append(note("memory-rest", count=len(unlisted), size=total))

    return explain


def _source_name(merged: Merged, symbol: int) -> str:
    """Return the demangled name of a symbol row: `f()::x` for the local `$___ZZ1fvE1x__24`."""
    from pylink.demangle import demangle

    name = symbol_name(merged.objects, symbol)
    local = re.fullmatch(r"\$__(_ZZ.*?)(?:__\d+)?", name, re.DOTALL)
    return demangle(local[1] if local else name)
