"""Reports that the inputs were not in the cache of the operating system."""

from link_rules import milliseconds, number, rule, size

# Least cache hit rate, in percent of the bytes, at which the cache counts as warm.
WARM_PERCENT = 90.0


@rule(
    "LinkColdCache",
    "Cold File Cache",
    "Reports inputs that came from disk, which a second run would not wait for.",
    "LinkInputs",
)
def apply(phase, report):
    """Call `report` if inputs came from disk, by the metrics of the action `phase`."""
    hit = number(phase, "file__cache_hit.pct")
    if hit is None or hit >= WARM_PERCENT:
        return
    disk = number(phase, "file__disk_bytes.sum") or 0.0
    time = number(phase, "link__time_duration.sum") or 0.0
    share = number(phase, "link__time_share.pct") or 0.0
    waited = min(number(phase, "file__disk_wait_duration.sum") or 0.0, time)
    report(
        "{} came from disk, and reading waited {} for the disk or for a processor. Link again "
        "before comparing times: with the inputs in the file cache no link waits for the disk. "
        "The estimate is reading time minus processor time, minus the waiting of other phases on "
        "a busy machine.".format(size(disk), milliseconds(waited)),
        "file__cache_hit.pct",
        hit,
        "< {:.0f}%".format(WARM_PERCENT),
        speedup=share * waited / time if time else None,
    )
