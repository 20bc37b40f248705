"""What all parts of a report have in common: fields that this version cannot name are kept."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Message:
    """One message of a report file; optional fields that are absent are None."""

    # Encoded fields that the file held and this version has no name for; written back as they were.
    unknown: bytes = field(default=b"", kw_only=True, repr=False)
