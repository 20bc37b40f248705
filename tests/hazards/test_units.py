"""Units that work in order, seen in code of ptxas for sm_100: what it leaves without a scoreboard.

Each case is code with one place where nothing waits by itself, and a change that makes it wrong.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from helpers import oracle

from hazards import check, flow, planted, reference, sass, tables
from hazards.cubins import Function
from hazards.flow import Flow

pytestmark = oracle.needs_oracle

EXIT = "4d790000000000000000800300ea0f00"
# FCHK P0, -R8, R5; MUFU.EX2 R50, R0; @!P1 FMUL R50, R50, R50; @!P0 BRA over them
CONVERSIONS = """
02730008050000000001000000e80f00 08733200000000000008000000620e00
20923232320000000000400000c62f00 47891000000000000000800300ec0f00
"""
# TEX.LL RZ, R5, R10, R24, UR4, 2D, 0x1; TEX.LL RZ, R10, R22, R24, UR4, 2D, 0x1
TEXTURES = "607f050a1804ff28ff019e0800e20f00 607f0a161804ff28ff019e0800620f00"
# IMAD.MOV.U32 R10, RZ, RZ, -0x3f800000
MOVE = "24740aff000080c0ff008e0700e20f00"
# @!P1 SYNCS.ARRIVE.TRANS64.RED.A0T1 RZ, [UR4], RZ; UMOV UR4, 0x0
MBARRIERS = "a799ffffff0000000404200800e20f00 82780400000000000000000000e20f00"


def built(text: str) -> Flow:
    code = bytes.fromhex("".join(text.split()) + 8 * EXIT)
    decoder = sass.decoder("100")
    decoder.learn([code])
    return flow.build(Function("code", code), decoder)


def kinds(found: Flow) -> set[str]:
    """The kinds of findings but for stalls, which the reference finds as well."""
    table = tables.load("100")
    seen = {finding.kind for finding in check.function(found, table)} - {"stall", "wait"}
    walked = {
        kind
        for what in reference.under_way(found, table)
        for kind, _ in reference.touched(found, what, table)
    }
    assert walked == seen
    return seen


def changed(found: Flow, index: int, **fields: int) -> Flow:
    control = replace(found.steps[index].control, **fields)
    return planted.with_control(found, index, control)


@pytest.mark.parametrize(
    ("right", "wrong", "index", "fields", "kind"),
    [
        # Waiting for the MUFU tells of the FCHK in front of it; without, the branch is early.
        (CONVERSIONS, CONVERSIONS, 2, {"wait": 0}, "read"),
        # A texture may overwrite the coordinates of one in front of it, other units may not.
        (TEXTURES, TEXTURES.split(maxsplit=1)[0] + MOVE, 0, {}, "source"),
        # A uniform register is taken at once, unless a scoreboard says when.
        (MBARRIERS, MBARRIERS, 0, {"read": 3}, "source"),
    ],
)
def test_what_a_unit_does_in_order_needs_no_scoreboard(
    right: str, wrong: str, index: int, fields: dict[str, int], kind: str
) -> None:
    assert kinds(built(right)) == set()
    assert kind in kinds(changed(built(wrong), index, **fields))
