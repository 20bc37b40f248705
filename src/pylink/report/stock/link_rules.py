"""Helpers that the rules of links share. Rules also load in Nsight Compute, whose Python is 3.5."""

import functools

import NvRules

# Levels of messages: the type of the message, and the severity of its focus metric.
WARNING = (NvRules.IFrontend.MsgType_MSG_WARNING, NvRules.IFrontend.Severity_SEVERITY_HIGH)
MINOR = (NvRules.IFrontend.MsgType_MSG_WARNING, NvRules.IFrontend.Severity_SEVERITY_LOW)
INFORMATION = (NvRules.IFrontend.MsgType_MSG_OK, NvRules.IFrontend.Severity_SEVERITY_LOW)


def rule(identifier, name, description, section=None):
    """Make the file of the decorated function `apply(phase, report)` a rule file.

    The other functions of a rule file are created from the arguments. `phase` is the action that
    the rule examines. Rules run neither for the whole link (`range`) nor for comparisons of inputs
    (`dedup`), since phases have the same numbers. `report` adds a message, see `_report`.
    """

    def define(examine):
        names = examine.__globals__
        names["get_identifier"] = lambda: identifier
        names["get_name"] = lambda: name
        names["get_description"] = lambda: description
        if section is not None:
            names["get_section_identifier"] = lambda: section

        def apply(handle):
            context = NvRules.get_context(handle)
            action = context.range_by_idx(0).action_by_idx(0)
            if action.name() not in ("range", "dedup"):
                examine(action, functools.partial(_report, context.frontend(), name))

        return apply

    return define


# Percent of the link's time that advice must save, so that its message is a warning.
WARNING_PERCENT = 5.0


def _report(frontend, title, text, metric, value, limit, *, speedup=None, level=WARNING):
    """Add a message with the focus metric `metric`, whose value is `value`.

    `limit` is a text on the bound for the value, such as ">= 5%". `speedup` is the time that the
    advice saves, in percent of the link's; below WARNING_PERCENT, the message is only information.
    """
    if speedup is not None and speedup < WARNING_PERCENT:
        level = INFORMATION
    kind, severity = level
    message = frontend.message(kind, text, title)
    frontend.focus_metric(message, metric, value, severity, limit)
    # Nsight Compute 2022.3 has no method for estimates.
    if speedup is not None and hasattr(frontend, "speedup"):
        frontend.speedup(message, NvRules.IFrontend.SpeedupType_GLOBAL, speedup)


def number(action, name):
    """Return the value of a metric itself as a float; None if the action does not have it."""
    metric = action.metric_by_name(name)
    return None if metric is None or not metric.has_value() else float(metric.value())


def instances(action, name):
    """Return pairs (id, value) of the instances of a metric, largest first; [] without ids."""
    metric = action.metric_by_name(name)
    if metric is None or not metric.has_correlation_ids():
        return []
    ids = metric.correlation_ids()
    pairs = [
        (str(ids.value(number)), float(metric.value(number)))
        for number in range(metric.num_instances())
    ]
    return sorted(pairs, key=lambda pair: -pair[1])


def milliseconds(nanoseconds):
    """Return nanoseconds as text in milliseconds."""
    return "{:.3g} ms".format(nanoseconds / 1e6)


def size(count):
    """Format a number of bytes with a unit."""
    for name in ("B", "kB", "MB"):
        if count < 1000:
            return "{:.3g} {}".format(count, name)
        count /= 1000.0
    return "{:.3g} GB".format(count)
