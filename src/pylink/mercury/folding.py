"""Folding a whole build: each object into the first kept one that accepts it."""

from __future__ import annotations

from pylink._native import dedup as kernel
from pylink.mercury.index import FoldIndex, KeptObjects
from pylink.mercury.reasons import ACCEPTED
from pylink.mercury.stages import Tally, Verdict, check_options, decide
from pylink.mercury.stats import Stats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pylink.mercury.objects import MercuryObject

    Progress = Callable[[int], None]


class FoldResult:
    """Which object folds into which.

    `reference[i]` is the row of the kept object that i folds into, or None when i is kept.
    `verdicts[i]` is the one that accepted i, else that of the last object kept before it, or None
    when there is none. `payload_bytes` counts all payloads of the folded objects; what a link's
    output loses is another number, see `pylink.dedup.saving`. `compared` has the
    comparisons that were made, see Tally.
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

    With `prefilter="none"` every pair is compared until one accepts: N*N/2 comparisons when nothing
    folds. With "xxh3" the pairs that cannot fold are omitted; the result is the same. `progress`
    is called with the number of objects done. Objects without sections fold nothing, and nothing
    folds into them.
    """
    hashed, symbols = check_options(prefilter, identity)
    every = list(objects)
    rows = [row for row, item in enumerate(every) if item.headers or item.targets or item.primary]
    items = [every[row] for row in rows]
    tally = Tally()
    search = _by_index if hashed else _by_walk
    reference: list[int | None] = [None] * len(every)
    verdicts: list[Verdict | None] = [None] * len(every)
    for place, twin, verdict in search(items, symbols, tally):
        reference[rows[place]] = None if twin is None else rows[twin]
        verdicts[rows[place]] = verdict
        if progress is not None:
            progress(rows[place] + 1)
    payload = sum(i.size for i, twin in zip(every, reference, strict=True) if twin is not None)
    return FoldResult(reference, verdicts, payload, tally.stats(), tally.compared)


def _by_walk(
    items: list[MercuryObject], symbols: bool, tally: Tally
) -> Iterator[tuple[int, int | None, Verdict | None]]:
    """All pairs in order."""
    kept = KeptObjects()
    for row, item in enumerate(items):
        twin, verdict = _walk(items, kept, item, symbols, tally)
        yield row, twin, verdict
        if twin is None:
            kept.add(row, item)


def _walk(
    items: list[MercuryObject], kept: KeptObjects, item: MercuryObject, symbols: bool, tally: Tally
) -> tuple[int | None, Verdict | None]:
    """The first of the kept objects that accepts `item`, and the verdict of the last one tried."""
    at, last, total = kernel.first_accepting(kept.vectors, item.vectors, symbols)
    tried = at + 1 if at >= 0 else len(kept.rows)
    tally.pairs += tried
    tally.results.append(total)
    if not tried:
        return None, None
    reference = items[kept.rows[tried - 1]]
    tally.compared.append(Verdict(reference, item, total))
    return kept.rows[at] if at >= 0 else None, Verdict(reference, item, last)


def _by_index(
    items: list[MercuryObject], symbols: bool, tally: Tally
) -> Iterator[tuple[int, int | None, Verdict | None]]:
    """Only the pairs that the index leaves, and the last kept object for the verdict."""
    index = FoldIndex(items, tally)
    # With symbols on both sides an object that uses private ones neither accepts nor is accepted.
    closed = symbols and all(item.has_symbols for item in items)
    last: int | None = None
    for row, item in enumerate(items):
        eligible = not closed or item.vectors.self_contained
        verdicts: dict[int, Verdict] = {}
        twin = None
        if eligible and index.walks(item):
            # Nothing tells which could accept it: a walk over all of them stays in native code.
            candidates = index.candidates(item)
            twin, walked = _walk(items, candidates, item, symbols, tally)
            if walked is not None:
                verdicts[candidates.rows[-1] if twin is None else twin] = walked
        else:
            for other in index.find(item) if eligible else ():
                verdict = verdicts[other] = decide(items[other], item, True, symbols, tally)
                if verdict.why == ACCEPTED:
                    twin = other
                    break
        if twin is not None:
            yield row, twin, verdicts[twin]
            continue
        if last is not None and last not in verdicts:
            verdicts[last] = decide(items[last], item, True, symbols, tally)
        if eligible:
            index.add(row, verdicts)
        yield row, None, None if last is None else verdicts[last]
        last = row
