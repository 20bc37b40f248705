"""Instructions out of code, decoded by `nvdisasm` and kept by their encoding.

    decoder = Decoder.of("100a")
    decoder.learn([code, other_code])       # one start of nvdisasm for all that is new
    for instruction in decoder.decode(code, address): ...

nvdisasm takes 0.2 seconds to start, so an encoding is decoded once for each architecture and kept:
in this process, and in a file beside the compiled sources of the tests. Which operands are
distances from the instruction is seen by decoding each encoding at two addresses. Control bits are
properties of `Instruction`; they are no part of its text.
"""

from __future__ import annotations

import fcntl
import functools
import re
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from helpers import oracle

from emulator.errors import Unsupported
from emulator.operands import Immediate, Operand, Register, Target, parse, split

SIZE = 16  # bytes of an instruction, from sm_70 on

# Bits 105 to 125 tell when an instruction is issued, not what it does: stall count, yield flag,
# scoreboards, reuse of operands.
CONTROL_FIRST, CONTROL_BITS = 105, 21
CONTROL_MASK = ((1 << CONTROL_BITS) - 1) << CONTROL_FIRST

_LINE = re.compile(r"^\s+/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;?\s*$")
_GUARD = re.compile(r"@(!?)(U?P)(T|\d)\s+")

# A base that no distance leaves, and that nvdisasm prints in full.
_BASE = 0x3_0000_0000


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction at an address.

    `guard` is None where it always runs. `encoding` are the 128 bits. `text` is what nvdisasm
    prints, without control bits; distances are shown as if it stood at address 0.
    """

    address: int
    encoding: int
    text: str
    guard: Register | None
    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]

    @property
    def name(self) -> str:
        """Opcode and modifiers, as printed."""
        return ".".join((self.opcode, *self.modifiers))

    @property
    def key(self) -> int:
        """What it does, without when: the encoding with its control bits clear."""
        return self.encoding & ~CONTROL_MASK

    @property
    def stall(self) -> int:
        """Cycles until the next instruction may issue, 0 to 15."""
        return self.encoding >> 105 & 15

    @property
    def yields(self) -> bool:
        return not self.encoding >> 109 & 1

    @property
    def write_scoreboard(self) -> int | None:
        """The scoreboard that is released when the results are there, 0 to 5."""
        return _scoreboard(self.encoding >> 110 & 7)

    @property
    def read_scoreboard(self) -> int | None:
        """The scoreboard that is released when the operands were read, 0 to 5."""
        return _scoreboard(self.encoding >> 113 & 7)

    @property
    def wait_mask(self) -> int:
        """A bit for each scoreboard that has to be free before it issues."""
        return self.encoding >> 116 & 0x3F

    @property
    def reuse(self) -> int:
        return self.encoding >> 122 & 15

    def target(self) -> int | None:
        """The address that its last relative operand names, None without one."""
        for operand in reversed(self.operands):
            if isinstance(operand, Immediate) and operand.relative:
                return self.address + SIZE + operand.value
        return None


def _scoreboard(field: int) -> int | None:
    return None if field == 7 else field


def encodings(code: bytes) -> list[int]:
    """The 128-bit encodings of code whose size is a multiple of 16."""
    if len(code) % SIZE:
        raise Unsupported(f"code of {len(code)} bytes is not a row of {SIZE}-byte instructions")
    return [int.from_bytes(code[at : at + SIZE], "little") for at in range(0, len(code), SIZE)]


class Decoder:
    """The decoded encodings of one architecture, such as "90a"."""

    def __init__(self, arch: str, tool: str, store: Path | None) -> None:
        self.arch = arch
        self._tool = tool
        self._store = store
        self._texts: dict[int, str] = {}
        self._parsed: dict[int, Instruction] = {}
        if store is not None and store.is_file():
            for line in store.read_text().splitlines():
                number, _, text = line.partition("\t")
                self._texts[int(number, 16)] = text

    @staticmethod
    @functools.cache
    def of(arch: str) -> Decoder:
        """The decoder of an architecture that all of this process share."""
        tool = oracle.optional_tool("nvdisasm")
        if tool is None:
            raise Unsupported("nvdisasm is not installed: pip install '.[oracle]'")
        release = subprocess.run([tool, "--version"], capture_output=True, text=True, check=True)
        number = re.search(r"V([\d.]+)", release.stdout)
        folder = oracle.cache_root()
        folder.mkdir(parents=True, exist_ok=True)
        name = f"sass-{number[1] if number else 'unknown'}-{arch}.txt"
        return Decoder(arch, tool, folder / name)

    def learn(self, codes: Iterable[bytes]) -> None:
        """Decode what is new in all of `codes` with one start of nvdisasm."""
        unknown: dict[int, int] = {}
        for code in codes:
            for encoding in encodings(code):
                if encoding & ~CONTROL_MASK not in self._texts:
                    unknown.setdefault(encoding & ~CONTROL_MASK, encoding)
        if not unknown:
            return
        texts = self._run(unknown)
        self._texts.update(texts)
        if self._store is not None:
            with self._store.open("a") as store:
                fcntl.flock(store, fcntl.LOCK_EX)
                store.write("".join(f"{key:x}\t{text}\n" for key, text in texts.items()))

    def decode(self, code: bytes, address: int = 0) -> list[Instruction]:
        """The instructions of code that is loaded at `address`."""
        self.learn([code])
        return [
            self.instruction(encoding, address + SIZE * index)
            for index, encoding in enumerate(encodings(code))
        ]

    def instruction(self, encoding: int, address: int) -> Instruction:
        """One instruction whose encoding was learnt."""
        key = encoding & ~CONTROL_MASK
        parsed = self._parsed.get(key)
        if parsed is None:
            parsed = self._parsed[key] = _instruction(key, self._texts[key])
        return Instruction(
            address,
            encoding,
            parsed.text,
            parsed.guard,
            parsed.opcode,
            parsed.modifiers,
            parsed.operands,
        )

    def text(self, encoding: int) -> str:
        """What nvdisasm prints for an encoding that was learnt; distances are marked 'rel:'."""
        return self._texts[encoding & ~CONTROL_MASK]

    def _run(self, unknown: dict[int, int]) -> dict[int, str]:
        """The texts of encodings by key, each decoded twice; distances become those from address 0.

        They are decoded with their control bits: nvdisasm refuses some instructions without.
        """
        code = b"".join(encoding.to_bytes(SIZE, "little") for encoding in unknown.values())
        with tempfile.NamedTemporaryFile(suffix=".bin") as file:
            file.write(code + code)
            file.flush()
            argv = [self._tool, "-b", f"SM{self.arch}", "-base", hex(_BASE), "-ndf", file.name]
            done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Unsupported(f"nvdisasm -b SM{self.arch}: {done.stderr.strip()[:300]}")
        lines = {
            int(match[1], 16): match[2]
            for match in map(_LINE.match, done.stdout.splitlines())
            if match
        }
        texts = {}
        for index, key in enumerate(unknown):
            place = _BASE + SIZE * index
            try:
                first, second = (
                    lines[where].replace(".reuse", "") for where in (place, place + len(code))
                )
            except KeyError:
                raise Unsupported(
                    f"nvdisasm does not decode {key:#034x} for sm_{self.arch}"
                ) from None
            texts[key] = first if first == second else _relative(first, second, place, len(code))
        return texts


_HEX = re.compile(r"0x([0-9a-f]+)")


def _relative(first: str, second: str, place: int, shift: int) -> str:
    """`first` with the number that moved with the address as a distance, marked by 'rel:'."""
    numbers, others = _HEX.findall(first), _HEX.findall(second)
    if len(numbers) != len(others) or _HEX.sub("", first) != _HEX.sub("", second):
        raise Unsupported(f"'{first}' is '{second}' elsewhere")
    moved = [(int(a, 16), int(b, 16)) for a, b in zip(numbers, others, strict=True)]
    turns = iter(moved)

    def distance(match: re.Match[str]) -> str:
        here, there = next(turns)
        if here == there:
            return match[0]
        if there - here != shift:
            raise Unsupported(f"'{first}' is '{second}' elsewhere")
        value = here - place - SIZE
        return f"rel:{'-' if value < 0 else ''}{abs(value):#x}"

    return _HEX.sub(distance, first)


def _instruction(key: int, text: str) -> Instruction:
    rest, guard = text, None
    if match := _GUARD.match(text):
        guard = Register(match[2], -1 if match[3] == "T" else int(match[3]), match[1])
        rest = text[match.end() :]
    name, _, tail = rest.partition(" ")
    opcode, *modifiers = name.split(".")
    if not re.fullmatch(r"[A-Z][A-Z0-9_]*", opcode):
        raise Unsupported(f"instruction '{text}' ({key:#034x})")
    operands = tuple(_operand(part) for part in split(tail))
    return Instruction(0, key, text, guard, opcode, tuple(modifiers), operands)


def _operand(text: str) -> Operand:
    found = parse(text.replace("rel:", "", 1))
    if "rel:" not in text:
        return found
    if isinstance(found, Immediate | Target):
        return replace(found, relative=True)
    raise Unsupported(f"operand '{text}'")
