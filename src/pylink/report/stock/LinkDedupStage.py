"""One stage takes most of deduplication, and that a good part of the link."""

from link_rules import instances, link_time, milliseconds, rule

# Percent of deduplication, and of the link, from which on a stage is worth a word.
SHARE = 60.0
NOTABLE = 5.0

ADVICE = {
    "primary": "Its bytes are compared pair by pair: many inputs are alike in size alone.",
    "headers": "Many inputs are alike up to their section headers; a prefilter (xxhash) tells "
    "them apart at once.",
    "targets": "Inputs are alike in all but the sections they refer to. --merc-dedup=off saves "
    "this time where nothing folds.",
}


@rule(
    "LinkDedupStage",
    "Deduplication Stage",
    "Names the stage that deduplication spends its time in.",
    "LinkDedup",
)
def apply(phase, say):
    stages = instances(phase, "dedup__time_duration.sum")
    whole = link_time(phase)
    total = sum(value for _, value in stages)
    if not whole or not total:
        return
    name, longest = stages[0]
    share = 100.0 * longest / whole
    if 100.0 * longest < SHARE * total or share < NOTABLE:
        return
    say(
        "Deduplication spends {} of its {} in the stage {}, {:.0f}% of the link. {}".format(
            milliseconds(longest), milliseconds(total), name, share, ADVICE.get(name, "")
        ),
        "dedup__time_duration.sum",
        longest,
        "one stage >= {:.0f}%".format(SHARE),
        speedup=share,
    )
