"""Writes all that a module with the interface of `ncu_report` reads from a report, as JSON.

This runs as a script in the Python of the module `ncu_report`, without pytest and pylink. Tests
import it and pass `pylink.report` as the module.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def dump(module: Any, path: str, skipped: list[str], filters: list[list[list[str]]]) -> Any:
    """Return the ranges, actions, metrics, code and NVTX state; `skipped` metrics are only counted.

    `filters` are pairs of include and exclude expressions, whose results are listed.
    """
    context = module.load_report(path)
    return [
        {
            "actions": [_action(action, skipped) for action in span],
            "filters": [list(span.actions_by_nvtx(*pair)) for pair in filters],
        }
        for span in context
    ]


def _action(action: Any, skipped: list[str]) -> Any:
    """Return all that an action has, except for `skipped` metrics."""
    facts = {
        "names": [action.name(base) for base in range(4)],
        "str": str(action),
        "len": len(action),
        "metric names": list(action.metric_names()),
        "metrics": {name: _metric(action[name]) for name in action if name not in skipped},
        "files": dict(action.source_files()),
        "nvtx": _nvtx(action.nvtx_state()),
    }
    if "inst_executed" in action:
        ids = action["inst_executed"].correlation_ids()
        addresses = [ids.value(index) for index in range(ids.num_instances())]
        facts["lines"] = [
            _line(action, address) for address in [0, 1, *addresses, addresses[-1] + 16]
        ]
    return facts


def instructions(module: Any, path: str) -> list[str]:
    """Return the instructions that `inst_executed` counts in the first action."""
    context = module.load_report(path)
    action = context[0][0]
    ids = action["inst_executed"].correlation_ids()
    return [action.sass_by_pc(ids.value(index)) for index in range(ids.num_instances())]


def _line(action: Any, address: int) -> Any:
    """Return the source file and line, SASS and PTX at an address of an action."""
    place = action.source_info(address)
    return [
        address,
        None if place is None else [place.file_name(), place.line()],
        action.ptx_by_pc(address),
    ]


def _metric(metric: Any) -> Any:
    """Return the values of a metric and of its instances."""
    count = metric.num_instances()
    facts = {
        "name": metric.name(),
        "str": str(metric),
        "count": count,
        "ids?": metric.has_correlation_ids(),
        "kinds": [metric.has_value(kind) for kind in range(7)],
        "has": metric.has_value(),
        "values": [_values(metric), *(_values(metric, index) for index in range(count + 1))],
    }
    ids = metric.correlation_ids()
    facts["ids"] = None
    if ids is not None:
        facts["ids"] = [_values(ids), *(_values(ids, index) for index in range(count))]
        facts["of ids"] = [ids.name(), ids.num_instances(), ids.has_correlation_ids()]
    return facts


def _values(metric: Any, *instance: int) -> Any:
    """Return one value of a metric, in all types."""
    return [
        metric.kind(*instance),
        repr(metric.value(*instance)),
        metric.as_uint64(*instance),
        repr(metric.as_double(*instance)),
        metric.as_string(*instance),
    ]


def _nvtx(state: Any) -> Any:
    """Return the NVTX state of an action, by domain."""
    if state is None:
        return None
    return {
        "len": len(state),
        "ids": list(state.domains()),
        "iter": list(state),
        "domains": [_domain(state[key]) for key in state],
    }


def _domain(domain: Any) -> Any:
    """Return the ranges of an NVTX domain."""
    pushed, started = domain.push_pop_ranges(), domain.start_end_ranges()
    return {
        "name": [domain.name(), str(domain)],
        "pushed": list(pushed),
        "started": list(started),
        "ranges": [_range(domain.push_pop_range(index)) for index in range(len(pushed) + 1)],
        "open": [_range(domain.start_end_range(index)) for index in range(len(started) + 1)],
    }


def _range(opened: Any) -> Any:
    """Return the attributes of an NVTX range."""
    if opened is None:
        return None
    return [
        opened.name(),
        opened.has_attributes(),
        opened.category(),
        opened.color(),
        opened.message(),
        opened.payload_type(),
        opened.payload_as_uint64(),
        repr(opened.payload_as_double()),
        opened.payload_as_string(),
    ]


def main() -> None:
    """Run with arguments: the folder of `ncu_report`, a function's name, its arguments as JSON."""
    sys.path.insert(0, sys.argv[1])
    import ncu_report  # type: ignore[import-not-found]  # noqa: PLC0415 -- of that folder

    json.dump(globals()[sys.argv[2]](ncu_report, *json.loads(sys.argv[3])), sys.stdout)


if __name__ == "__main__":
    main()
