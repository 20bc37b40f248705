"""Folds the objects of a build: each into the first kept object that accepts it."""

from __future__ import annotations

from pylink._native import dedup as kernel
from pylink.facts.outcomes import FoldOutcome
from pylink.mercury.index import FoldIndex, KeptObjects
from pylink.mercury.stages import Tally, Verdict, check_options, decide
from pylink.mercury.stats import Stats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pylink.mercury.objects import MercuryObject

    Progress = Callable[[int], None]


class FoldResult:
    """The folds of a build: which object's Mercury sections replace those of which other one.

    `reference[i]` is the row of the kept object that object i folds into, None if i is kept.
    `verdicts[i]` is the verdict that accepted i, else the comparison with the last object kept
    before i; None without such an object, or if i has no sections. `payload_bytes` is the size of
    all payloads of folded objects, not the size that an output loses (see `pylink.dedup.saving`).
    `compared` has all comparisons that were made (see Tally), and `stats` their work.
    """

    __slots__ = ("compared", "payload_bytes", "reference", "stats", "verdicts")

    def __init__(
        self,
        reference: list[int | None],
        verdicts: list[Verdict | None],
        payload_bytes: int,
        stats: Stats,
        compared: list[Verdict],
    ) -> None:
        self.reference = reference
        self.verdicts = verdicts
        self.payload_bytes = payload_bytes
        self.stats = stats
        self.compared = compared


def fold(
    objects: Iterable[MercuryObject],
    *,
    prefilter: str = "xxh3",
    identity: str = "symbols",
    progress: Progress | None = None,
) -> FoldResult:
    """Compare each object with the kept ones in order; the first that accepts is its reference.

    With `prefilter="none"` every pair is compared until one accepts: N*N/2 comparisons if nothing
    folds. With "xxh3" pairs that cannot fold are omitted; the result is the same. `progress` is
    called with the number of objects done. Objects without sections do not fold. `identity` is
    "symbols" if the symbols of equal relocations must be equal, too, else "bytes".
    """
    hashed, symbols = check_options(prefilter, identity)
    all_objects = list(objects)
    # Indices of the objects that have sections; `search` yields indices of this list.
    rows = [row for row, i in enumerate(all_objects) if i.headers or i.targets or i.primary]
    items = [all_objects[row] for row in rows]
    tally = Tally()
    search = _fold_by_index if hashed else _fold_by_walk
    reference: list[int | None] = [None] * len(all_objects)
    verdicts: list[Verdict | None] = [None] * len(all_objects)
    for index, twin, verdict in search(items, tally, symbols=symbols):
        reference[rows[index]] = None if twin is None else rows[twin]
        verdicts[rows[index]] = verdict
        if progress is not None:
            progress(rows[index] + 1)
    pairs = zip(all_objects, reference, strict=True)
    payload = sum(item.size for item, twin in pairs if twin is not None)
    return FoldResult(reference, verdicts, payload, tally.stats(), tally.compared)


def _fold_by_walk(
    items: list[MercuryObject], tally: Tally, *, symbols: bool
) -> Iterator[tuple[int, int | None, Verdict | None]]:
    """Compare each object with the kept ones in order, without hashes.

    Yields row, reference (the row of the object that accepts it, None if kept) and verdict of each
    object.
    """
    kept_objects = KeptObjects()
    for row, item in enumerate(items):
        twin, verdict = _find_first_accepting(items, kept_objects, item, tally, symbols=symbols)
        yield row, twin, verdict
        if twin is None:
            kept_objects.add(row, item)


def _find_first_accepting(
    items: list[MercuryObject],
    kept_objects: KeptObjects,
    item: MercuryObject,
    tally: Tally,
    *,
    symbols: bool,
) -> tuple[int | None, Verdict | None]:
    """Return the row of the first kept object that accepts `item`, and the last verdict.

    The row is None if none accepts; both are None if `kept_objects` is empty.
    """
    position, last, total = kernel.find_first_accepting(
        kept_objects.vectors, item.vectors, symbols=symbols
    )
    tried_count = position + 1 if position >= 0 else len(kept_objects.rows)
    tally.pairs += tried_count
    tally.results.append(total)
    if not tried_count:
        return None, None
    reference = items[kept_objects.rows[tried_count - 1]]
    tally.compared.append(Verdict(reference, item, total))
    return kept_objects.rows[position] if position >= 0 else None, Verdict(reference, item, last)


def _fold_by_index(
    items: list[MercuryObject], tally: Tally, *, symbols: bool
) -> Iterator[tuple[int, int | None, Verdict | None]]:
    """Compare only pairs that the index proposes; yields the same as `_fold_by_walk`.

    An object that is kept is also compared with the last one that was kept, for its verdict.
    """
    index = FoldIndex(items, tally)
    # If all objects have symbols, an object with symbols private to its file neither accepts
    # another one nor folds.
    skips_private = symbols and all(item.has_symbols for item in items)
    last: int | None = None  # row of the object that was kept last
    for row, item in enumerate(items):
        eligible = not skips_private or item.vectors.is_self_contained
        verdicts: dict[int, Verdict] = {}  # by row of the kept object that `item` is compared with
        twin = None
        if eligible and index.needs_walk(item):
            # The index cannot tell which candidate accepts `item`, so native code tries them in
            # order, up to the first that does.
            candidates = index.candidates(item)
            twin, walked = _find_first_accepting(items, candidates, item, tally, symbols=symbols)
            if walked is not None:
                verdicts[candidates.rows[-1] if twin is None else twin] = walked
        else:
            for other in index.find(item) if eligible else ():
                verdict = verdicts[other] = decide(items[other], item, tally, symbols=symbols)
                if verdict.reason_row == FoldOutcome.ACCEPTED:
                    twin = other
                    break
        if twin is not None:
            yield row, twin, verdicts[twin]
            continue
        if last is not None and last not in verdicts:
            verdicts[last] = decide(items[last], item, tally, symbols=symbols)
        if eligible:
            index.add(row, verdicts)
        yield row, None, None if last is None else verdicts[last]
        last = row
