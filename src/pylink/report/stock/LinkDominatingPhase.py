"""Reports a phase, other than reading and writing, that takes most of the link."""

from link_rules import instances, milliseconds, number, rule

# Least percent of the link's processor time at which a phase dominates it, and nanoseconds of
# processor time below which a link is too short to matter.
DOMINATING_PERCENT = 50.0
SHORT_LINK_NS = 50e6
# Phases in which only a compiler runs, whose growth with the size of the input is not measured.
COMPILER_PHASES = ("cicc-lto", "ptxas-lto")


@rule(
    "LinkDominatingPhase",
    "Dominating Phase",
    "Names a phase that takes more than half of the link's processor time, and its longest step.",
    "LinkPhases",
)
def apply(phase, report):
    """Call `report` if the action `phase` takes most of the link's processor time."""
    share = number(phase, "link__cpu_time_share.pct")
    time = number(phase, "link__cpu_time_duration.sum")
    if not share or not time or phase.name() in ("link", "read", "write"):
        return
    link_time = 100.0 * time / share
    # Loading modules is a cost of the process that does not depend on the link's size.
    loading = number(phase, "link__loading_time_duration.sum") or 0.0
    link_time, time = link_time - loading, time - loading
    if link_time < SHORT_LINK_NS or 100.0 * time < DOMINATING_PERCENT * link_time:
        return
    steps = instances(phase, "link__step_time_duration.sum")
    text = "{} takes {:.0f}% of the link's processor time.".format(
        phase.name(), 100.0 * time / link_time
    )
    if steps:
        text += " Its longest step in wall time is {} with {}.".format(
            steps[0][0], milliseconds(steps[0][1])
        )
    if phase.name() in COMPILER_PHASES:
        text += " This is the time of the compiler, which the link waits for."
    else:
        text += " --profile-aprof shows how its cost grows with the size of the link."
    report(
        text,
        "link__cpu_time_share.pct",
        share,
        "share >= {:.0f}%".format(DOMINATING_PERCENT),
    )
