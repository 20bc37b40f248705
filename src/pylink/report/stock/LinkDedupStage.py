"""One stage takes most of deduplication, and that a good part of the link."""

import NvRules
from link_rules import instances, link_time, milliseconds, phase_of

# Percent of deduplication, and of the link, from which on a stage is worth a word.
SHARE = 60.0
NOTABLE = 5.0

ADVICE = {
    "primary": "Its bytes are compared pair by pair: many inputs are alike in size alone.",
    "headers": "Many inputs are alike up to their section headers; a prefilter (xxhash) tells "
    "them apart at once.",
    "targets": "Inputs are alike in all but the sections they refer to. --merc-dedup=off saves "
    "this time where nothing folds.",
}


def get_identifier():
    return "LinkDedupStage"


def get_name():
    return "Deduplication Stage"


def get_description():
    return "Names the stage that deduplication spends its time in."


def get_section_identifier():
    return "LinkDedup"


def apply(handle):
    action = phase_of(handle)
    if action is None:
        return
    frontend = NvRules.get_context(handle).frontend()
    stages = instances(action, "dedup__time_duration.sum")
    whole = link_time(action)
    total = sum(value for _, value in stages)
    if not whole or not total:
        return
    name, longest = stages[0]
    share = 100.0 * longest / whole
    if 100.0 * longest < SHARE * total or share < NOTABLE:
        return
    text = "Deduplication spends {} of its {} in the stage {}, {:.0f}% of the link. {}".format(
        milliseconds(longest), milliseconds(total), name, share, ADVICE.get(name, "")
    )
    message = frontend.message(NvRules.IFrontend.MsgType_MSG_WARNING, text, "Deduplication Stage")
    high = NvRules.IFrontend.Severity_SEVERITY_HIGH
    frontend.focus_metric(message, "dedup__time_duration.sum", longest, high, "one stage > 60%")
    if hasattr(frontend, "speedup"):
        frontend.speedup(message, NvRules.IFrontend.SpeedupType_GLOBAL, share)
