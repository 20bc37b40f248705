"""Applying rules to the actions of a report: what they say is stored, and nothing they do harms."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from pylink.report.api.context import IContext
from pylink.report.model import Action, MessageType, Report, RuleResult
from pylink.report.rules.frontend import IController, IFrontend, IMessageVault
from pylink.report.rules.load import Rule, describe, rule_imports
from pylink.report.rules.nvrules import IEvaluator, RuleHandle


def apply_rules(report: Report, rules: Iterable[Rule], *, newer: bool = False) -> None:
    """Apply rules to every action and store the results, in place of earlier ones.

    A rule of a section runs where the action has that section. With `newer`, messages may have
    types that release 2022.3 cannot read. What keeps a rule from working is said once, in the first
    action where it does.
    """
    ordered = _parents_first(list(rules))
    with rule_imports(dict.fromkeys(rule.file.parent for rule in ordered)):
        failed: set[tuple[str, str]] = set()
        for action in report.actions:
            _apply_to(report, action, ordered, failed, newer=newer)


def _parents_first(rules: list[Rule]) -> list[Rule]:
    """The rules in order, each behind its parents; a cycle of parents is broken somewhere."""
    by_identifier = {rule.identifier: rule for rule in rules}
    done: dict[str, Rule] = {}
    entered: set[str] = set()

    def visit(rule: Rule) -> None:
        if rule.identifier in entered:
            return
        entered.add(rule.identifier)
        for parent in rule.parents:
            if parent in by_identifier:
                visit(by_identifier[parent])
        done[rule.identifier] = rule

    for rule in rules:
        visit(rule)
    return list(done.values())


def _apply_to(
    report: Report,
    action: Action,
    rules: list[Rule],
    failed: set[tuple[str, str]],
    *,
    newer: bool,
) -> None:
    shown = {section.identifier for section in action.sections}
    alone = dataclasses.replace(report, actions=[action])
    vault = IMessageVault()
    sent: dict[str, dict[str, float]] = {}
    known = {rule.identifier for rule in rules}
    action.rule_results = []
    for rule in rules:
        if rule.section is not None and rule.section not in shown:
            continue
        result = RuleResult(rule.identifier, rule.name, section_identifier=rule.section)
        parents = {name: sent[name] for name in rule.parents if name in sent}
        frontend = IFrontend(result, rule.file.parent, newer=newer, parents=parents)
        context = IContext(alone, frontend, IController(result, vault))
        handle = RuleHandle(context, IEvaluator())
        try:
            trouble = _missing(rule, handle, action, known)
            if not trouble:
                rule.module.apply(handle)
        except (Exception, SystemExit) as error:
            trouble = f"{rule.file.name} failed: {describe(error, rule.file)}"
        if trouble and (rule.identifier, trouble) not in failed:
            failed.add((rule.identifier, trouble))
            frontend.message(MessageType.ERROR, trouble)
        sent[rule.identifier] = frontend.for_children
        action.rule_results.append(result)


def _missing(rule: Rule, handle: RuleHandle, action: Action, known: set[str]) -> str:
    """What the rule needs and cannot have, in words; "" when it has all."""
    if not hasattr(rule.module, "evaluate"):
        return ""
    rule.module.evaluate(handle)
    metrics = [name for name in handle.evaluator.metrics if name not in action.metrics]
    rules = [name for name in handle.evaluator.rules if name not in known]
    problems = []
    if metrics:
        problems.append(f"needs the metrics {', '.join(metrics)}, which were not collected")
    if rules:
        problems.append(f"needs the rules {', '.join(rules)}, which are not there")
    return f"This rule {' and '.join(problems)}." if problems else ""
