"""Digests (XXH3 hashes) of the sections of Mercury objects, computed at first use and kept."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from pylink.mercury.objects import MercuryObject, Payload

    class Counter(Protocol):
        """Counts hashed sections and their bytes."""

        def count_digests(self, sections: int, size: int) -> None: ...


# Values of --prefilter: objects and sections that may be equal are found by hashes, or by comparing
# all.
PREFILTERS = ("xxh3", "none")

# Most digests passed to native code in one call: a batch stays in the processor's cache.
DIGESTS_PER_CALL = 1024


def digests_of(payloads: list[Payload]) -> list[int]:
    """Return the 64-bit digest of each payload."""
    import xxhash  # loaded by the first digest, which most comparisons never need

    return list(map(xxhash.xxh3_64_intdigest, payloads))


def primary_digest(item: MercuryObject, row: int, tally: Counter) -> int:
    """Return the digest of `item.primary[row]`; on first use compute it and count it in `tally`."""
    digest = item.digests.get(row)
    if digest is None:
        payload = item.primary[row]
        digest = item.digests[row] = digests_of([payload])[0]
        tally.count_digests(1, len(payload))
    return digest


def target_digest(item: MercuryObject, row: int, tally: Counter) -> int:
    """Return the digest of the relocation section `item.targets[row]`.

    On first use it is computed, and counted in `tally`.
    """
    digest = item.vectors.digest(row)
    if digest is None:
        fill_targets(item, [row], tally)
        digest = item.vectors.digest(row)
        assert digest is not None  # filled a line above
    return digest


def fill_targets(item: MercuryObject, rows: list[int], tally: Counter) -> None:
    """Compute and count the digests of the `rows` of `item.targets`, none of which has one yet."""
    for start in range(0, len(rows), DIGESTS_PER_CALL):
        batch = rows[start : start + DIGESTS_PER_CALL]
        payloads = [item.targets[row][1] for row in batch]
        item.vectors.set_digests(batch, digests_of(payloads))
        tally.count_digests(len(batch), sum(map(len, payloads)))
