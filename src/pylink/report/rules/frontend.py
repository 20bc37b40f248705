"""The objects that rules use: IFrontend for messages and charts, IController for other rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from typing import ClassVar

from pylink.report.model import (
    FocusMetric,
    MessageType,
    Proposal,
    RuleItem,
    RuleMessage,
    RuleResult,
    Scalar,
    Severity,
)
from pylink.report.sections.text import parse_chart
from pylink.terminal.tables import align_columns

# The focus metric that stores the estimated speedup of a message.
SPEEDUP_METRIC = "link__estimated_speedup.pct"
# The title of a message about a rule that failed, or for which metrics or rules are missing.
NOT_APPLIED = "Rule not applied"


class SpeedupType(IntEnum):
    """The time that a speedup is a percentage of: GLOBAL is the whole run, LOCAL only a part."""

    UNKNOWN = 0
    LOCAL = 1
    GLOBAL = 2


class MarkerKind(IntEnum):
    """The target of a source marker: an instruction (SASS), a line of a file, or nothing."""

    SASS = 0
    SOURCE = 1
    NONE = 2


class IFrontend:
    """Stores messages, tables and charts of a rule in `result`.

    Reports of release 2022.3 cannot store a speedup or a source marker. So an estimated speedup is
    added to its message and as a focus metric, and a marker is a message that begins with its
    location. `directory` is that of the rule's file. `parents` has the numbers that parents of the
    rule sent, by their identifiers, and `for_children` the numbers that this rule sends.
    """

    MsgType: ClassVar[type[MessageType]] = MessageType
    Severity: ClassVar[type[Severity]] = Severity
    SpeedupType: ClassVar[type[SpeedupType]] = SpeedupType
    MarkerKind: ClassVar[type[MarkerKind]] = MarkerKind

    MsgType_MSG_NONE: ClassVar[int] = MessageType.NONE
    MsgType_MSG_OK: ClassVar[int] = MessageType.OK
    MsgType_MSG_WARNING: ClassVar[int] = MessageType.WARNING
    MsgType_MSG_ERROR: ClassVar[int] = MessageType.ERROR
    MsgType_MSG_OPTIMIZATION: ClassVar[int] = MessageType.OPTIMIZATION
    Severity_SEVERITY_DEFAULT: ClassVar[int] = Severity.DEFAULT
    Severity_SEVERITY_LOW: ClassVar[int] = Severity.LOW
    Severity_SEVERITY_HIGH: ClassVar[int] = Severity.HIGH
    SpeedupType_UNKNOWN: ClassVar[int] = SpeedupType.UNKNOWN
    SpeedupType_LOCAL: ClassVar[int] = SpeedupType.LOCAL
    SpeedupType_GLOBAL: ClassVar[int] = SpeedupType.GLOBAL
    MarkerKind_SASS: ClassVar[int] = MarkerKind.SASS
    MarkerKind_SOURCE: ClassVar[int] = MarkerKind.SOURCE
    MarkerKind_NONE: ClassVar[int] = MarkerKind.NONE

    def __init__(
        self,
        result: RuleResult,
        directory: Path,
        *,
        newer: bool = False,
        parents: Mapping[str, Mapping[str, float]] | None = None,
    ) -> None:
        self.result = result
        self.for_children: dict[str, float] = {}
        self._directory = directory
        self._newer = newer  # whether messages may have newer types
        self._parents = parents or {}

    def message(self, *arguments: int | str, name: str = "") -> int:
        """Add a message and return its number, from 1: `message([type,] text [, name])`.

        `name` is its title. TypeError for other arguments. OPTIMIZATION is stored as WARNING unless
        `newer` was set: release 2022.3 cannot open a report with messages of this type.
        """
        texts = list(arguments)
        kind = texts.pop(0) if texts and isinstance(texts[0], int) else MessageType.NONE
        if not 1 <= len(texts) <= 2 or not all(isinstance(text, str) for text in texts):
            raise TypeError("message takes an optional type, a text and a name")
        if kind == MessageType.OPTIMIZATION and not self._newer:
            kind = MessageType.WARNING
        title = str(texts[1]) if len(texts) == 2 else name
        message = RuleMessage(str(texts[0]), int(kind), name=title or None)
        self.result.add(RuleItem(message))
        assert message.id is not None
        return message.id

    def focus_metric(
        self,
        message_id: int,
        metric_name: str,
        value: float,
        severity: int = Severity.DEFAULT,
        info: str = "",
    ) -> bool:
        """Add a metric that a message is about; False for an unknown message number.

        `info` is a text that is shown in brackets after the value.
        """
        item = self._item(message_id)
        if item is None:
            return False
        item.focus_metrics.append(
            FocusMetric(message_id, metric_name, float(value), int(severity), info or None)
        )
        return True

    def speedup(self, message_id: int, type: int, percent: float) -> bool:
        """Add the speedup that a message's advice should give; False for an unknown number.

        It is `percent` of the time that `type` stands for, a value of `SpeedupType`; UNKNOWN counts
        as LOCAL.
        """
        item = self._item(message_id)
        if item is None or item.message is None:
            return False
        base_text = "of the link's time" if type == SpeedupType.GLOBAL else "of this part alone"
        item.message.message += f" Estimated speedup: {percent:.3g}% {base_text}."
        return self.focus_metric(message_id, SPEEDUP_METRIC, percent, Severity.HIGH, base_text)

    def source_marker(
        self,
        text: str,
        address_or_line: int,
        kind: int,
        file_name: str = "",
        type: int = MessageType.NONE,
    ) -> None:
        """Add a message about an instruction or a line of a file.

        It is a line if `kind` is `MarkerKind.SOURCE`. All other kinds show `address_or_line` as an
        address.
        """
        is_line = kind == MarkerKind.SOURCE
        location = f"{file_name}:{address_or_line}" if is_line else f"{address_or_line:#x}"
        self.message(int(type), f"{location}: {text}")

    def load_chart_from_file(self, filename: str) -> None:
        """Add the table or chart of a file in the rule's directory.

        SectionError, with file and line, if it is invalid.
        """
        path = self._directory / filename
        self.result.add(parse_chart(path.read_bytes(), str(path)))

    def generate_table(
        self,
        message_id: int,
        header: Sequence[str],
        rows: Sequence[Sequence[Scalar]],
        config: Mapping[str, object] | None = None,
    ) -> bool:
        """Add a table to the text of a message; False for an unknown message number.

        `config["title"]`, if set, is the line above it. ValueError unless every row has one cell
        for each heading, TypeError unless the cells of a column are all text or all numbers.
        """
        item = self._item(message_id)
        for row in rows:
            if len(row) != len(header):
                raise ValueError(f"a row of {len(row)} cells under {len(header)} headings")
        for column in zip(*rows, strict=True):
            if len({isinstance(cell, str) for cell in column}) > 1:
                raise TypeError(f"a column of text and numbers: {column}")
        if item is None or item.message is None:
            return False
        lines = align_columns([list(map(str, row)) for row in (header, *rows)])
        title = (config or {}).get("title")
        item.message.message += "".join(f"\n{line}" for line in ([title] if title else []) + lines)
        return True

    def send_dict_to_children(self, values: Mapping[str, float]) -> None:
        """Pass numbers to the rules that name this one as a parent."""
        self.for_children.update({str(key): float(value) for key, value in values.items()})

    def receive_dict_from_parent(self, rule_id: str) -> dict[str, float]:
        """Return the numbers that a parent rule sent; empty if none, or if it is not a parent."""
        return dict(self._parents.get(rule_id, {}))

    def _item(self, message_id: int) -> RuleItem | None:
        """Return the item with the message of this number; None if there is none."""
        return next(
            (
                item
                for item in self.result.items()
                if item.message and item.message.id == message_id
            ),
            None,
        )


class IMessageVault:
    """Stores text that rules exchange; methods have the names of Nsight Compute's interface."""

    def __init__(self) -> None:
        self._values: dict[str, dict[str, str]] = {}

    def Put(self, rule_id: str, values: Mapping[str, str]) -> None:
        """Store values under the identifier of a rule."""
        self._values[rule_id] = dict(values)

    def Get(self, rule_id: str) -> dict[str, str]:
        """Return the values under an identifier; empty if not stored."""
        return dict(self._values.get(rule_id, {}))


class IController:
    """Lets a rule propose others."""

    def __init__(self, result: RuleResult, vault: IMessageVault) -> None:
        self._result = result
        self._vault = vault

    def propose_rule(self, rule: str) -> None:
        """Propose to apply another rule."""
        self._result.add(RuleItem(proposal=Proposal(rule)))

    def get_message_vault(self) -> IMessageVault:
        """Return the vault in which the rules that run for one action exchange text."""
        return self._vault
