"""Rule results as plain dicts, as in newer releases of `ncu_report`."""

from __future__ import annotations

from collections.abc import Iterable

from pylink.report.model import FocusMetric, MessageType, RuleMessage, RuleResult, Severity

_TYPES = {member.value: member.name.lower() for member in MessageType}
_SEVERITIES = {member.value: member.name.lower() for member in Severity}


def rule_dicts(results: Iterable[RuleResult]) -> list[dict[str, object]]:
    """Return a dict for each message of each rule, and one for each rule without messages."""
    dicts: list[dict[str, object]] = []
    for result in results:
        rule: dict[str, object] = {
            "name": result.display_name,
            "rule_identifier": result.identifier,
            "section_identifier": result.section_identifier or "",
        }
        messages = list(result.messages())
        if not messages:
            dicts.append(rule)
        for message, focus in messages:
            dicts.append(
                {
                    **rule,
                    "rule_message": _message(message),
                    "focus_metrics": [_focus(metric) for metric in focus],
                }
            )
    return dicts


def _message(message: RuleMessage) -> dict[str, object]:
    """Return the dict of a message."""
    return {
        "title": message.name or "",
        "message": message.message,
        "type": _TYPES.get(message.type, str(message.type)),
    }


def _focus(focus: FocusMetric) -> dict[str, object]:
    """Return the dict of a focus metric, which is a metric that a message is about."""
    return {
        "name": focus.metric_name or "",
        "value": focus.metric_value,
        "severity": _SEVERITIES.get(focus.severity or 0, str(focus.severity)),
        "info": focus.info or "",
    }
