"""Applies rules to the actions of a report, stores their messages and catches their errors."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass, field

from pylink.report.api.context import IContext
from pylink.report.model import Action, MessageType, Report, RuleResult
from pylink.report.rules.frontend import NOT_APPLIED, IController, IFrontend, IMessageVault
from pylink.report.rules.nvrules import IEvaluator, RuleHandle
from pylink.report.rules.rulefiles import Rule, describe_error, rule_imports


def apply_rules(report: Report, rules: Iterable[Rule], *, newer: bool = False) -> None:
    """Apply rules to every action and store the results, replacing earlier ones.

    A rule of a section runs for actions with that section. With `newer`, messages may have types
    that release 2022.3 cannot read. A failure of a rule is reported once, in the first action that
    causes it. Metrics and rules that a rule requires and that are missing are reported only if it
    succeeded for no action, since actions (phases of a link) have different metrics. Messages on
    failures and on what is missing have the title `NOT_APPLIED`, unlike errors that rules report.
    """
    ordered = _parents_first(list(rules))
    with rule_imports(dict.fromkeys(rule.file.parent for rule in ordered)):
        outcomes = _Outcomes(newer=newer)
        for action in report.actions:
            _apply_to(report, action, ordered, outcomes)
    for identifier, (frontend, failure) in outcomes.missing_metrics.items():
        if identifier not in outcomes.applied:
            _report_failure(frontend, failure)


@dataclass(slots=True)
class _Outcomes:
    """The outcomes of rules so far.

    `newer` is the parameter of `apply_rules`. `applied` has the identifiers of rules that
    succeeded, and `failed` pairs of an identifier and the text of a failure. `missing_metrics` has,
    by identifier, the object that can add a message to the first action for which the rule lacks
    a metric or another rule, and the text on what it lacks.
    """

    newer: bool
    applied: set[str] = field(default_factory=set)
    failed: set[tuple[str, str]] = field(default_factory=set)
    missing_metrics: dict[str, tuple[IFrontend, str]] = field(default_factory=dict)


def _report_failure(frontend: IFrontend, failure: str) -> None:
    """Add the message that a rule was not applied; `failure` is its text."""
    frontend.message(MessageType.ERROR, failure, NOT_APPLIED)


def _parents_first(rules: list[Rule]) -> list[Rule]:
    """Return the rules in an order in which parents come first, except in a cycle of parents."""
    by_identifier = {rule.identifier: rule for rule in rules}
    ordered: dict[str, Rule] = {}
    entered: set[str] = set()

    def visit(rule: Rule) -> None:
        """Add a rule to `ordered`, after its parents."""
        if rule.identifier in entered:
            return
        entered.add(rule.identifier)
        for parent in rule.parents:
            if parent in by_identifier:
                visit(by_identifier[parent])
        ordered[rule.identifier] = rule

    for rule in rules:
        visit(rule)
    return list(ordered.values())


def _apply_to(report: Report, action: Action, rules: list[Rule], outcomes: _Outcomes) -> None:
    """Apply rules, parents first, to one action; store the results in it and in `outcomes`."""
    section_identifiers = {section.identifier for section in action.sections}
    single_action_report = dataclasses.replace(report, actions=[action])
    vault = IMessageVault()
    # {identifier: numbers}, which rules sent to the rules that name them as parents.
    sent_values: dict[str, dict[str, float]] = {}
    identifiers = {rule.identifier for rule in rules}
    action.rule_results = []
    for rule in rules:
        if rule.section is not None and rule.section not in section_identifiers:
            continue
        result = RuleResult(rule.identifier, rule.name, section_identifier=rule.section)
        parents = {name: sent_values[name] for name in rule.parents if name in sent_values}
        frontend = IFrontend(result, rule.file.parent, newer=outcomes.newer, parents=parents)
        context = IContext(single_action_report, frontend, IController(result, vault))
        handle = RuleHandle(context, IEvaluator())
        try:
            problem = _missing_requirements(rule, handle, action, identifiers)
            if problem:
                outcomes.missing_metrics.setdefault(rule.identifier, (frontend, problem))
            else:
                rule.module.apply(handle)
                outcomes.applied.add(rule.identifier)
        except (Exception, SystemExit) as error:
            failure = f"{rule.file.name} failed: {describe_error(error, rule.file)}"
            if (rule.identifier, failure) not in outcomes.failed:
                outcomes.failed.add((rule.identifier, failure))
                _report_failure(frontend, failure)
        sent_values[rule.identifier] = frontend.for_children
        action.rule_results.append(result)


def _missing_requirements(
    rule: Rule, handle: RuleHandle, action: Action, identifiers: set[str]
) -> str:
    """Return a text on metrics and rules that a rule requires and that are missing; "" if none.

    `identifiers` are those of all rules that are applied.
    """
    if not hasattr(rule.module, "evaluate"):
        return ""
    rule.module.evaluate(handle)
    missing_metrics = [name for name in handle.evaluator.metrics if name not in action.metrics]
    missing_rules = [name for name in handle.evaluator.rules if name not in identifiers]
    problems = []
    if missing_metrics:
        problems.append(f"needs the metrics {', '.join(missing_metrics)}, which were not collected")
    if missing_rules:
        problems.append(f"needs the rules {', '.join(missing_rules)}, which were not found")
    return f"This rule {' and '.join(problems)}." if problems else ""
