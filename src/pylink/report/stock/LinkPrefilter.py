"""Reports digests that are equal for different sections."""

from link_rules import number, rule

# Percent of the prefilter's hits (equal digests) above which false hits (different sections) are
# reported.
FALSE_PERCENT = 10.0


@rule(
    "LinkPrefilter",
    "Prefilter",
    "Reports wrong hits of deduplication's prefilter.",
    "LinkDedup",
)
def apply(phase, report):
    """Call `report` if many prefilter hits were false, by the metrics of the action `phase`."""
    hits = number(phase, "dedup__prefilter_hits.sum") or 0.0
    wrong = number(phase, "dedup__prefilter_false_positives.sum") or 0.0
    if 100.0 * wrong > FALSE_PERCENT * hits:
        report(
            "{:.0f} of {:.0f} prefilter hits were false: sections with equal digests "
            "differ.".format(wrong, hits),
            "dedup__prefilter_false_positives.sum",
            wrong,
            "> {:.0f}% of the hits".format(FALSE_PERCENT),
        )
