"""The module that rules import as `NvRules`.

Rules for Nsight Compute 2022.3 run with it unchanged. It also has what newer releases added.
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
    "IAction", "IBaseContext", "IContext", "IController", "IEvaluator", "IFrontend",
    "IMessageVault", "IMetric", "IMutableMetric", "INvtxDomainInfo", "INvtxRange", "INvtxState",
    "IRange", "ISourceInfo", "MarkerKind", "MsgType", "RuleException", "RuleHandle", "SpeedupType",
    "get_context", "get_evaluator", "get_version", "metric_instances", "raise_exception",
    "require_metrics", "require_rules",
]  # fmt: skip

# Names of Nsight Compute's interface, which pylink itself does not use.
RuleKind_DEFAULT = 0
RuleKind_GUIDED = 1


class RuleException(Exception):
    """The exception by which `raise_exception` ends a rule."""


class IEvaluator(IBaseContext):
    """Collects the requirements of a rule: `metrics` and `rules`, in order of mention."""

    def __init__(self) -> None:
        self.metrics: list[str] = []
        self.rules: list[str] = []

    def require_metric(self, metric: str) -> None:
        """Require a metric of this name."""
        self.metrics.append(metric)

    def require_rule(self, rule: str) -> None:
        """Require that another rule exists."""
        self.rules.append(rule)


@dataclass(frozen=True)
class RuleHandle:
    """The argument of a rule's functions `evaluate` and `apply`."""

    context: IContext
    evaluator: IEvaluator


def get_context(handle: RuleHandle) -> IContext:
    """Return the report that the rule reads: one range with one action."""
    return handle.context


def get_evaluator(handle: RuleHandle) -> IEvaluator:
    """Return the object that collects the rule's requirements."""
    return handle.evaluator


def get_version(handle: RuleHandle) -> str:
    """Return the release of Nsight Compute whose interface this is."""
    return handle.context.get_version()


def raise_exception(handle: RuleHandle, msg: str) -> NoReturn:
    """End the rule with an error message."""
    del handle
    raise RuleException(msg)


def require_metrics(handle: RuleHandle, metrics: Iterable[str]) -> None:
    """Require metrics of these names."""
    for metric in metrics:
        handle.evaluator.require_metric(metric)


def require_rules(handle: RuleHandle, rules: Iterable[str]) -> None:
    """Require these other rules."""
    for rule in rules:
        handle.evaluator.require_rule(rule)


def metric_instances(metric: IMetric) -> list[Scalar | None]:
    """Return the values of all instances."""
    return [metric.value(number) for number in range(metric.num_instances())]
