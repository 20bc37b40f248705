"""The base class of all parts of a report, which keeps unknown fields."""

from __future__ import annotations

from dataclasses import dataclass, field, fields


@dataclass(slots=True, eq=False, repr=False)
class Message:
    """One message of a report file; None stands for an absent optional field.

    Comparison and representation are written here once: generated for each of almost 90 kinds of
    messages, they would take half of the time that importing the model takes.
    """

    # Encoded fields of the file that this version does not know; they are written back unchanged.
    unknown: bytes = field(default=b"", kw_only=True, repr=False)

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return all(getattr(self, item.name) == getattr(other, item.name) for item in fields(self))

    __hash__ = None  # type: ignore[assignment] # messages can be changed

    def __repr__(self) -> str:
        values = (f"{item.name}={getattr(self, item.name)!r}" for item in fields(self) if item.repr)
        return f"{type(self).__name__}({', '.join(values)})"
