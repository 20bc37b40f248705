"""What all parts of a report have in common: fields that this version cannot name are kept."""

from __future__ import annotations

from dataclasses import dataclass, field, fields


@dataclass(slots=True, eq=False, repr=False)
class Message:
    """One message of a report file; optional fields that are absent are None.

    Comparison and representation are written here once: made anew for each of the ninety kinds of
    messages, they would take half of the time that importing the model takes.
    """

    # Encoded fields that the file held and this version has no name for; written back as they were.
    unknown: bytes = field(default=b"", kw_only=True, repr=False)

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return all(getattr(self, each.name) == getattr(other, each.name) for each in fields(self))

    __hash__ = None  # type: ignore[assignment] # messages can be changed

    def __repr__(self) -> str:
        values = (f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
        return f"{type(self).__name__}({', '.join(values)})"
