"""Faults of one instruction: what a linker that rewrites control words could get wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hazards.flow import Flow
from hazards.words import Control


def with_control(flow: Flow, index: int, control: Control) -> Flow:
    """The function with another control word at one instruction."""
    steps = list(flow.steps)
    steps[index] = replace(steps[index], control=control)
    return replace(flow, steps=steps)


def cleared_waits(flow: Flow) -> Iterator[tuple[int, int, Flow]]:
    """Each wait for one scoreboard taken away: instruction, scoreboard, the function."""
    for index, step in enumerate(flow.steps):
        for bit in range(6):
            if step.control.wait >> bit & 1:
                control = replace(step.control, wait=step.control.wait & ~(1 << bit))
                yield index, bit, with_control(flow, index, control)
