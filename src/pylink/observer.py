"""Base of observers, which observe a link and write about it: remarks, profiles, maps.

An observer gets the result of each phase when the phase has ended. It reads finished tables and
changes nothing, so the output does not depend on it. It is also called at the end of each step, a
part of a phase, for measurements and the display of progress.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pylink.profile.model import Profile


# Size in bytes of a TimeRow, in which native code records the time of an input. Its format is TIME
# of `pylink.rowformats`, which is not imported here, since it needs `struct`.
TIME_ROW_SIZE = 32


class Observer:
    """Base of observers of a link; the methods do nothing.

    * `timed`: the observer wants native code to record how long reading each input takes.
    * `needs_image`: it reads the linked file.
    * `needs_cubins`: it has nothing to write if no cubin was linked, because link-time optimization
      produced the whole program.
    * `profile`: the costs of the link, once it has ended; None for observers without a profile.
    """

    __slots__ = ()

    timed = False
    needs_image = False
    needs_cubins = False
    profile: Profile | None = None

    @property
    def records_folds(self) -> bool:
        """Whether the observer needs the comparison of each file's Mercury sections."""
        return False

    def resume(self) -> None:
        """Continue when all observers have seen the end of a phase.

        Time from now on belongs to the next phase.
        """

    def step_ended(self, name: str, detail: object) -> None:
        """Handle the end of the step `name` of the running phase.

        A step begins at the end of the previous one, or with its phase. `detail` has data that the
        phase's result lacks, or None.
        """

    def phase_ended(self, tag: str, result: object) -> None:
        """Handle the end of the phase `tag` with `result`, such as `Merged` for merge."""

    def close(self, *, failed: bool) -> None:
        """Handle the end of the link.

        `failed` says that the link or an earlier observer failed, or that no cubin was linked, but
        this observer needs one (`needs_cubins`).
        """


class Steps:
    """Passes the ends of a phase's steps to observers; most links have no observer.

    `on_phase_end` is called with the tag of each phase that ended, and may end the link by raising.
    It gets no results and is not an observer: a link with it takes the path of one without
    observers.
    """

    __slots__ = ("observers", "on_phase_end", "timed")

    def __init__(
        self, observers: Sequence[Observer] = (), on_phase_end: Callable[[str], None] | None = None
    ) -> None:
        self.observers = observers
        self.on_phase_end = on_phase_end
        self.timed = any(observer.timed for observer in observers)

    def end_step(self, name: str, detail: object = None) -> None:
        """Tell observers that a step ended; `detail` has data that the phase's result lacks."""
        for observer in self.observers:
            observer.step_ended(name, detail)

    def times(self, count: int) -> bytearray | None:
        """Return a buffer for one TimeRow, the time that an input took, for each of `count` inputs.

        None if times are not recorded.
        """
        return bytearray(TIME_ROW_SIZE * count) if self.timed else None

    @property
    def records_folds(self) -> bool:
        """Whether an observer needs the comparison of each file's Mercury sections."""
        return any(observer.records_folds for observer in self.observers)

    def drop_observers(self) -> None:
        """Drop the observers, which refer to this object through the link's results: a cycle."""
        self.observers = ()
