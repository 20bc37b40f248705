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
    total = number(phase, "file__bytes_input.sum")
    if not debug or not total or 100.0 * debug < SHARE * total:
        return
    full = number(phase, "file__with_debug_info.sum")
    if full:
        cause = (
            "{:.0f} of the inputs have .debug_info, which -G makes: where source lines are enough, "
            "compile with -lineinfo, which also optimizes.".format(full)
        )
    elif full is None:
        cause = "Leave out -G or -lineinfo where nobody looks at source lines."
    else:
        cause = (
            "No input has .debug_info, so it is the lines of -lineinfo: leave that out where "
            "nobody looks at source lines."
        )
    files = instances(phase, "file__debug_bytes.sum")[:3]
    named = ", ".join("{} ({})".format(name, size(value)) for name, value in files)
    say(
        "{:.0f}% of the input is debug data{}. {} The estimate is the part that debug data has in "
        "the processor time of reading, copying and writing, by size.".format(
            100.0 * debug / total, ", most of it in " + named if named else "", cause
        ),
        "file__debug_bytes.sum",
        debug,
        ">= {:.0f}% of the input".format(SHARE),
        speedup=number(phase, "link__debug_cpu_time_share.pct"),
    )
