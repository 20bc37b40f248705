"""Constant offsets in capsules: the kernel against records that are taken apart plainly."""

from __future__ import annotations

from random import Random

import pytest
from helpers.capsule_reference import INSTRUCTION, Constant, Slot, encode, fill
from helpers.tables import merged, objects, table

from pylink._native import image as native_image
from pylink._native.image import Canvas
from pylink._native.results import PlacedTables
from pylink._native.tables import (
    Entities,
    FilePlaces,
    Fixups,
    Indices,
    Numbers,
    Outs,
    Patches,
    Values,
)
from pylink.facts import sectionkinds
from pylink.facts.relocations import RELOCATIONS
from pylink.facts.rownumbers import EntityKind, FixupFlag

AS_NUMBER = next(row.number for row in RELOCATIONS if row.name == "ABS16_32")
USUAL = next(row.number for row in RELOCATIONS if row.name == "ABS32_32")
BANKS = (2, 3, 4)
START = 64
SECTION = 7  # the index of the first function's section


def operand(rng: Random) -> bytearray:
    """A record of an operand of one of BANKS, or one that differs from it in a byte."""
    body = bytearray(rng.randbytes(32))
    body[:2] = b"\x02\x22"
    if rng.random() < 0.5:
        body[5], body[12:15] = 0, rng.choice((b"\x42\x00\x02", b"\x47\x00\x02"))
    else:
        body[12:14], body[17] = b"\x41\x00", 0x0A
    if rng.random() < 0.3:
        body[rng.choice((1, 5, 12, 13, 14, 17))] ^= rng.choice((1, 0x40))
    return body


def slot(rng: Random) -> Slot:
    match rng.randrange(7):
        case 0:
            return Slot()
        case 1:
            return Slot(rng.randrange(1, 9), recorded=True)
        case 2:
            return Slot(0, bytearray(b"\x31" + rng.randbytes(15)))
        case 3:
            return Slot(rng.choice((1, 3)), bytearray(b"\x01" + rng.randbytes(15)), recorded=True)
        case 4:
            return Slot(1, bytearray(rng.choice((b"\x41", b"\x42")) + rng.randbytes(3)))
        case _:
            count = rng.choice((1, 1, 2))
            return Slot(count, operand(rng), recorded=count > 1 or rng.random() < 0.5)


class Link:
    """Functions with capsules and references to constants, some of which are not for records."""

    def __init__(self, rng: Random, *, beyond: bool = False) -> None:
        self.rng = rng
        self.functions = [
            [slot(rng) for _ in range(rng.choice((1, 5, 31, 32, 33, 70)))] for _ in range(3)
        ]
        self.values = [rng.getrandbits(40) for _ in range(6)]
        self.homes = [rng.choice((-1, 6, 7, 8)) for _ in self.values]
        self.rows: list[dict[str, int]] = []
        self.expected: list[list[Constant]] = [[] for _ in self.functions]
        for number, slots in enumerate(self.functions):
            size = sum(slot.count for slot in slots)
            for instruction in range(size + beyond):
                if rng.random() < 0.7 or instruction == size:
                    self.refer(number, instruction * INSTRUCTION + rng.choice((0, 4)))
        rng.shuffle(self.rows)

    def refer(self, function: int, offset: int) -> None:
        entity, addend = self.rng.randrange(6), self.rng.choice((0, 8, -4))
        home = self.homes[entity]
        bank = BANKS[home - 6] if home >= 0 else 2
        row = {"offset": offset, "addend": addend, "out": function, "type": USUAL, "entity": entity}
        self.rows.append(row)
        self.expected[function].append(Constant(offset, bank, self.values[entity] + addend))
        # Neither mercury's own, nor what is a number in the code, nor another variable, nor data.
        ignored = {**row, "addend": addend + 16}
        self.rows.append(
            self.rng.choice(
                (
                    {**ignored, "how": FixupFlag.MERC},
                    {**ignored, "type": AS_NUMBER},
                    {**ignored, "entity": 6},
                    {**ignored, "out": 6},
                )
            )
        )

    def patch(self) -> tuple[int, list[bytes]]:
        """The capsule that the kernel refuses, or -1, and what all capsules are then."""
        capsules = [encode(slots) for slots in self.functions]
        starts = [START + sum(map(len, capsules[:at])) for at in range(len(capsules))]
        outs = [{"kind": sectionkinds.TEXT, "merc": 3 + at} for at in range(3)]
        outs += [{"kind": sectionkinds.CAPMERC, "twin": at} for at in range(3)]
        outs += [{"kind": sectionkinds.CONSTANT, "bank": bank} for bank in BANKS]
        places = [
            *({} for _ in range(3)),
            *(
                {"offset": at, "size": len(capsule)}
                for at, capsule in zip(starts, capsules, strict=True)
            ),
            *({} for _ in BANKS),
        ]
        arena = b"".join(capsules)
        whole = merged(
            objects(
                arena,
                sections=[
                    {"offset": at - START, "size": len(capsule)}
                    for at, capsule in zip(starts, capsules, strict=True)
                ],
            ),
            out_of=table(Numbers, range(3, 6)),
            base=table(Values, [0] * 3),
            entities=table(
                Entities,
                [*({"kind": EntityKind.CONSTANT} for _ in range(6)), {"kind": EntityKind.GLOBAL}],
            ),
            fixups=table(Fixups, self.rows),
        )
        placed = PlacedTables(
            whole,
            outs=table(Outs, outs),
            places=table(FilePlaces, places),
            values=table(Values, [*self.values, 0]),
            homes=table(Numbers, [*self.homes, -1]),
            section_order=table(Numbers, range(len(outs))),
            section_index=table(Indices, [SECTION + at for at in range(len(outs))]),
        )
        placed.size = START + len(arena)
        canvas = Canvas(placed.size)
        bad = native_image.write_contents(canvas, placed, Patches())
        image = canvas.image
        assert image[:START] == bytes(START)
        found = [
            image[at : at + len(capsule)] for at, capsule in zip(starts, capsules, strict=True)
        ]
        for number, capsule in enumerate(
            found
        ):  # the first field, as the code of the function has it
            assert int.from_bytes(capsule[:2], "little") == SECTION + number
        return bad, [old[:2] + new[2:] for old, new in zip(capsules, found, strict=True)]


@pytest.mark.parametrize("seed", range(80))
def test_capsules_agree_with_the_page(seed: int) -> None:
    link = Link(Random(seed))
    bad, capsules = link.patch()
    assert bad == -1
    for slots, constants, capsule in zip(link.functions, link.expected, capsules, strict=True):
        assert fill(slots, constants)
        assert capsule == encode(slots)


@pytest.mark.parametrize("seed", range(20))
def test_an_instruction_without_a_slot_breaks_the_format(seed: int) -> None:
    link = Link(Random(seed), beyond=True)
    assert not fill(link.functions[0], link.expected[0])
    assert link.patch()[0] == 3


def test_records_are_patched_at_all() -> None:
    changed = 0
    for seed in range(20):
        link = Link(Random(seed))
        before = [encode(slots) for slots in link.functions]
        changed += sum(a != b for a, b in zip(before, link.patch()[1], strict=True))
    assert changed > 30
