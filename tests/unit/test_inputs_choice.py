"""Which entry of a fat binary is linked; rows were measured with 13.0 and 13.5."""

from __future__ import annotations

import pytest
from helpers.cubin_builder import one_kernel
from helpers.fatbin_builder import container, entry, host_object

import pylink
from pylink.facts.fatbinentries import FLAG_64_BIT, FLAG_CHIP, FLAG_COMPATIBLE, FLAG_FAMILY
from pylink.facts.picknumbers import EntryKind
from pylink.facts.target import Target
from pylink.inputs.choice import Chooser

# Target, entries (s: machine code, p: PTX), and the one that nvlink takes, or nothing.
MEASURED = """
89  s80 s86                          s86
89  s86 s80                          s86
89  s80 s86 p80                      s86
89  p80 s80                          s80
89  s80 p86                          p86
89  p86 p80 s80                      p86
88  s80 s86 s87                      -
87  s80 s86                          -
88  p80 s86                          p80
86  s80 p80 p86                      p86
90  s80                              -
90  p75 p80 p86                      p86
90  p86 p75                          p86
75  p80 p75                          p75
80  p86                              -
80  s75                              -
90a s90                              s90
90  s90a                             s90a
90a s90 s90a                         s90a
90  s90 s90a                         s90a
90a p90a p90                         p90a
90  p90a p90                         p90
90  p90a                             -
90a p90a s90                         s90
103 s100                             s100
103 s100a                            -
103 s100f                            s100f
103 s100a s100f s100                 s100f
103a s103 s103a s103f s100 s100f     s103a
103f s103a s103f s103 s100           s103a
103f s103 s103f                      s103f
103f s103a                           s103a
103a s100f                           s100f
100f s100a                           s100a
120 s100                             -
120 p100                             p100
120 p100f                            -
103 p100f                            p100f
103 p100a                            -
100a p100a                           p100a
100 p100a                            -
100f p100a                           -
100f p100 p100f p100a                p100f
100a p100 p100f p100a                p100a
100 p100a p100f p100                 p100f
121 s120                             s120
121 s120a                            -
121 s120a s120f s120                 s120f
121 s120 p120                        s120
121 p121a s120                       s120
121a p121a s120                      p121a
121 p120f p121                       p121
121 p120f p120                       p120f
110 s100                             -
110 p100                             p100
110 p100f                            -
90  s100                             -
103 s100 p103                        p103
103 s100 p103f                       p103f
103a p103a s103                      s103
100 p103f                            -
103 p103a p103f                      p103f
120 p121f                            -
110 p110f                            p110f
"""
# The same from 13.1 on, for entries with the suffix `a` (13.1 and 13.5 agree in all rows).
MEASURED_LATER = """
90  s90a                             -
90  s90a s90                         s90
90  s90 s90a                         s90
90  s90a p90                         p90
90  p90 s90a                         p90
90  s90a p90a                        -
90  s90a p90a p90                    p90
90  s90a p80                         p80
90  s90a s90 p90                     s90
90a s90a s90                         s90a
90a p90a s90                         s90
90a s90a p90                         s90a
100 s100a                            -
100 s100a s100                       s100
100 s100a s100f                      s100f
100 s100a s100f s100                 s100f
100 s100a p100                       p100
100f s100a s100                      s100
100f s100a s100f s100                s100f
100f s100a                           -
103 s100a s103a                      -
103 s103a s103                       s103
103 s103a s100                       s100
103 s103a s100f                      s100f
103 s103a s103f s100                 s103f
103 s103a p100                       p100
103f s103a s103f                     s103f
103f s103a s100f                     s100f
120 s120a s120                       s120
120 s120a p120                       p120
121 s121a s120                       s120
121 s121a s121                       s121
121 s121a s120f                      s120f
121 s120a s121a p120                 p120
110 s110a s110                       s110
110 s110a p100                       p100
110f s110a s110f                     s110f
"""


def rows(measured: str) -> list[tuple[str, list[str], str | None]]:
    found = []
    for line in measured.strip().splitlines():
        arch, *entries, best = line.split()
        found.append((arch, entries, None if best == "-" else best))
    return found


def key(name: str) -> tuple[int, int, int]:
    """Kind, SM number and flags as fatbinary writes them for such an entry."""
    kind = EntryKind.ELF if name[0] == "s" else EntryKind.PTX
    sm = int(name[1:].rstrip("af"))
    flags = FLAG_64_BIT | {"a": FLAG_CHIP, "f": FLAG_FAMILY}.get(name[-1], 0)
    return kind, sm, flags | (FLAG_COMPATIBLE if kind == EntryKind.ELF and sm >= 100 else 0)


def choose(chooser: Chooser, entries: list[str]) -> str | None:
    ranks = [chooser.rank(*key(name)) for name in entries]
    return entries[ranks.index(max(ranks))] if max(ranks) >= 0 else None


@pytest.mark.parametrize(("arch", "entries", "best"), rows(MEASURED))
def test_the_entry_that_nvlink_takes(arch: str, entries: list[str], best: str | None) -> None:
    assert choose(Chooser(Target(f"sm_{arch}"), optimizes=False), entries) == best


@pytest.mark.parametrize(("arch", "entries", "best"), rows(MEASURED_LATER))
def test_later_releases_keep_code_for_one_chip_from_other_targets(
    arch: str, entries: list[str], best: str | None
) -> None:
    chooser = Chooser(Target(f"sm_{arch}"), optimizes=False, parts_accelerated=True)
    assert choose(chooser, entries) == best
    # Of entries that any release may choose from, earlier ones choose the same.
    earlier = Chooser(Target(f"sm_{arch}"), optimizes=False)
    assert choose(earlier, entries) == best or earlier.met_accelerated


def test_code_without_its_features_runs_on_its_own_target() -> None:
    assert Chooser(Target("sm_103"), optimizes=False).rank(EntryKind.ELF, 100, FLAG_64_BIT) < 0
    assert Chooser(Target("sm_100"), optimizes=False).rank(EntryKind.ELF, 100, FLAG_64_BIT) > 0
    assert Chooser(Target("sm_121"), optimizes=False).rank(EntryKind.ELF, 120, FLAG_64_BIT) > 0


def test_ltoir_comes_before_all_else_where_it_is_optimized_and_else_last() -> None:
    kinds = (EntryKind.LTOIR, EntryKind.PTX, EntryKind.ELF)
    for optimizes, order in ((True, (1, 2, 0)), (False, (0, 1, 2))):
        chooser = Chooser(Target("sm_90"), optimizes=optimizes)
        ranks = [
            chooser.rank(kind, 80 if kind == EntryKind.LTOIR else 90, FLAG_64_BIT) for kind in kinds
        ]
        assert sorted(range(3), key=ranks.__getitem__) == list(order)
        assert min(ranks) >= 0
        assert chooser.rank(EntryKind.LTOIR, 100, FLAG_64_BIT) < 0


def test_entries_for_32_bits_are_not_used() -> None:
    assert Chooser(Target("sm_80"), optimizes=False).rank(EntryKind.ELF, 80, 0x10) < 0


def link(*inputs: tuple[str, bytes]) -> pylink.LinkResult:
    return pylink.link(list(inputs), arch="sm_80")


A, B, C = (one_kernel(name).build() for name in "abc")


def image_of(*cubins: bytes) -> bytes:
    return link(*((f"{number}.cubin", data) for number, data in enumerate(cubins))).image


def test_the_first_of_equal_entries_is_taken() -> None:
    assert link(("f.fatbin", container(entry(A, 80), entry(B, 80)))).image == image_of(A)
    assert link(("f.fatbin", container(entry(B, 80), entry(A, 80)))).image == image_of(B)


def test_each_container_gives_an_entry() -> None:
    """As `ld -r` and `cat` put containers behind each other, with padding or without."""
    two = container(entry(A, 80)) + bytes(8) + container(entry(C, 75), entry(B, 80))
    assert link(("f.fatbin", two)).image == image_of(A, B)
    hosted = host_object([("__nv_relfatbin", two), ("__nv_relfatbin", container(entry(C, 80)))])
    assert link(("f.o", hosted)).image == image_of(A, B, C)


def test_what_follows_the_last_container_does_not_matter() -> None:
    assert link(("f.fatbin", container(entry(A, 80)) + b"x" * 40)).image == image_of(A)


def test_a_missing_architecture_is_warned_of_once() -> None:
    other = container(entry(B, 75))
    result = link(("f.fatbin", container(entry(A, 80)) + other + other), ("g.fatbin", other))
    assert [record.message for record in result.diagnostics] == [
        "SM Arch ('sm_80') not found in 'f.fatbin'",
        "SM Arch ('sm_80') not found in 'g.fatbin'",
    ]
    assert result.image == image_of(A)
    silent = pylink.link([("g.fatbin", other)], arch="sm_80", suppress_arch_warning=True)
    assert not silent.diagnostics
