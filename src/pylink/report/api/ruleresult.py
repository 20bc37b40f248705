"""Rule results as plain dicts, in the shape that newer releases of `ncu_report` give them."""

from __future__ import annotations

from collections.abc import Iterable

from pylink.report.model import FocusMetric, MessageType, RuleMessage, RuleResult, Severity

_TYPES = {each.value: each.name.lower() for each in MessageType}
_SEVERITIES = {each.value: each.name.lower() for each in Severity}


def rule_dicts(results: Iterable[RuleResult]) -> list[dict[str, object]]:
    """A dict for each message of each rule, and one for each rule that said nothing."""
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
                    "focus_metrics": [_focus(each) for each in focus],
                }
            )
    return dicts


def _message(message: RuleMessage) -> dict[str, object]:
    return {
        "title": message.name or "",
        "message": message.message,
        "type": _TYPES.get(message.type, str(message.type)),
    }


def _focus(focus: FocusMetric) -> dict[str, object]:
    return {
        "name": focus.metric_name or "",
        "value": focus.metric_value,
        "severity": _SEVERITIES.get(focus.severity or 0, str(focus.severity)),
        "info": focus.info or "",
    }
