"""One phase, beside reading and writing, takes most of the link."""

from link_rules import instances, milliseconds, number, rule

# Percent of the link's processor time from which on a phase dominates it, and nanoseconds of
# processor time below which a link is over before anybody would look for a reason.
SHARE = 50.0
SHORT = 50e6
# Phases that other programs do; no growth is measured of them.
COMPILING = ("cicc-lto", "ptxas-lto")


@rule(
    "LinkDominatingPhase",
    "Dominating Phase",
    "Names a phase that takes more than half of the link's processor time, and its longest step.",
    "LinkPhases",
)
def apply(phase, say):
    share = number(phase, "link__cpu_time_share.pct")
    time = number(phase, "link__cpu_time_duration.sum")
    if not share or not time or phase.name() in ("link", "read", "write"):
        return
    whole = 100.0 * time / share
    # Loading modules is a price of the process and not of the link's size.
    loading = number(phase, "link__loading_time_duration.sum") or 0.0
    whole, time = whole - loading, time - loading
    if whole < SHORT or 100.0 * time < SHARE * whole:
        return
    steps = instances(phase, "link__step_time_duration.sum")
    text = "{} takes {:.0f}% of the link's processor time.".format(
        phase.name(), 100.0 * time / whole
    )
    if steps:
        text += " Its longest step by the clock is {} with {}.".format(
            steps[0][0], milliseconds(steps[0][1])
        )
    if phase.name() in COMPILING:
        text += " That is the work of the compiler, which the link waits for."
    else:
        text += " --profile-aprof shows how its cost grows with the size of the link."
    say(
        text,
        "link__cpu_time_share.pct",
        share,
        "share >= {:.0f}%".format(SHARE),
    )
