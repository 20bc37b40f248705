"""Sections are compared byte by byte that a digest would tell apart."""

import NvRules
from link_rules import link_time, number, phase_of, size

# Bytes from which on hashing is cheaper than comparing.
MANY = 1e6


def get_identifier():
    return "LinkPrefilter"


def get_name():
    return "Prefilter"


def get_description():
    return "Says that deduplication compares without a prefilter, or that its hits are wrong."


def get_section_identifier():
    return "LinkDedup"


def apply(handle):
    action = phase_of(handle)
    if action is None:
        return
    frontend = NvRules.get_context(handle).frontend()
    compared = number(action, "dedup__bytes_compared.sum") or 0.0
    hashed = number(action, "dedup__sections_hashed.sum") or 0.0
    hits = number(action, "dedup__prefilter_hits.sum") or 0.0
    wrong = number(action, "dedup__prefilter_false_positives.sum") or 0.0
    whole = link_time(action)
    if whole is None:
        return
    high = NvRules.IFrontend.Severity_SEVERITY_HIGH
    if not hashed and compared > MANY:
        text = (
            "{} were compared and nothing was hashed: the prefilter is off. Install it with "
            "`pip install 'pylink[dedup]'`."
        ).format(size(compared))
        message = frontend.message(NvRules.IFrontend.MsgType_MSG_WARNING, text, "Prefilter")
        frontend.focus_metric(message, "dedup__bytes_compared.sum", compared, high, "without hash")
        time = number(action, "dedup__time_duration.sum") or 0.0
        if hasattr(frontend, "speedup"):
            kind = NvRules.IFrontend.SpeedupType_GLOBAL
            frontend.speedup(message, kind, 100.0 * time / whole)
    elif hits and wrong > hits / 10:
        text = (
            "{:.0f} of {:.0f} prefilter hits were false: the inputs look made to collide.".format(
                wrong, hits
            )
        )
        message = frontend.message(NvRules.IFrontend.MsgType_MSG_WARNING, text, "Prefilter")
        frontend.focus_metric(
            message, "dedup__prefilter_false_positives.sum", wrong, high, "> 10% of the hits"
        )
