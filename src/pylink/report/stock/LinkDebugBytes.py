"""Most of the input is debug data."""

from link_rules import instances, number, rule, size

# Percent of the input from which on debug data is worth a word.
SHARE = 30.0
# Percent of the debug data that named inputs, or one option, have to bring to be called the cause.
MOST = 50.0

# What to do about debug data, by what brings it.
CAUSES = {
    "-G": (
        "Inputs with .debug_info, which -G makes, have {} of it: where source lines are enough, "
        "compile with -lineinfo, which also optimizes."
    ),
    "-lineinfo": (
        "Inputs with lines alone, as of -lineinfo, have {} of it: leave that out where nobody "
        "looks at source lines."
    ),
}
# Frames, which every compilation makes: nobody can omit them.
ALWAYS = "always"


@rule(
    "LinkDebugBytes",
    "Debug Data",
    "Says how much of the input is debug data, and which inputs and options bring it.",
    "LinkInputs",
)
def apply(phase, say):
    debug = number(phase, "file__debug_bytes.sum")
    total = number(phase, "file__bytes_input.sum")
    if not debug or not total or 100.0 * debug < SHARE * total:
        return
    causes = instances(phase, "file__debug_bytes_by_option.sum")
    if causes and causes[0][0] == ALWAYS:
        return
    sections = "".join(
        " " + CAUSES[option].format("{:.0f}%".format(100.0 * value / debug))
        for option, value in causes[:1]
        if option in CAUSES and 100.0 * value >= MOST * debug
    )
    say(
        "{:.0f}% of the input is debug data{}.{} The estimate is the part that debug data has in "
        "the processor time of reading, copying and writing, by size.".format(
            100.0 * debug / total,
            _where(instances(phase, "file__debug_bytes.sum"), debug),
            sections,
        ),
        "file__debug_bytes.sum",
        debug,
        ">= {:.0f}% of the input".format(SHARE),
        speedup=number(phase, "link__debug_cpu_time_share.pct"),
    )


def _where(files, debug):
    """Which inputs have it: three by name if most of it is theirs, else how it is spread."""
    if not files:
        return ""
    named = ["{} ({})".format(name, size(value)) for name, value in files[:3]]
    if 100.0 * sum(value for _, value in files[:3]) > MOST * debug:
        return ", most of it in " + ", ".join(named)
    return ", spread over {} inputs, of which {} has most".format(len(files), named[0])
