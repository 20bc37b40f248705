"""One phase, beside reading and writing, takes most of the link."""

import NvRules
from link_rules import instances, milliseconds, number, phase_of

# Percent of the link from which on a phase dominates it.
SHARE = 50.0

# Steps that a link can do without, and how.
ADVICE = {
    "fold_mercury": "--merc-dedup=off leaves it out; the output has equal sections twice then.",
    "rebuild_debug": "It works on debug data: compile with -lineinfo instead of -G.",
}


def get_identifier():
    return "LinkDominatingPhase"


def get_name():
    return "Dominating Phase"


def get_description():
    return "Names a phase that takes more than half of the link, and its longest step."


def get_section_identifier():
    return "LinkPhases"


def apply(handle):
    action = phase_of(handle)
    if action is None:
        return
    frontend = NvRules.get_context(handle).frontend()
    share = number(action, "link__time_share.pct")
    time = number(action, "link__time_duration.sum")
    if share is None or not time or share < SHARE or action.name() in ("link", "read", "write"):
        return
    steps = instances(action, "link__step_time_duration.sum")
    text = "{} takes {:.0f}% of the link.".format(action.name(), share)
    name, longest = steps[0] if steps else ("", 0.0)
    if name:
        text += " Its longest step is {} with {}. {}".format(
            name,
            milliseconds(longest),
            ADVICE.get(name, "--profile-aprof shows how its cost grows with the size of the link."),
        )
    message = frontend.message(NvRules.IFrontend.MsgType_MSG_WARNING, text, "Dominating Phase")
    high = NvRules.IFrontend.Severity_SEVERITY_HIGH
    frontend.focus_metric(message, "link__time_share.pct", share, high, "share > 50%")
    if name in ADVICE and hasattr(frontend, "speedup"):
        kind = NvRules.IFrontend.SpeedupType_GLOBAL
        frontend.speedup(message, kind, share * longest / time)
