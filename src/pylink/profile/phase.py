"""The costs of the whole link, of its phases and of their steps.

Times are in nanoseconds, moments as of `time.perf_counter_ns`, sizes in bytes. None stands for
a value that the system did not provide.
"""

from __future__ import annotations

from pylink.timing import NS_PER_MS


class Cost:
    """The cost of a period of time, which begins at `start_ns` and takes `wall_ns`.

    `peak_bytes` is the peak memory of the process at the end of the period. Faults are page faults.
    `disk_bytes` were read from disk, since no cache had them. `cycles` and `instructions` are those
    of the processor in user mode. `cpu_ns` is the processor time of all threads of the process,
    `thread_ns` only that of the thread that links; both include compilers that the link ran.
    """

    __slots__ = (
        "cpu_ns", "cycles", "disk_bytes", "instructions", "major_faults", "minor_faults",
        "peak_bytes", "start_ns", "thread_ns", "wall_ns",
    )  # fmt: skip

    def __init__(
        self,
        *,
        start_ns: int = 0,
        wall_ns: int = 0,
        cpu_ns: int = 0,
        minor_faults: int = 0,
        major_faults: int = 0,
        peak_bytes: int = 0,
        disk_bytes: int = 0,
        cycles: int | None = None,
        instructions: int | None = None,
        thread_ns: int = 0,
    ) -> None:
        self.start_ns = start_ns
        self.wall_ns = wall_ns
        self.cpu_ns = cpu_ns
        self.minor_faults = minor_faults
        self.major_faults = major_faults
        self.peak_bytes = peak_bytes
        self.disk_bytes = disk_bytes
        self.cycles = cycles
        self.instructions = instructions
        self.thread_ns = thread_ns


class Measured:
    """An object with a `cost`."""

    __slots__ = ("cost",)

    def __init__(self, cost: Cost) -> None:
        self.cost = cost

    @property
    def wall_ns(self) -> int:
        return self.cost.wall_ns

    @property
    def cpu_ns(self) -> int:
        return self.cost.cpu_ns


class Step(Measured):
    """One step of a phase; `size` is the size of its work in `unit`, such as "symbols"."""

    __slots__ = ("name", "size", "unit")

    def __init__(self, name: str, cost: Cost) -> None:
        super().__init__(cost)
        self.name = name
        self.size = 0
        self.unit = "items"

    def __repr__(self) -> str:
        return f"<Step {self.name} {self.wall_ns / NS_PER_MS:.3f} ms>"


class Phase(Measured):
    """One phase and the amounts that it handled; `size` is the size of its work in `unit`.

    `tag` is its name in the pipeline, such as merge. `relocations` counts those that it looked at,
    `relocations_applied` those that changed bytes and `relocations_kept` those that were written to
    the output.
    """

    __slots__ = (
        "bytes_compared", "bytes_copied", "bytes_hashed", "bytes_read", "bytes_written",
        "relocations", "relocations_applied", "relocations_kept", "sections", "size", "steps",
        "symbols", "tag", "unit",
    )  # fmt: skip

    def __init__(self, tag: str, cost: Cost, steps: list[Step]) -> None:
        super().__init__(cost)
        self.tag = tag
        self.steps = steps
        self.size = 0
        self.unit = "bytes"
        self.bytes_read = self.bytes_copied = self.bytes_compared = 0
        self.bytes_hashed = self.bytes_written = 0
        self.sections = self.symbols = 0
        self.relocations = self.relocations_applied = self.relocations_kept = 0

    def __repr__(self) -> str:
        return f"<Phase {self.tag} {self.wall_ns / NS_PER_MS:.3f} ms>"
