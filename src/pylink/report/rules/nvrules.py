"""The module that rules import as `NvRules`.

Rules that Nsight Compute 2022.3 runs, run here unchanged; what newer releases added is here too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NoReturn

from pylink.report.api.action import IAction, ISourceInfo
from pylink.report.api.context import IBaseContext, IContext, IRange
from pylink.report.api.metric import IMetric, IMutableMetric
from pylink.report.api.nvtx import INvtxDomainInfo, INvtxRange, INvtxState
from pylink.report.model import MessageType as MsgType
from pylink.report.model import Scalar
from pylink.report.rules.frontend import (
    IController,
    IFrontend,
    IMessageVault,
    MarkerKind,
    SpeedupType,
)

__all__ = [
    "IAction",
    "IBaseContext",
    "IContext",
    "IController",
    "IEvaluator",
    "IFrontend",
    "IMessageVault",
    "IMetric",
    "IMutableMetric",
    "INvtxDomainInfo",
    "INvtxRange",
    "INvtxState",
    "IRange",
    "ISourceInfo",
    "MarkerKind",
    "MsgType",
    "RuleException",
    "RuleHandle",
    "SpeedupType",
    "get_context",
    "get_evaluator",
    "get_version",
    "metric_instances",
    "raise_exception",
    "require_metrics",
    "require_rules",
]

RuleKind_DEFAULT = 0
RuleKind_GUIDED = 1


class RuleException(Exception):
    """A rule that ended itself."""


class IEvaluator(IBaseContext):
    """Takes what a rule needs: `metrics` and `rules`, in the order of their mention."""

    def __init__(self) -> None:
        self.metrics: list[str] = []
        self.rules: list[str] = []

    def require_metric(self, metric: str) -> None:
        """The rule needs a metric of this name."""
        self.metrics.append(metric)

    def require_rule(self, rule: str) -> None:
        """The rule needs another one to be there."""
        self.rules.append(rule)


@dataclass(frozen=True)
class RuleHandle:
    """What `evaluate` and `apply` are called with."""

    context: IContext
    evaluator: IEvaluator


def get_context(handle: RuleHandle) -> IContext:
    """The report the rule reads: one range with one action."""
    return handle.context


def get_evaluator(handle: RuleHandle) -> IEvaluator:
    """What takes the rule's requirements."""
    return handle.evaluator


def get_version(handle: RuleHandle) -> str:
    """The release whose interface this is."""
    return handle.context.get_version()


def raise_exception(handle: RuleHandle, msg: str) -> NoReturn:
    """End the rule with an error message."""
    del handle
    raise RuleException(msg)


def require_metrics(handle: RuleHandle, metrics: Iterable[str]) -> None:
    """The rule needs metrics of these names."""
    for metric in metrics:
        handle.evaluator.require_metric(metric)


def require_rules(handle: RuleHandle, rules: Iterable[str]) -> None:
    """The rule needs these other rules."""
    for rule in rules:
        handle.evaluator.require_rule(rule)


def metric_instances(metric: IMetric) -> list[Scalar | None]:
    """The values of all instances."""
    return [metric.value(at) for at in range(metric.num_instances())]
