"""INvtxState, INvtxDomainInfo and INvtxRange: the named ranges that were open."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pylink.report.model import (
    NvtxDomainInfo,
    NvtxEventAttributes,
    NvtxPayload,
    NvtxPayloadType,
    NvtxPushPopRange,
    NvtxStartEndRange,
    NvtxState,
)


class INvtxRange:
    """A push/pop or start/end range."""

    PayloadType_PAYLOAD_UNKNOWN: ClassVar[int] = NvtxPayloadType.UNKNOWN
    PayloadType_PAYLOAD_UINT64: ClassVar[int] = NvtxPayloadType.UINT64
    PayloadType_PAYLOAD_INT64: ClassVar[int] = NvtxPayloadType.INT64
    PayloadType_PAYLOAD_DOUBLE: ClassVar[int] = NvtxPayloadType.DOUBLE
    PayloadType_PAYLOAD_UINT32: ClassVar[int] = NvtxPayloadType.UINT32
    PayloadType_PAYLOAD_INT32: ClassVar[int] = NvtxPayloadType.INT32
    PayloadType_PAYLOAD_FLOAT: ClassVar[int] = NvtxPayloadType.FLOAT
    PayloadType_PAYLOAD_JSON: ClassVar[int] = NvtxPayloadType.JSON

    def __init__(self, nvtx_range: NvtxPushPopRange | NvtxStartEndRange, domain: NvtxDomainInfo):
        self._range = nvtx_range
        self._domain = domain

    def name(self) -> str:
        """Return the name of the range."""
        return self._range.name

    def has_attributes(self) -> bool:
        """Return whether the range has event attributes."""
        return self._range.attributes is not None

    def category(self) -> int:
        """Return the category; 0 without attributes."""
        return self._attributes.category

    def color(self) -> int:
        """Return the color; 0 without attributes."""
        return self._attributes.color.color or 0

    def message(self) -> str:
        """Return the message, also if it is a registered string of the domain; "" without one."""
        message = self._attributes.message
        if message.message is None and message.handle is not None:
            for string in self._domain.strings:
                if string.id == message.handle:
                    return string.value
        return message.message or ""

    def payload_type(self) -> int:
        """Return one of PayloadType_*."""
        return self._payload.payload_type

    def payload_as_uint64(self) -> int:
        """Return the payload as an int; 0 if it is not a number."""
        value = _number(self._payload)
        return 0 if value is None else int(value)

    def payload_as_double(self) -> float:
        """Return the payload as a float; 0.0 if it is not a number."""
        value = _number(self._payload)
        return 0.0 if value is None else float(value)

    def payload_as_string(self) -> str:
        """Return the payload if it is a text; "" otherwise."""
        return self._payload.str_value or ""

    @property
    def _attributes(self) -> NvtxEventAttributes:
        return self._range.attributes or NvtxEventAttributes()

    @property
    def _payload(self) -> NvtxPayload:
        return self._attributes.payload


def _number(payload: NvtxPayload) -> int | float | None:
    """Return the number in a payload, from the field for its type; None if it is not a number."""
    values = {
        NvtxPayloadType.UINT64: payload.ull_value,
        NvtxPayloadType.INT64: payload.ll_value,
        NvtxPayloadType.DOUBLE: payload.double_value,
        NvtxPayloadType.UINT32: payload.u_value,
        NvtxPayloadType.INT32: payload.i_value,
        NvtxPayloadType.FLOAT: payload.f_value,
    }
    return next((value for kind, value in values.items() if kind == payload.payload_type), None)


class INvtxDomainInfo:
    """The ranges that were open in one domain when an action ran.

    Push/pop ranges form a stack for each thread; here they are those of the action's thread.
    """

    def __init__(self, state: NvtxState, domain: NvtxDomainInfo, thread_id: int) -> None:
        self._domain = domain
        self._pushed = [INvtxRange(entry, domain) for entry in state.stack(thread_id, domain.id)]
        self._started = [INvtxRange(entry, domain) for entry in state.started(domain.id)]

    def __str__(self) -> str:
        """Return the name of the domain."""
        return self._domain.name

    def name(self) -> str:
        """Return the name of the domain."""
        return self._domain.name

    def push_pop_ranges(self) -> tuple[str, ...]:
        """Return the names of the push/pop ranges, outermost first."""
        return tuple(pushed.name() for pushed in self._pushed)

    def start_end_ranges(self) -> tuple[str, ...]:
        """Return the names of the open start/end ranges."""
        return tuple(started.name() for started in self._started)

    def push_pop_range(self, idx: int) -> INvtxRange | None:
        """Return the push/pop range of this index, outermost first; None if out of range."""
        return self._pushed[idx] if 0 <= idx < len(self._pushed) else None

    def start_end_range(self, idx: int) -> INvtxRange | None:
        """Return the start/end range of this index; None if out of range."""
        return self._started[idx] if 0 <= idx < len(self._started) else None


class INvtxState:
    """The NVTX state of an action."""

    def __init__(self, state: NvtxState, thread_id: int) -> None:
        self._state = state
        self._thread_id = thread_id

    def __len__(self) -> int:
        """Return the number of domains."""
        return len(self.domains())

    def __iter__(self) -> Iterator[int]:
        """Return the ids of the domains."""
        return iter(self.domains())

    def __getitem__(self, key: int) -> INvtxDomainInfo:
        """Return the domain of this id. Raises KeyError if it does not exist."""
        if not isinstance(key, int):
            raise TypeError(f"INvtxState IDs must be integers, not {type(key).__name__}")
        domain = self.domain_by_id(key)
        if domain is None:
            raise KeyError("INvtxState invalid ID")
        return domain

    def domains(self) -> tuple[int, ...]:
        """Return the ids of the domains."""
        return tuple(domain.id for domain in self._state.domains)

    def domain_by_id(self, id: int) -> INvtxDomainInfo | None:
        """Return the domain of this id; None if it does not exist."""
        for domain in self._state.domains:
            if domain.id == id:
                return INvtxDomainInfo(self._state, domain, self._thread_id)
        return None
