"""Reports that looking for duplicates takes a large part of the link."""

from link_rules import milliseconds, number, rule, size

# Least percent of the link's processor time at which looking for duplicates is reported.
LEAST_PERCENT = 5.0


@rule(
    "LinkDedupStage",
    "Deduplication",
    "Reports the cost of looking for duplicates, and the effect of omitting it.",
    "LinkDedup",
)
def apply(phase, report):
    """Call `report` if looking for duplicates took long, by the metrics of the action `phase`."""
    share = number(phase, "link__dedup_cpu_time_share.pct")
    phase_share = number(phase, "link__cpu_time_share.pct")
    time = number(phase, "link__cpu_time_duration.sum")
    if share is None or share < LEAST_PERCENT or not phase_share or not time:
        return
    saved = number(phase, "dedup__bytes_saved.sum")
    report(
        "Looking for duplicates takes {} of processor time, {:.0f}% of the link's. "
        "--merc-dedup=off omits it{}. The estimate is the measured processor time of these steps, "
        "without loading their modules.".format(
            milliseconds(time * share / phase_share),
            share,
            "" if saved is None else ", and makes the output {} longer".format(size(saved)),
        ),
        "link__dedup_cpu_time_share.pct",
        share,
        ">= {:.0f}% of the link".format(LEAST_PERCENT),
        speedup=share,
    )
