"""Counts of the work of comparisons."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


# Length of `Result.counts` (_native/dedup.pyi).
COUNTS = 9
# All counts except for the times, in the order of reports.
NAMES = (
    "pairs", "memcmp_calls", "bytes_compared", "bytes_offered", "twin_probes", "prefilter_hits",
    "false_positives", "digests", "digest_bytes",
)  # fmt: skip


class Stats:
    """Counts of one comparison or of a whole build.

    Two `Stats` are equal if all their counts are, whatever their times.

    pairs               comparisons of a candidate with a reference
    memcmp_calls        comparisons of two payloads
    bytes_compared      bytes of each side that were read: up to and including the first
                        difference
    bytes_offered       sum of the sizes of the compared payloads
    twin_probes         reference rows examined in stages 2 and 3
    prefilter_hits      reference rows found by hash that were equal to the candidate's row
    false_positives     reference rows found by hash that were not equal to it
    digests             sections hashed with XXH3
    digest_bytes        bytes of hashed sections
    stage_ns            nanoseconds spent in stages 1, 2 and 3; symbols are checked in stage 3
    """

    __slots__ = (
        "bytes_compared", "bytes_offered", "digest_bytes", "digests", "false_positives",
        "memcmp_calls", "pairs", "prefilter_hits", "stage_ns", "twin_probes",
    )  # fmt: skip

    def __init__(
        self, pairs: int = 0, counts: Sequence[int] = (0,) * COUNTS, digests: int = 0, size: int = 0
    ) -> None:
        self.pairs = pairs
        self.memcmp_calls = counts[0]
        self.bytes_compared = counts[1]
        self.bytes_offered = counts[2]
        self.twin_probes = counts[3]
        self.prefilter_hits = counts[4]
        self.false_positives = counts[5]
        self.stage_ns = (counts[6], counts[7], counts[8])
        self.digests = digests
        self.digest_bytes = size

    def counts(self) -> dict[str, int]:
        """Return all counts except for the times."""
        return {name: getattr(self, name) for name in NAMES}

    def as_dict(self) -> dict[str, int | list[int]]:
        """Return all counts and times, for JSON."""
        return {**self.counts(), "stage_ns": list(self.stage_ns)}

    def __eq__(self, other: object) -> bool:
        return self.counts() == other.counts() if isinstance(other, Stats) else NotImplemented

    __hash__ = None  # type: ignore[assignment] # equal by value; never a key

    def __repr__(self) -> str:
        rows = ", ".join(f"{name}={value}" for name, value in self.counts().items())
        return f"Stats({rows})"
