"""A whole report: a session and its actions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pylink.report.model.action import Action, Scope
from pylink.report.model.message import Message
from pylink.report.model.session import Process, Session
from pylink.report.model.source import Source

# The first bytes of a report file, and the version of its format.
MAGIC = b"NVR\0"
VERSION = 7


@dataclass(slots=True, eq=False, repr=False)
class Report(Message):
    """The contents of a report file.

    `actions` are in file order, those with `Scope.RANGE` among the others. An action whose process
    is None ran in `process`.
    """

    process: Process = field(default_factory=Process)
    session: Session = field(default_factory=Session)
    actions: list[Action] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    version: int = VERSION
    # Encoded fields of the block headers that this version does not know.
    block_unknown: bytes = field(default=b"", repr=False)

    def launches(self) -> Iterator[Action]:
        """Return the actions that are not ranges."""
        return (action for action in self.actions if action.scope is Scope.LAUNCH)

    def ranges(self) -> Iterator[Action]:
        """Return the actions that are ranges, such as the whole link."""
        return (action for action in self.actions if action.scope is Scope.RANGE)

    def add_source(self, source: Source) -> Source:
        """Add code; return the value of `Action.source` for the actions that ran this code."""
        if source.reference is None:
            references = (
                source.reference for source in self.sources if source.reference is not None
            )
            source.reference = 1 + max(references, default=0)
        self.sources.append(source)
        return Source(source.reference, sass_level=source.sass_level)

    def source_of(self, action: Action) -> Source | None:
        """Return the code of an action: the entry of `sources` that it refers to, or its own.

        None if the report does not contain the code.
        """
        reference = action.source.reference
        if reference is not None:
            for source in self.sources:
                if source.reference == reference:
                    return source
        own_code = action.source
        return own_code if own_code.binary or own_code.intermediate or own_code.code else None
