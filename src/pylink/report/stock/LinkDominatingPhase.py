"""One phase, beside reading and writing, takes most of the link."""

from link_rules import instances, milliseconds, number, rule

# Percent of the link from which on a phase dominates it.
SHARE = 50.0

# Steps that a link can do without, and how.
ADVICE = {
    "fold_mercury": "--merc-dedup=off leaves it out; the output has equal sections twice then.",
    "rebuild_debug": "It works on debug data: compile with -lineinfo instead of -G.",
}


@rule(
    "LinkDominatingPhase",
    "Dominating Phase",
    "Names a phase that takes more than half of the link, and its longest step.",
    "LinkPhases",
)
def apply(phase, say):
    share = number(phase, "link__time_share.pct")
    time = number(phase, "link__time_duration.sum")
    if share is None or not time or share < SHARE or phase.name() in ("link", "read", "write"):
        return
    steps = instances(phase, "link__step_time_duration.sum")
    text = "{} takes {:.0f}% of the link.".format(phase.name(), share)
    name, longest = steps[0] if steps else ("", 0.0)
    if name:
        text += " Its longest step is {} with {}. {}".format(
            name,
            milliseconds(longest),
            ADVICE.get(name, "--profile-aprof shows how its cost grows with the size of the link."),
        )
    say(
        text,
        "link__time_share.pct",
        share,
        "share >= {:.0f}%".format(SHARE),
        speedup=share * longest / time if name in ADVICE else None,
    )
