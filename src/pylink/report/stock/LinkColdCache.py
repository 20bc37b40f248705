"""The inputs were not in the cache of the operating system."""

import NvRules
from link_rules import milliseconds, number, phase_of, size

# Percent of the bytes that a second run finds in the cache.
WARM = 90.0


def get_identifier():
    return "LinkColdCache"


def get_name():
    return "Cold File Cache"


def get_description():
    return "Says that the inputs came from disk, which a second run would not wait for."


def get_section_identifier():
    return "LinkInputs"


def apply(handle):
    action = phase_of(handle)
    if action is None:
        return
    frontend = NvRules.get_context(handle).frontend()
    hit = number(action, "file__cache_hit.pct")
    if hit is None or hit >= WARM:
        return
    disk = number(action, "file__disk_bytes.sum") or 0.0
    time = number(action, "link__time_duration.sum") or 0.0
    processor = number(action, "link__cpu_time_duration.sum") or 0.0
    share = number(action, "link__time_share.pct") or 0.0
    waited = max(time - processor, 0.0)
    text = (
        "{} came from disk, and reading waited {} for it. Link once more before comparing times: "
        "with the inputs in the file cache that wait is gone."
    ).format(size(disk), milliseconds(waited))
    message = frontend.message(NvRules.IFrontend.MsgType_MSG_WARNING, text, "Cold File Cache")
    high = NvRules.IFrontend.Severity_SEVERITY_HIGH
    frontend.focus_metric(message, "file__cache_hit.pct", hit, high, "< 90%")
    if time and hasattr(frontend, "speedup"):
        kind = NvRules.IFrontend.SpeedupType_GLOBAL
        frontend.speedup(message, kind, share * waited / time)
