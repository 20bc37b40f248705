"""Looking for copies takes a good part of the link."""

from link_rules import milliseconds, number, rule, size

# Percent of the link's processor time from which on it is worth a word.
NOTABLE = 5.0


@rule(
    "LinkDedupStage",
    "Deduplication",
    "Says what looking for copies costs, and what leaving it out would.",
    "LinkDedup",
)
def apply(phase, say):
    share = number(phase, "link__dedup_cpu_time_share.pct")
    whole = number(phase, "link__cpu_time_share.pct")
    time = number(phase, "link__cpu_time_duration.sum")
    if share is None or share < NOTABLE or not whole or not time:
        return
    saved = number(phase, "dedup__bytes_saved.sum")
    say(
        "Looking for copies takes {} of processor time, {:.0f}% of the link's. --merc-dedup=off "
        "leaves it out{}. The estimate is the measured processor time of the steps that do it, "
        "without loading their modules.".format(
            milliseconds(time * share / whole),
            share,
            "" if saved is None else "; the output is {} longer then".format(size(saved)),
        ),
        "link__dedup_cpu_time_share.pct",
        share,
        ">= {:.0f}% of the link".format(NOTABLE),
        speedup=share,
    )
