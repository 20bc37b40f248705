"""Converts actions from and to the messages ProfileResult and RangeResult."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pylink.report.errors import ReportError
from pylink.report.file.conversion import attributes, to_message, to_model, unknown_fields
from pylink.report.file.values import NameNumbers, read_metric, write_metrics
from pylink.report.model import Action, Scope, Section
from pylink.report.proto import messages as pb

# Attributes of `Action` that are not fields of a message, or are converted separately.
_NOT_CONVERTED = frozenset({"metrics", "sections", "scope", "process"})
# Attributes without a field in RangeResult, the message of an action with Scope.RANGE.
_NOT_IN_RANGE = frozenset(
    ("function_name", "demangled_name", "mangled_name", "source", "program_handle", "kernel_id",
     "work_dimensions", "global_work_offset", "grid_size", "block_size", "stream_id", "stream_name",
     "series_info")
)  # fmt: skip
# Attributes without a field in ProfileResult, the message of other actions.
_NOT_IN_LAUNCH = frozenset({"references"})


class ActionReader:
    """Reads the actions of one file; `names` has the names of metrics, by their numbers.

    In the file, each action contains the full definition of its sections. Equal definitions become
    one `Section` object, which the actions share.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._sections: dict[bytes, Section] = {}

    def read(self, message: Any, encoded: bytes) -> Action:
        """Return the action of a decoded message; `encoded` is its encoding.

        Raises IndexError for a metric whose name is not in the file.
        """
        # Only messages of newer tools have unknown fields, so others are not searched for them.
        size = message.ByteSize()
        message.DiscardUnknownFields()
        keeps_unknown = message.ByteSize() != size
        if keeps_unknown:
            message = type(message)()
            message.ParseFromString(encoded)
        action = Action(
            **attributes(message, Action, keeps_unknown=keeps_unknown, without=_NOT_CONVERTED)
        )
        if isinstance(message, pb.RangeResult):
            action.scope = Scope.RANGE
        names = self._names
        metrics = action.metrics
        for row in message.MetricResults:
            name = names[row.NameId]
            metric = metrics[name] = read_metric(row, name)
            if keeps_unknown:
                metric.unknown = unknown_fields(row)
        for section in message.Sections:
            action.sections.append(self._section(section, keeps_unknown=keeps_unknown))
        if keeps_unknown:
            action.unknown = unknown_fields(message)
        return action

    def _section(self, message: Any, *, keeps_unknown: bool) -> Section:
        """Return the section of a message, which is one object for equal messages."""
        key = message.SerializePartialToString()
        section = self._sections.get(key)
        if section is None:
            section = self._sections[key] = to_model(message, Section, keeps_unknown=keeps_unknown)
        return section


class ActionWriter:
    """Writes the actions of one file; `names` numbers the names of their metrics."""

    def __init__(self) -> None:
        self.names = NameNumbers()
        # Encoded sections by the section's id() and the kind of the action's message. The section
        # is kept, too, so that no other object gets its id().
        self._sections: dict[tuple[int, Any], tuple[Section, bytes]] = {}

    def write(self, action: Action) -> bytes:
        """Return the encoded ProfileResult or RangeResult of an action."""
        if action.scope is Scope.RANGE:
            message_type, omitted = pb.RangeResult, _NOT_CONVERTED | _NOT_IN_RANGE
        else:
            message_type, omitted = pb.ProfileResult, _NOT_CONVERTED | _NOT_IN_LAUNCH
        message = message_type()
        try:
            to_message(action, message, omitted)
            write_metrics(action.metrics, message.MetricResults, self.names)
            # Encoded parts of a message can be concatenated, so each section is encoded only once,
            # not once for each action.
            parts = [message.SerializePartialToString()]
            parts += [self._section(section, message_type) for section in action.sections]
        except ReportError as error:
            raise ReportError(f"action {action.function_name!r}: {error}") from error
        return b"".join(parts)

    def _section(self, section: Section, kind: Any) -> bytes:
        """Return the encoding of a message of an action that has nothing but this section.

        `kind` is the class of the message, ProfileResult or RangeResult.
        """
        cached = self._sections.get((id(section), kind))
        if cached is None:
            message = kind()
            to_message(section, message.Sections.add())
            cached = self._sections[id(section), kind] = (
                section,
                message.SerializePartialToString(),
            )
        return cached[1]
