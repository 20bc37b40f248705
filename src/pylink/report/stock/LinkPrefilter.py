"""Sections are compared byte by byte that a digest would tell apart."""

from link_rules import link_time, number, rule, size

# Bytes from which on hashing is cheaper than comparing, and percent of the hits from which on false
# ones are no chance.
MANY = 1e6
FALSE = 10.0
# Part of the time of comparing that is left with the prefilter.
LEFT = 0.2


@rule(
    "LinkPrefilter",
    "Prefilter",
    "Says that deduplication compares without a prefilter, or that its hits are wrong.",
    "LinkDedup",
)
def apply(phase, say):
    compared = number(phase, "dedup__bytes_compared.sum") or 0.0
    hashed = number(phase, "dedup__sections_hashed.sum") or 0.0
    hits = number(phase, "dedup__prefilter_hits.sum") or 0.0
    wrong = number(phase, "dedup__prefilter_false_positives.sum") or 0.0
    whole = link_time(phase)
    if whole is None:
        return
    if not hashed and compared > MANY:
        time = number(phase, "dedup__time_duration.sum") or 0.0
        say(
            "{} were compared and nothing was hashed: the prefilter is off. Install it with "
            "`pip install 'pylink-cuda[dedup]'`. The estimate is the time of comparing, but for a "
            "fifth that hashing takes.".format(size(compared)),
            "dedup__bytes_compared.sum",
            compared,
            "without hash",
            speedup=100.0 * time * (1.0 - LEFT) / whole,
        )
    elif 100.0 * wrong > FALSE * hits:
        say(
            "{:.0f} of {:.0f} prefilter hits were false: the inputs look made to collide.".format(
                wrong, hits
            ),
            "dedup__prefilter_false_positives.sum",
            wrong,
            "> {:.0f}% of the hits".format(FALSE),
        )
