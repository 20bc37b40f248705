"""Plain Python statement of the kernel code rewriting of sm_100 and later, to compare the kernel with.

`rewrite_exits(image, mode)` follows docs/format-notes/family-c-exits.md step by step and favours
plain data over speed: every position of a function goes through `Code.moved`.
"""

from __future__ import annotations

import struct

MEMBAR = bytes.fromhex("92790000000000000050000000c00f00")
ERRBAR = bytes.fromhex("ab790000000000000000000000c00f00")
CCTL = bytes.fromhex("ab750000000000000000000000ec0f00")
DUMMY_LOAD = bytes.fromhex("84f9ffff000000000008000000")
NOP = bytes.fromhex("18790000000000000000000000c00f00")
BARRIER_RECORD = bytes.fromhex("0111000af8000000000000f800000000")
RECORD_SIZES = {0x01: 16, 0x02: 32, 0x41: 4, 0x42: 4}
CALLS = (0x143, 0x144)
SURFACE_WRITES = (0x19B, 0x19D, 0x19F)
ASYNC_COPIES = (0x1AE,)
MBARRIERS = (0x1A7, 0x1B1, 0x1B2)
# Attributes of instruction offsets: bytes of an entry, which begins with the offset.
OFFSET_LISTS = {
    **dict.fromkeys((0x1C, 0x1D, 0x25, 0x27, 0x28, 0x31, 0x46, 0x57, 0x59, 0x65, 0x6C), 4),
    0x2E: 8,
    0x39: 16,
    0x40: 12,
}


class Section:
    def __init__(self, image: bytes, at: int) -> None:
        self.at = at
        fields = struct.unpack_from("<IIQQQQIIQQ", image, at)
        self.name_at, self.type, self.flags = fields[:3]
        self.offset, self.size, self.link, self.info = fields[4:8]
        self.name = ""
        self.data = b"" if self.type in (8, 0x70000007) else image[self.offset :][: self.size]
        self.changed = False

    def put(self, data: bytes) -> None:
        if data != self.data:
            self.data, self.changed = bytes(data), True


class Code:
    """One kernel's text and capsule, and where each instruction goes."""

    def __init__(self, name: str, text: Section, capsule: Section) -> None:
        self.name, self.text, self.capsule = name, text, capsule
        self.label: list[int] = []  # per old instruction: what a jump to it reaches
        self.own: list[int] = []  # per old instruction: where it went itself
        self.size = text.size

    def moved(self, offset: int) -> int:
        return self.place(offset, self.label)

    def moved_own(self, offset: int) -> int:
        return self.place(offset, self.own)

    def place(self, offset: int, table: list[int]) -> int:
        if offset == self.text.size:
            return self.size
        if offset // 16 >= len(table) or offset < 0:
            return offset
        return table[offset // 16] + offset % 16

    def uses(self, *opcodes: int) -> bool:
        text = self.text.data
        return any((text[i] | text[i + 1] << 8) & 0x1FF in opcodes for i in range(0, len(text), 16))

    def rewrite(self, mode: int) -> bool:
        capsule, text = self.capsule.data, self.text.data
        calls = mode == 2 or self.uses(*CALLS)
        surface = calls or self.uses(*SURFACE_WRITES)
        copies = calls or self.uses(*ASYNC_COPIES)
        barriers = calls or self.uses(*MBARRIERS)
        (slots,) = struct.unpack_from("<I", capsule, 8)
        words = (slots + 31) // 32
        bits = bytearray(capsule[12 : 12 + 4 * words])
        at, offset = 12 + 4 * words, 0
        records: list[bytes] = []
        code: list[bytes] = []
        sources: list[int] = []  # old offset of each new instruction, -1 for inserted ones
        for slot in range(slots):
            start, count = at, 1
            if not bits[slot // 8] >> slot % 8 & 1:
                head = capsule[at]
                if head & 0x70 == 0x50:
                    count = struct.unpack_from("<H", capsule, at)[0] >> 7
                    at += 2
                    head = capsule[at] if head & 15 else 0
                at += RECORD_SIZES[head] if head else 0
            record = capsule[start:at]
            if slot == slots - 1:
                if offset + 16 * count != len(text):
                    raise ValueError(f"{self.capsule.name}: counts do not add up to the text")
                count, record = 1, b""
            old = [(text[i:][:16], i) for i in range(offset, offset + 16 * count, 16)]
            new = old
            if is_exit(old[-1][0]):
                if mode and (not record or record[2:6] == BARRIER_RECORD[:4]):
                    predicate = old[-1][0][1] & 0xF0
                    bits[slot // 8] &= ~(1 << slot % 8)
                    wanted = [MEMBAR, ERRBAR, CCTL] if surface else [ERRBAR, CCTL]
                    had = {word[0][0:1] + word[0][1:2]: word for word in old}
                    new = []
                    for word in wanted:
                        word = guard(word, predicate)
                        new.append(had.get(word[:2], (word, -1)))
                    new.append(old[-1])
                    if not record and code and code[-1][13] & 0x1E == 4:
                        code[-1] = code[-1][:13] + bytes([code[-1][13] & ~0x1E | 2]) + code[-1][14:]
                    record = struct.pack("<H", 0x51 | len(new) << 7) + (
                        record[2:] or barrier_record(predicate)
                    )
            elif count > 1:
                new = [
                    (word, i)
                    for (word, i), (after, _) in zip(old, [*old[1:], (NOP, 0)], strict=True)
                    if (copies or not word.startswith(DUMMY_LOAD))
                    and (barriers or not (is_membar(word, 0x80) and is_membar(after)))
                ]
                if len(new) == 1:
                    record = record[2:]
                elif new != old:
                    (prefix,) = struct.unpack_from("<H", record)
                    record = struct.pack("<H", prefix & 0x7F | len(new) << 7) + record[2:]
            records.append(record)
            code.extend(word for word, _ in new)
            sources.extend(i for _, i in new)
            offset += 16 * count
        if at != len(capsule):
            raise ValueError(f"{self.capsule.name}: bytes after the last record")
        if sources == list(range(0, offset, 16)):
            return False
        self.own = [-1] * (offset // 16)
        for index, source in enumerate(sources):
            if source >= 0:
                self.own[source // 16] = 16 * index
        after = 0  # end of the last instruction that was there before
        for index, place in enumerate(self.own):
            if place < 0:
                self.own[index] = after
                self.label.append(after)
            else:
                self.label.append(after)
                after = place + 16
        self.size = (16 * len(code) + 0x80 + 127) // 128 * 128
        self.nops = self.size // 16 - len(code)
        for index, source in enumerate(sources):
            if source >= 0:
                code[index] = self.branch(code[index], source + 16, 16 * index + 16)
        self.label.append(16 * len(code))
        self.own.append(16 * len(code))
        self.capsule.put(
            capsule[:12]
            + bytes(bits)
            + b"".join(records)
            + struct.pack("<H", 0x50 | self.nops + 1 << 7)
        )
        self.text.put(b"".join(code) + NOP * self.nops)
        return True

    def branch(self, word: bytes, old: int, new: int) -> bytes:
        value = int.from_bytes(word, "little")
        opcode = value & 0x1FF
        if opcode in (0x144, 0x147, 0x148, 0x149, 0x158):
            low, high = value >> 16 & 0xFF, value >> 34 & (1 << 48) - 1
            distance = 4 * (low | high << 8)
            width = 58
        elif opcode == 0x145:
            distance, width = 4 * (value >> 34 & (1 << 30) - 1), 32
        else:
            return word
        if distance >> width - 1:
            distance -= 1 << width
        if not 0 <= old + distance <= self.text.size:
            return word
        distance = self.moved(old + distance) - new
        if opcode == 0x145:
            value &= ~(((1 << 30) - 1) << 34)
            value |= (distance // 4 & (1 << 30) - 1) << 34
        else:
            value &= ~(0xFF << 16 | ((1 << 48) - 1) << 34)
            value |= (distance // 4 & 0xFF) << 16 | (distance // 4 >> 8 & (1 << 48) - 1) << 34
        return value.to_bytes(16, "little")


def is_exit(word: bytes) -> bool:
    return word[0] == 0x4D and word[1] & 15 == 9


def is_membar(word: bytes, scope: int = -1) -> bool:
    return word[0] == 0x92 and word[1] & 15 == 9 and scope in (-1, word[9])


def guard(word: bytes, predicate: int) -> bytes:
    return word[:1] + bytes([word[1] & 15 | predicate]) + word[2:]


def barrier_record(predicate: int) -> bytes:
    number, negated = predicate >> 4 & 7, predicate >> 7
    byte = (0x1F if number == 7 else number) << 3 | negated
    return BARRIER_RECORD[:4] + bytes([byte]) + BARRIER_RECORD[5:]


def string_at(data: bytes, at: int) -> str:
    return data[at : data.index(0, at)].decode()


class Object:
    def __init__(self, image: bytes) -> None:
        self.image = image
        (at,) = struct.unpack_from("<Q", image, 0x28)
        _, count, names = struct.unpack_from("<HHH", image, 0x3A)
        self.sections = [Section(image, at + 64 * i) for i in range(count)]
        for section in self.sections:
            section.name = string_at(self.sections[names].data, section.name_at)
        self.by_name = {section.name: section for section in self.sections}
        self.symtab = self.by_name[".symtab"]
        strings = self.sections[self.symtab.link].data
        self.symbols = []
        for row in struct.iter_unpack("<IBBHQQ", self.symtab.data):
            self.symbols.append((string_at(strings, row[0]), *row[1:]))
        self.kernels: dict[int, Code] = {}  # by symbol index

    def rewrite_kernels(self, mode: int) -> None:
        for index, (name, info, other, shndx, _, _) in enumerate(self.symbols):
            if info & 15 != 2 or not other & 0x10 or shndx == 0:
                continue
            text = self.sections[shndx]
            capsule = self.by_name[".nv.capmerc" + text.name]
            code = Code(name, text, capsule)
            if code.rewrite(mode):
                self.kernels[index] = code

    def rewrite_symbols(self) -> None:
        data = bytearray(self.symtab.data)
        for index, code in self.kernels.items():
            struct.pack_into("<Q", data, 24 * index + 16, code.size)
        self.symtab.put(bytes(data))

    def rewrite_info(self) -> None:
        for code in self.kernels.values():
            section = self.by_name[f".nv.info.{code.name}"]
            data = bytearray(section.data)
            at = 0
            while at < len(data):
                length, attribute = 4, data[at + 1]
                if data[at] == 4:
                    length += struct.unpack_from("<H", data, at + 2)[0]
                if attribute == 0x34:
                    item = at + 4
                    while item < at + length:
                        offset, other, targets = struct.unpack_from("<III", data, item)
                        struct.pack_into("<I", data, item, code.moved_own(offset))
                        for i in range(targets):
                            (target,) = struct.unpack_from("<I", data, item + 12 + 4 * i)
                            struct.pack_into("<I", data, item + 12 + 4 * i, code.moved(target))
                        item += 12 + 4 * targets
                elif attribute in OFFSET_LISTS:
                    for item in range(at + 4, at + length, OFFSET_LISTS[attribute]):
                        (offset,) = struct.unpack_from("<I", data, item)
                        struct.pack_into("<I", data, item, code.moved_own(offset))
                at += length
            section.put(bytes(data))

    def rewrite_tables(self) -> None:
        """Jump tables in constant bank 2: the words the capsule side has a code relocation for."""
        for code in self.kernels.values():
            table = self.by_name.get(f".nv.constant2.{code.name}")
            words = self.by_name.get(f".nv.merc.rela.nv.constant.optimizer.{code.name}")
            if table is None or words is None:
                continue
            data = bytearray(table.data)
            for offset, info, _ in struct.iter_unpack("<QQq", words.data):
                if info & 0xFFFFFFFF == 0x10008:
                    (value,) = struct.unpack_from("<I", data, offset)
                    struct.pack_into("<I", data, offset, code.moved(value))
            table.put(bytes(data))

    def rewrite_lines(self) -> None:
        for name in (".debug_line", ".nv_debug_line_sass"):
            section = self.by_name.get(name)
            if section is None:
                continue
            rela = self.by_name.get(".rela" + name)
            starts = {}
            for offset, info, _ in struct.iter_unpack("<QQq", rela.data if rela else b""):
                starts[offset] = info >> 32
            lines = Lines(section.data, starts, self.kernels)
            section.put(bytes(lines.out))
            if rela:
                out = b"".join(
                    struct.pack("<QQq", lines.moved[offset], info, addend)
                    for offset, info, addend in struct.iter_unpack("<QQq", rela.data)
                )
                rela.put(out)
            self.move_addends(self.sections.index(section), lines.units)

    def move_addends(self, section: int, moved: dict[int, int]) -> None:
        for rela in self.sections:
            if rela.type != 4:
                continue
            data = bytearray(rela.data)
            for at in range(0, len(data), 24):
                _, info, addend = struct.unpack_from("<QQq", data, at)
                symbol = self.symbols[info >> 32]
                if symbol[1] & 15 == 3 and symbol[3] == section:
                    struct.pack_into("<q", data, at + 16, moved.get(addend, addend))
            rela.put(bytes(data))

    def rewrite_relocations(self) -> None:
        by_section = {id(code.text): code for code in self.kernels.values()}
        for rela in self.sections:
            if rela.type != 4:
                continue
            home = by_section.get(id(self.sections[rela.info]))
            data = bytearray(rela.data)
            for at in range(0, len(data), 24):
                offset, info, addend = struct.unpack_from("<QQq", data, at)
                target = self.kernels.get(info >> 32)
                if home:
                    offset = home.moved_own(offset)
                if target and addend:
                    addend = target.moved(addend)
                struct.pack_into("<QQq", data, at, offset, info, addend)
            rela.put(bytes(data))

    def rewrite_frames(self) -> None:
        section, rela = self.by_name.get(".debug_frame"), self.by_name.get(".rela.debug_frame")
        if section is None or rela is None:
            return
        data = bytearray(section.data)
        for offset, info, _ in struct.iter_unpack("<QQq", rela.data):
            code = self.kernels.get(info >> 32)
            if code is None or info & 0xFFFFFFFF != 2:
                continue
            struct.pack_into("<Q", data, offset + 8, code.moved(*struct.unpack_from("<Q", data, offset + 8)))
            entry = 0
            while True:
                end = entry + 12 + struct.unpack_from("<Q", data, entry + 4)[0]
                if entry < offset < end:
                    break
                entry = end
            at, place, new = offset + 16, 0, 0
            while at < end:
                op = data[at]
                at += 1
                if op == 0x04:
                    place += 4 * struct.unpack_from("<I", data, at)[0]
                    struct.pack_into("<I", data, at, (code.moved(place) - new) // 4)
                    new = code.moved(place)
                    at += 4
                elif op in (0x00, 0x0A, 0x0B):
                    pass
                elif op in (0x0C, 0x05, 0x09):
                    at = skip_leb(data, skip_leb(data, at))
                elif op in (0x06, 0x07, 0x08, 0x0D, 0x0E):
                    at = skip_leb(data, at)
                else:
                    raise ValueError(f".debug_frame: call frame instruction {op:#x}")
        section.put(bytes(data))

    def rewrite_registers(self) -> None:
        section = self.by_name.get(".nv_debug_info_reg_sass")
        if section is None:
            return
        data, at = bytearray(section.data), 0
        codes = {code.name: code for code in self.kernels.values()}
        while at < len(data):
            end = data.index(0, at)
            code = codes.get(data[at:end].decode())
            (count,) = struct.unpack_from("<I", data, end + 1)
            at = end + 5
            for _ in range(count):
                at = data.index(0, at + 4) + 1
                if code:
                    first, last = struct.unpack_from("<II", data, at + 4)
                    struct.pack_into("<II", data, at + 4, code.moved(first), code.moved(last))
                at += 12
        section.put(bytes(data))

    def file(self) -> bytes:
        out = bytearray(self.image)
        for section in self.sections:
            if section.changed:
                out += bytes(-len(out) % 128)
                struct.pack_into("<QQ", out, section.at + 24, len(out), len(section.data))
                out += section.data
        return bytes(out)


def skip_leb(data: bytes, at: int) -> int:
    while data[at] & 0x80:
        at += 1
    return at + 1


def read_uleb(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if not data[at - 1] & 0x80:
            return value, at


def read_sleb(data: bytes, at: int) -> tuple[int, int]:
    value, end = read_uleb(data, at)
    return (value - (1 << 7 * (end - at)) if data[end - 1] & 0x40 else value), end


def sleb(value: int) -> bytes:
    out = bytearray()
    while not -64 <= value < 64:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value & 0x7F])


class Lines:
    """One line number program section, re-encoded sequence by sequence."""

    def __init__(self, data: bytes, starts: dict[int, int], kernels: dict[int, Code]) -> None:
        self.data, self.starts, self.kernels = data, starts, kernels
        self.out = bytearray()
        self.moved: dict[int, int] = {}  # relocation offsets
        self.units: dict[int, int] = {}  # unit offsets
        at = 0
        while at < len(data):
            at = self.unit(at)

    def unit(self, at: int) -> int:
        data = self.data
        length, _, header = struct.unpack_from("<IHI", data, at)
        end, program, unit = at + 4 + length, at + 10 + header, len(self.out)
        self.units[at] = unit
        for offset in self.starts:
            if at <= offset < program:
                self.moved[offset] = offset - at + unit
        self.out += data[at:program]
        # minimum_instruction_length, default_is_stmt, line_base, line_range, opcode_base
        self.step, _, self.base, self.range, self.first = struct.unpack_from("<BBbBB", data, at + 10)
        self.operands = data[at + 15 :][: self.first - 1]
        at = program
        while at < end:
            at = self.sequence(at, end)
        struct.pack_into("<I", self.out, unit, len(self.out) - unit - 4)
        return end

    def sequence(self, at: int, end: int) -> int:
        code = None
        address = new = line = row = 0
        while at < end:
            start, op = at, self.data[at]
            at += 1
            emit = False
            if op >= self.first:
                address += (op - self.first) // self.range * self.step
                line += self.base + (op - self.first) % self.range
                emit = True
            elif op == 0:
                length, at = read_uleb(self.data, at)
                at += length
                kind = self.data[at - length]
                if kind == 1:
                    place = code.moved(address) if code else address
                    self.out += b"\x02" + sleb((place - new) // self.step) + b"\x00\x01\x01"
                    return at
                if kind == 2:
                    address = new = 0
                    self.moved[start + 3] = len(self.out) + 3
                    code = self.kernels.get(self.starts.get(start + 3, 0))
                self.out += self.data[start:at]
            elif op == 1:
                emit = True
            elif op == 2:
                value, at = read_uleb(self.data, at)
                address += value * self.step
            elif op == 3:
                value, at = read_sleb(self.data, at)
                line += value
            elif op in (8, 9):
                raise ValueError(f"line number opcode {op}")
            else:
                for _ in range(self.operands[op - 1]):
                    at = skip_leb(self.data, at)
                self.out += self.data[start:at]
            if emit:
                place = code.moved(address) if code else address
                self.row((place - new) // self.step, line - row)
                new, row = place, line
        return at

    def row(self, address: int, line: int) -> None:
        special = self.first + line - self.base + self.range * address
        if address and line and self.base <= line < self.base + self.range and special <= 255:
            self.out.append(special)
            return
        if line or not address:
            self.out += b"\x03" + sleb(line)
        if address:
            self.out += b"\x02" + sleb(address)
        self.out.append(1)


def rewrite_exits(image: bytes, mode: int) -> bytes:
    kernels = Object(image)
    kernels.rewrite_kernels(mode)
    if not kernels.kernels:
        return image
    kernels.rewrite_symbols()
    kernels.rewrite_info()
    kernels.rewrite_tables()
    kernels.rewrite_registers()
    kernels.rewrite_frames()
    kernels.rewrite_relocations()
    kernels.rewrite_lines()
    return kernels.file()
