"""What the rules of links share. Rules also load in Nsight Compute, whose Python is 3.5."""

import functools

import NvRules

_WARNING = NvRules.IFrontend.MsgType_MSG_WARNING
_OK = NvRules.IFrontend.MsgType_MSG_OK
_LOW = NvRules.IFrontend.Severity_SEVERITY_LOW
_HIGH = NvRules.IFrontend.Severity_SEVERITY_HIGH


def rule(identifier, name, description, section=None):
    """Make a rule file of the function below: `apply(phase, say)` with a condition and its words.

    `phase` is the action that the rule looks at, never the whole link or a single comparison, which
    repeat what the phases say. `say` adds a message; see `_say` for what it takes. What a rule file
    has to define besides is made of the arguments.
    """

    def define(judge):
        names = judge.__globals__
        names["get_identifier"] = lambda: identifier
        names["get_name"] = lambda: name
        names["get_description"] = lambda: description
        if section is not None:
            names["get_section_identifier"] = lambda: section

        def apply(handle):
            context = NvRules.get_context(handle)
            action = context.range_by_idx(0).action_by_idx(0)
            if action.name() not in ("range", "dedup"):
                judge(action, functools.partial(_say, context.frontend(), name))

        return apply

    return define


# Percent of the link's time below which an advice is a remark and no headline.
HEADLINE = 5.0


def _say(
    frontend, title, text, metric, value, limit, *, speedup=None, severity=_HIGH, kind=_WARNING
):
    """Add a message; `limit` is what `value` is out of, `speedup` percent of the whole link.

    What would gain less than HEADLINE percent is information and no warning.
    """
    if speedup is not None and speedup < HEADLINE:
        kind, severity = _OK, _LOW
    message = frontend.message(kind, text, title)
    frontend.focus_metric(message, metric, value, severity, limit)
    # Nsight Compute 2022.3 takes no estimates.
    if speedup is not None and hasattr(frontend, "speedup"):
        frontend.speedup(message, NvRules.IFrontend.SpeedupType_GLOBAL, speedup)


def number(action, name):
    """The regular value of a metric as a float; None where the action does not have it."""
    metric = action.metric_by_name(name)
    return None if metric is None or not metric.has_value() else float(metric.value())


def instances(action, name):
    """(id, value) of the instances of a metric, the largest first."""
    metric = action.metric_by_name(name)
    if metric is None or not metric.has_correlation_ids():
        return []
    ids = metric.correlation_ids()
    pairs = [(str(ids.value(at)), float(metric.value(at))) for at in range(metric.num_instances())]
    return sorted(pairs, key=lambda pair: -pair[1])


def milliseconds(nanoseconds):
    return "{:.3g} ms".format(nanoseconds / 1e6)


def size(count):
    """Bytes as people read them."""
    for name in ("B", "kB", "MB"):
        if count < 1000:
            return "{:.3g} {}".format(count, name)
        count /= 1000.0
    return "{:.3g} GB".format(count)
