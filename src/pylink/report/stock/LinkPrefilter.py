"""Digests that propose sections as equal that are not."""

from link_rules import number, rule

# Percent of the hits from which on false ones are not chance.
FALSE = 10.0


@rule(
    "LinkPrefilter",
    "Prefilter",
    "Says that hits of deduplication's prefilter are wrong.",
    "LinkDedup",
)
def apply(phase, say):
    hits = number(phase, "dedup__prefilter_hits.sum") or 0.0
    wrong = number(phase, "dedup__prefilter_false_positives.sum") or 0.0
    if 100.0 * wrong > FALSE * hits:
        say(
            "{:.0f} of {:.0f} prefilter hits were false: sections with equal digests "
            "differ.".format(wrong, hits),
            "dedup__prefilter_false_positives.sum",
            wrong,
            "> {:.0f}% of the hits".format(FALSE),
        )
