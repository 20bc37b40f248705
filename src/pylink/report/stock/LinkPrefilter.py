"""Sections are compared byte by byte that a digest would tell apart."""

from link_rules import link_time, number, rule, size

# Bytes compared in vain from which on it is worth a word, and percent of the hits from which on
# false ones are no chance.
MANY = 1e6
FALSE = 10.0
# Part of the time of comparing in vain that is left with the prefilter.
LEFT = 0.2


@rule(
    "LinkPrefilter",
    "Prefilter",
    "Says that deduplication compares without a prefilter, or that its hits are wrong.",
    "LinkDedup",
)
def apply(phase, say):
    compared = number(phase, "dedup__bytes_compared.sum") or 0.0
    # What is equal has to be compared in any case.
    vain = compared - (number(phase, "dedup__payload_bytes.sum") or 0.0)
    missing = number(phase, "dedup__prefilter_available") == 0.0
    hits = number(phase, "dedup__prefilter_hits.sum") or 0.0
    wrong = number(phase, "dedup__prefilter_false_positives.sum") or 0.0
    whole = link_time(phase)
    if whole is None:
        return
    if missing and vain > MANY:
        time = number(phase, "dedup__time_duration.sum") or 0.0
        say(
            "{} were compared and found to differ: the prefilter, which tells that by hashing, is "
            "not there. Install it with `pip install 'pylink-cuda[dedup]'`. The estimate is the "
            "time of comparing what differs, by size, but for a fifth that hashing "
            "takes.".format(size(vain)),
            "dedup__bytes_compared.sum",
            compared,
            "without hash",
            speedup=100.0 * time * vain / compared * (1.0 - LEFT) / whole,
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
