"""What -v and -dump-callgraph print about the demo, against nvlink's texts."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from helpers.demo import DEMO, cubins

import pylink


def inputs(arch: str, *without: str) -> list[Path]:
    return [path for path in cubins(arch) if path.stem not in without]


def said(arch: str, *without: str, **options: Any) -> list[str]:
    """The lines of a link that may fail."""
    log = io.StringIO()
    try:
        pylink.link(inputs(arch, *without), arch=arch, log=log, **options)
    except pylink.LinkError:
        log.write("refused\n")
    return log.getvalue().splitlines()


def test_kernels_with_what_they_and_their_callees_need() -> None:
    lines = said("sm_90a", verbose=True)
    assert lines[:5] == [
        "pylink info    : 72 bytes gmem, 2048 bytes cmem[3]",
        "pylink info    : Function properties for '_Z5startP8Particleij':",
        "pylink info    : used 28 registers, used 0 barriers, 8 stack, 0 bytes smem, "
        "544 bytes cmem[0], 0 bytes lmem",
        "pylink info    : Function properties for '_Z4stepPK8ParticlePS_iif':",
        "pylink info    : used 44 registers, used 0 barriers, 8 stack, 0 bytes smem, "
        "556 bytes cmem[0], 0 bytes lmem",
    ]
    assert len(lines) == 1 + 2 * 10


def test_no_constant_banks_from_sm_100_on() -> None:
    lines = said("sm_100", verbose=True)
    assert lines[0] == "pylink info    : 72 bytes gmem"
    assert lines[5:7] == [
        "pylink info    : Function properties for '_Z7field_7PK8ParticlePfi':",
        "pylink info    : used 40 registers, used 1 barriers, 0 stack, 128 bytes smem, "
        "0 bytes lmem",
    ]


def test_relocatable_outputs_count_kernels_alone() -> None:
    assert said("sm_90a", verbose=True, relocatable_link=True)[4] == (
        "pylink info    : used 32 registers, used 0 barriers, 0 stack, 0 bytes smem, "
        "556 bytes cmem[0], 0 bytes lmem"
    )


@pytest.mark.parametrize("option", ["dump_callgraph", "dump_callgraph_no_demangle"])
def test_call_graph(option: str) -> None:
    lines = said("sm_90a", **{option: True})
    assert lines[:9] == [
        "callgraph for sm_90:",
        "# A: s -> B // s (number A) potentially calls B",
        "# s [N]     // s uses N registers",
        "# ^s        // s is entry point",
        "# &s        // s has address taken",
        "1: shape(float) [24] ->",
        "2: ^field_0(const Particle *, float *, int) [40] -> 3 1",
        "3: block_sum(float) [24] ->",
        "4: &force_0(const Particle &, const Particle &) [44] -> 1",
    ]
    assert lines[31:35] == ["27: ", "28: ", "29: ", "30: "]  # dead functions keep their numbers
    indirect = " 25 22 19 16 13 10 7 4" * 5
    step = "step(const Particle *, Particle *, int, int, float)"
    assert lines[35] == f"31: ^{step} [32] ->{indirect}"
    force = "force_0(const Particle &, const Particle &)"
    assert lines[37:] == [f"regcount 44 for {force} propagated to entry {step}"]


def test_relocatable_outputs_have_no_call_graph() -> None:
    assert said("sm_90a", dump_callgraph=True, relocatable_link=True) == []


def test_an_undefined_reference_does_not_silence_the_rest() -> None:
    lines = said("sm_90a", "reduction", dump_callgraph=True, verbose=True)
    assert lines[:2] == [
        "pylink error   : Undefined reference to '_Z9block_sumf' in "
        f"'{DEMO / 'sm_90a' / 'force_0.cubin'}'",
        "callgraph for sm_90:",
    ]
    assert "3: block_sum(float) ->" in lines
    assert "pylink info    : 72 bytes gmem, 2048 bytes cmem[3]" in lines
    assert lines[-1] == "refused"


@pytest.mark.parametrize(
    ("names", "kernels"),
    [
        (["s*t"], 2),
        (["*start"], 1),
        (["_Z*d_*i"], 8),
        (["field_*fi", "step"], 9),
        (["t*s"], 0),
        (["st?p"], 0),
        (["*"], 10),
    ],
)
def test_stars_in_names_of_kernels(names: list[str], kernels: int) -> None:
    lines = said("sm_90a", verbose=True, kernels_used=names)
    assert sum("Function properties" in line for line in lines) == kernels
