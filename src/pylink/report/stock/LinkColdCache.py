"""The inputs were not in the cache of the operating system."""

from link_rules import milliseconds, number, rule, size

# Percent of the bytes that a second run finds in the cache.
WARM = 90.0


@rule(
    "LinkColdCache",
    "Cold File Cache",
    "Says that the inputs came from disk, which a second run would not wait for.",
    "LinkInputs",
)
def apply(phase, say):
    hit = number(phase, "file__cache_hit.pct")
    if hit is None or hit >= WARM:
        return
    disk = number(phase, "file__disk_bytes.sum") or 0.0
    time = number(phase, "link__time_duration.sum") or 0.0
    share = number(phase, "link__time_share.pct") or 0.0
    waited = min(number(phase, "file__disk_wait_duration.sum") or 0.0, time)
    say(
        "{} came from disk, and reading waited {}, for the disk or for a processor. Link once more "
        "before comparing times: with the inputs in the file cache no link waits for the disk. "
        "The estimate is reading time without processor time, less what a busy machine made other "
        "phases wait.".format(size(disk), milliseconds(waited)),
        "file__cache_hit.pct",
        hit,
        "< {:.0f}%".format(WARM),
        speedup=share * waited / time if time else None,
    )
