"""What the rules of links share. Rules also load in Nsight Compute, whose Python is 3.5."""

import NvRules


def action_of(handle):
    """The action that a rule looks at."""
    return NvRules.get_context(handle).range_by_idx(0).action_by_idx(0)


def phase_of(handle):
    """The phase that a rule looks at; None for the whole link and for single comparisons.

    These repeat what the phases say.
    """
    action = action_of(handle)
    return None if action.name() in ("range", "dedup") else action


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


def link_time(action):
    """Nanoseconds of the whole link, from the time and the share of one phase; None if unknown."""
    time = number(action, "link__time_duration.sum")
    share = number(action, "link__time_share.pct")
    return 100.0 * time / share if time and share else None


def milliseconds(nanoseconds):
    return "{:.3g} ms".format(nanoseconds / 1e6)


def size(count):
    """Bytes as people read them."""
    for name in ("B", "kB", "MB"):
        if count < 1000:
            return "{:.3g} {}".format(count, name)
        count /= 1000.0
    return "{:.3g} GB".format(count)
