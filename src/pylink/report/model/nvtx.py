"""The NVTX state of an action: the named ranges that were open when it ran."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pylink.report.model.message import Message

DEFAULT_DOMAIN = "<default domain>"


@dataclass(slots=True, eq=False, repr=False)
class NvtxColor(Message):
    """A color; `color_type` is a value of `ColorType`."""

    color_type: int = 0
    color: int | None = None


@dataclass(slots=True, eq=False, repr=False)
class NvtxPayload(Message):
    """A value that comes with an event; `payload_type` is a value of `NvtxPayloadType`."""

    payload_type: int = 0
    ull_value: int | None = None
    ll_value: int | None = None
    double_value: float | None = None
    u_value: int | None = None
    i_value: int | None = None
    f_value: float | None = None
    str_value: str | None = None


@dataclass(slots=True, eq=False, repr=False)
class NvtxMessage(Message):
    """The text of an event, or the `handle` of a text: an id in `NvtxDomainInfo.strings`.

    `message_type` is a value of `NvtxMessageType`.
    """

    message_type: int = 0
    message: str | None = None
    handle: int | None = None


@dataclass(slots=True, eq=False, repr=False)
class NvtxEventAttributes(Message):
    """The attributes that an event was opened with."""

    version: int = 0
    category: int = 0
    color: NvtxColor = field(default_factory=NvtxColor)
    payload: NvtxPayload = field(default_factory=NvtxPayload)
    message: NvtxMessage = field(default_factory=NvtxMessage)


@dataclass(slots=True, eq=False, repr=False)
class NvtxPushPopRange(Message):
    """A range in a thread's stack of ranges; the thread that opened it ends it."""

    name: str = ""
    attributes: NvtxEventAttributes | None = None
    last_api_call_id: int | None = None


@dataclass(slots=True, eq=False, repr=False)
class NvtxPushPopDomain(Message):
    """A thread's open ranges in the domain whose id is `id`, outermost first."""

    id: int = 0
    stack: list[NvtxPushPopRange] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class NvtxThread(Message):
    """The stacks of one thread; they count for actions whose `thread_id` is `tid`."""

    tid: int = 0
    push_pop_domains: list[NvtxPushPopDomain] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class NvtxStartEndRange(Message):
    """A range that any thread may end."""

    id: int = 0
    name: str = ""
    attributes: NvtxEventAttributes | None = None
    last_api_call_id: int | None = None
    start_tid: int | None = None


@dataclass(slots=True, eq=False, repr=False)
class NvtxStartEndDomain(Message):
    """The open start/end ranges of the domain whose id is `id`."""

    id: int = 0
    ranges: list[NvtxStartEndRange] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class NvtxRegisteredString(Message):
    """A string with an id: the handle of messages with this text, or the number of a category."""

    id: int = 0
    value: str = ""


@dataclass(slots=True, eq=False, repr=False)
class NvtxNameTable(Message):
    """The names of ids of one sort (`family`): 0 for categories."""

    family: int = 0
    mappings: list[NvtxRegisteredString] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class NvtxDomainInfo(Message):
    """A domain with its registered texts; the default domain is named `DEFAULT_DOMAIN`."""

    id: int = 0
    name: str = ""
    strings: list[NvtxRegisteredString] = field(default_factory=list)
    name_tables: list[NvtxNameTable] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class NvtxState(Message):
    """The ranges that were open when an action ran, and the domains that they are in."""

    domains: list[NvtxDomainInfo] = field(default_factory=list)
    threads: list[NvtxThread] = field(default_factory=list)
    start_end_domains: list[NvtxStartEndDomain] = field(default_factory=list)
    default_domain: int | None = None

    def stack(self, thread_id: int, domain: int) -> list[NvtxPushPopRange]:
        """Return a thread's open push/pop ranges in the domain with this id, outermost first."""
        return [
            pushed
            for thread in self.threads
            if thread.tid == thread_id
            for nested_ranges in thread.push_pop_domains
            if nested_ranges.id == domain
            for pushed in nested_ranges.stack
        ]

    def started(self, domain: int) -> list[NvtxStartEndRange]:
        """Return the open start/end ranges in the domain with this id."""
        return [
            started
            for open_domain in self.start_end_domains
            if open_domain.id == domain
            for started in open_domain.ranges
        ]

    def domain(self, name: str) -> NvtxDomainInfo:
        """Return the domain of this name, added if it is new."""
        for existing in self.domains:
            if existing.name == name:
                return existing
        new_id = 1 + max((existing.id for existing in self.domains), default=0)
        domain = NvtxDomainInfo(new_id, name)
        self.domains.append(domain)
        if name == DEFAULT_DOMAIN:
            self.default_domain = domain.id
        return domain

    def push(self, thread_id: int, names: Sequence[str], domain: str = DEFAULT_DOMAIN) -> None:
        """Add open push/pop ranges of a thread, outermost first, in the domain of this name."""
        domain_id = self.domain(domain).id
        thread = next((candidate for candidate in self.threads if candidate.tid == thread_id), None)
        if thread is None:
            thread = NvtxThread(thread_id)
            self.threads.append(thread)
        domains = thread.push_pop_domains
        stack = next((candidate for candidate in domains if candidate.id == domain_id), None)
        if stack is None:
            stack = NvtxPushPopDomain(domain_id)
            domains.append(stack)
        stack.stack.extend(NvtxPushPopRange(name) for name in names)

    def start(self, name: str, domain: str = DEFAULT_DOMAIN) -> None:
        """Add an open start/end range in the domain of this name."""
        domain_id = self.domain(domain).id
        open_domain = next(
            (candidate for candidate in self.start_end_domains if candidate.id == domain_id), None
        )
        if open_domain is None:
            open_domain = NvtxStartEndDomain(domain_id)
            self.start_end_domains.append(open_domain)
        range_id = 1 + sum(len(entry.ranges) for entry in self.start_end_domains)
        open_domain.ranges.append(NvtxStartEndRange(range_id, name))
