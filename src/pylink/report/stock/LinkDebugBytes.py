"""Most of the input is debug data."""

from link_rules import instances, number, rule, size

# Percent of the input from which on debug data is worth a word.
SHARE = 30.0


@rule(
    "LinkDebugBytes",
    "Debug Data",
    "Says how much of the input is debug data, and which inputs bring it.",
    "LinkInputs",
)
def apply(phase, say):
    debug = number(phase, "file__debug_bytes.sum")
    total = number(phase, "file__bytes_read.sum")
    if not debug or not total or 100.0 * debug < SHARE * total:
        return
    files = instances(phase, "file__debug_bytes.sum")[:3]
    say(
        "{:.0f}% of the input is debug data, most of it in {}. Every input has its own copy of the "
        "headers it includes; where lines are enough, compile with -lineinfo instead of -G.".format(
            100.0 * debug / total,
            ", ".join("{} ({})".format(name, size(value)) for name, value in files),
        ),
        "file__debug_bytes.sum",
        debug,
        ">= {:.0f}% of the input".format(SHARE),
        speedup=(number(phase, "link__time_share.pct") or 0.0) * debug / total,
    )
