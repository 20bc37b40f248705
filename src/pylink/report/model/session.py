"""The session that produced a report: process, machine, program, settings."""

from __future__ import annotations

from dataclasses import dataclass, field

from pylink.report.model.message import Message
from pylink.report.model.metric import Scalar, ValueKind, kind_of


@dataclass(slots=True, eq=False, repr=False)
class Process(Message):
    """The process that an action, such as a kernel launch or a link, ran in."""

    process_id: int = 0
    hostname: str | None = None
    process_name: str | None = None


@dataclass(slots=True, eq=False, repr=False)
class IPAddress(Message):
    """One address of a machine; `type` 1 is IPv4, 2 IPv6."""

    address: str = ""
    type: int | None = None


@dataclass(slots=True, eq=False, repr=False)
class SystemInfo(Message):
    """A machine; `platform` is a value of `Platform`."""

    os_name: str | None = None
    build: str | None = None
    processor: str | None = None
    architecture: str | None = None
    computer_name: str | None = None
    platform: int | None = None
    ip_addresses: list[IPAddress] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class VersionInfo(Message):
    """The version of one program that took part, such as pylink or Python, named `provider`."""

    provider: str = ""
    version: str = ""


@dataclass(slots=True, eq=False, repr=False)
class DeviceProperty(Message):
    """A property of the target device."""

    key: str = ""
    value: str = ""


@dataclass(slots=True, eq=False, repr=False)
class DeviceProperties(Message):
    """The properties of the target device."""

    properties: list[DeviceProperty] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class DeviceAttribute(Message):
    """A named value of a device."""

    name: str = ""
    value: Scalar | None = None
    kind: ValueKind = ValueKind.UNKNOWN

    def __post_init__(self) -> None:
        if self.kind is ValueKind.UNKNOWN:
            self.kind = kind_of(self.value)


@dataclass(slots=True, eq=False, repr=False)
class DeviceAttributes(Message):
    """The attributes of one device."""

    id: int = 0
    name: str | None = None
    attributes: list[DeviceAttribute] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class ExecutableSettings(Message):
    """The program that was profiled."""

    executable_path: str = ""
    work_directory: str | None = None
    cmdline_arguments: str | None = None
    environment: str | None = None


@dataclass(slots=True, eq=False, repr=False)
class FilterOptions(Message):
    """The options that selected the kernels to profile."""

    kernel_name: str | None = None
    kernel_name_base: str | None = None
    kernel_id: str | None = None
    skip_count: int | None = None
    skip_before_match_count: int | None = None
    capture_count: int | None = None


@dataclass(slots=True, eq=False, repr=False)
class OtherOptions(Message):
    """Whether rules were applied, and metrics that were requested besides those of sections."""

    apply_rules: bool | None = None
    metrics: str | None = None


@dataclass(slots=True, eq=False, repr=False)
class SamplingOptions(Message):
    """The settings of program counter sampling."""

    interval_auto: bool | None = None
    interval: int | None = None
    max_passes: int | None = None
    buffer_size: int | None = None


@dataclass(slots=True, eq=False, repr=False)
class ProfilerSettings(Message):
    """The options of the profiler."""

    enable_nvtx: bool | None = None
    disable_profiling_start_stop: bool | None = None
    enable_profiling_from_start: bool | None = None
    activity_type: str | None = None
    filter_options: FilterOptions | None = None
    other_options: OtherOptions | None = None
    enabled_sections: str | None = None
    clock_control_mode: str | None = None
    sampling_options: SamplingOptions | None = None
    import_source: bool | None = None
    replay_mode: str | None = None
    enable_cpu_stack: bool | None = None


@dataclass(slots=True, eq=False, repr=False)
class Session(Message):
    """The origin of a report; `creation_time` is in Unix seconds."""

    process_id: int | None = None
    creation_time: int | None = None
    host_system_info: SystemInfo | None = None
    target_system_info: SystemInfo | None = None
    device_properties: DeviceProperties | None = None
    device_attributes: list[DeviceAttributes] = field(default_factory=list)
    comments: str | None = None
    version_info: list[VersionInfo] = field(default_factory=list)
    executable_settings: ExecutableSettings | None = None
    profiler_settings: ProfilerSettings | None = None
    profiler_cmdline: str | None = None
