"""Pass stack-size: the stack of every kernel, and the calls that it comes from."""

from __future__ import annotations

from pylink.remarks.passes.catalogue import KERNEL_STACK, STACK_UNKNOWN
from pylink.remarks.passes.graph import CallGraph, chain
from pylink.remarks.passes.view import View
from pylink.tables import DEFINED, KERNEL, LIVE, NO_STACK_BOUND

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.phases.results import Merged
    from pylink.remarks import Remarks
    from pylink.remarks.passes.graph import Step


def emit(merged: Merged, remarks: Remarks) -> None:
    """Relocatable outputs have no such numbers yet."""
    if merged.objects.job.executable:
        StackPass(merged, remarks).run()


class StackPass:
    """The graph, and by entity the bytes of its own frame and of its deepest path."""

    def __init__(self, merged: Merged, remarks: Remarks) -> None:
        self.view = View(merged)
        self.remarks = remarks
        self.graph = CallGraph(merged)
        self.flags = merged.entities.column("flags")
        self.frames = [row.frame if row.flags & DEFINED else 0 for row in merged.entities]
        self.stacks = merged.functions.column("stack")

    def run(self) -> None:
        for kernel, flags in enumerate(self.flags):
            if not (flags & KERNEL and flags & LIVE):
                continue
            if self.stacks[kernel] == NO_STACK_BOUND:
                self._tell_unknown(kernel)
            else:
                self._tell_stack(kernel)

    def _tell_stack(self, kernel: int) -> None:
        steps: list[Step] = [(kernel, False)]
        rest = self.stacks[kernel] - self.frames[kernel]
        while rest > 0:
            # The first callee that needs all that is left.
            steps.append(
                next(
                    step
                    for step in self.graph.callees(steps[-1][0])
                    if self.stacks[step[0]] == rest
                )
            )
            rest -= self.frames[steps[-1][0]]
        stack = self.stacks[kernel]
        self.remarks.emit(
            KERNEL_STACK(
                self.view.name(kernel),
                self.view.at_entity(kernel),
                stack,
                Stack=stack,
                Frame=self.frames[kernel],
                Depth=len(steps) - 1,
                Chain=chain(steps, self._with_frame),
            )
        )

    def _tell_unknown(self, kernel: int) -> None:
        steps: list[Step] = [(kernel, False)]
        place = {kernel: 0}
        while True:
            # A function without a bound is in a cycle or calls one without a bound.
            callees = self.graph.callees(steps[-1][0])
            unbounded = (step for step in callees if self.stacks[step[0]] == NO_STACK_BOUND)
            following = next(unbounded, None)
            if following is None:  # a damaged file gives a frame the size that stands for no bound
                return
            steps.append(following)
            function = following[0]
            if function in place:
                break
            place[function] = len(steps) - 1
        first = place[function]
        cycle = steps[first:]
        frame = sum(self.frames[number] for number, _ in cycle[1:])
        self.remarks.emit(
            STACK_UNKNOWN(
                self.view.name(kernel),
                self.view.at_entity(kernel),
                frame,
                Chain=chain(steps[: first + 1], self.view.name),
                Cycle=chain([(function, False), *cycle[1:]], self.view.name),
                Frame=frame,
            )
        )

    def _with_frame(self, function: int) -> str:
        return f"{self.view.name(function)} ({self.frames[function]})"
