"""Builds shared libraries of the host: dynamic symbols, fat binaries, lists of names."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from helpers.cubin_builder import EHDR, SHDR
from helpers.fatbin_builder import PTX, container, entry

SYM = struct.Struct("<IBBHQQ")
RELA = struct.Struct("<QIIq")
FUNC, OBJECT = 0x12, 0x11  # global
# Ends of the names of sections .nvHR.., which list the kernels and variables that host code uses.
LISTS = ("KE", "KI", "DE", "DI", "CE", "CI")
SHT_PROGBITS, SHT_STRTAB, SHT_RELA, SHT_DYNAMIC, SHT_NOBITS, SHT_DYNSYM = 1, 3, 4, 6, 8, 11


@dataclass
class SharedLibrary:
    """The contents of a shared library; `modules` are pairs of an id and a cubin.

    `closed` are ids of modules whose registration the library defines; others are open. `hidden`
    are ids of modules whose wrapper other files do not see. `words` are texts in front of the ids
    in `__nv_module_id`, `imports` functions of other files. `linked` are ids of modules of other
    libraries that its device link contains. `with_ptx` adds PTX to the code of each module.

    `kernels` are names for the list of used kernels. `symbolic` sets DF_SYMBOLIC, `interposable`
    lets other files replace the registration functions. With `kept_lists` each list of names has
    an empty name for each module. `sm` is the architecture of the code, `machine` the ELF machine
    number. `ids` replaces the contents of `__nv_module_id`, and `nobits` makes the section of
    device code SHT_NOBITS. `damage` names a section that gets an impossible size, or is `name` for
    damaged names of symbols. `extra` are more sections: name and contents.
    """

    modules: Sequence[tuple[str, bytes]] = ()
    kernels: Sequence[str] = ()
    closed: Sequence[str] = ()
    hidden: Sequence[str] = ()
    words: Sequence[str] = ()
    exports: Sequence[str] = ("lib_function",)
    imports: Sequence[str] = ("__cudaUnregisterFatBinary",)
    linked: Sequence[str] = ()
    symbolic: bool = False
    interposable: bool = True
    kept_lists: bool = True
    sm: int = 80
    machine: int = 62
    ids: Sequence[str] | None = None
    nobits: bool = False
    damage: str = ""
    with_ptx: bool = False
    extra: Sequence[tuple[str, bytes]] = field(default_factory=tuple)

    def build(self) -> bytes:
        """Return the bytes of the library."""
        strings = b"\0"
        symbols = [bytes(24)]
        relocations = b""

        def symbol(name: str, section: int, info: int = FUNC) -> None:
            """Add a dynamic symbol; section 0 is an undefined one."""
            nonlocal strings
            symbols.append(SYM.pack(len(strings), info, 0, section, 0x1000 if section else 0, 8))
            strings += name.encode() + b"\0"

        symbol("_init", 1)
        for name in self.exports:
            symbol(name, 1)
        for name in self.imports:
            symbol(name, 0)
        for name, _ in self.modules:
            closed = name in self.closed
            symbol(f"__cudaRegisterLinkedBinary{name}", int(closed))
            if self.interposable:
                relocations += RELA.pack(0x2000, 7, len(symbols) - 1, 0)
            if name not in self.hidden:
                symbol(f"__fatbinwrap{name}", 1, OBJECT)
        for linked in self.linked:
            symbol(f"__cudaRegisterLinkedBinary{linked}", 1)
        ptx = entry(b".version 8.0\n", self.sm, kind=PTX) if self.with_ptx else b""
        code = b"".join(container(entry(cubin, self.sm) + ptx) for _, cubin in self.modules)
        ids: Sequence[str] = [*self.words, *(f"def {linked}" for linked in self.linked)]
        ids = [*ids, *(name for name, _ in self.modules)] if self.ids is None else self.ids
        dynamic = struct.pack("<4Q", 30, 2 if self.symbolic else 0, 0, 0)
        sections: list[tuple[str, int, bytes, int]] = [
            (".dynsym", SHT_DYNSYM, b"".join(symbols), 2),
            (".dynstr", SHT_STRTAB, strings, 0),
            (".rela.dyn", SHT_RELA, relocations, 1),
            (".dynamic", SHT_DYNAMIC, dynamic, 2),
            (
                "__nv_relfatbin" if code or not self.linked else ".nv_fatbin",
                SHT_NOBITS if self.nobits else SHT_PROGBITS,
                code or b"image",
                0,
            ),
            ("__nv_module_id", SHT_PROGBITS, b"".join(f"{name}\0".encode() for name in ids), 0),
        ]
        for kind in LISTS:
            names = self.kernels if kind == "KE" else ()
            listed = b"".join(f"{name}\0".encode() for name in names)
            sections.append((f".nvHR{kind}", SHT_PROGBITS, listed, 0))
            if self.kept_lists:  # every module adds an empty name at least
                sections[-1] = (*sections[-1][:2], listed + bytes(len(self.modules)), 0)
        sections += [(name, SHT_PROGBITS, data, 0) for name, data in self.extra]
        return self._file(sections)

    def _file(self, sections: list[tuple[str, int, bytes, int]]) -> bytes:
        """Return the ELF file of these sections: name, type, contents and sh_link of each."""
        names = b"\0"
        table = [bytes(64)]
        body = b""
        for name, kind, data, link in [*sections, (".shstrtab", SHT_STRTAB, b"", 0)]:
            if name == ".shstrtab":
                data = names + b".shstrtab\0"  # noqa: PLW2901 -- its own name comes last
            size = len(data)
            if name == self.damage:
                size = 1 << 40
            if name == ".dynstr" and self.damage == "name":
                size = 1
            table.append(SHDR.pack(len(names), kind, 2, 0, 64 + len(body), size, link, 0, 8, 0))
            names += name.encode() + b"\0"
            body += data + bytes(-len(data) % 8)
        ident = b"\x7fELF\2\1\1" + bytes(9)
        header = EHDR.pack(
            ident, 3, self.machine, 1, 0, 0, 64 + len(body), 0, 64, 0, 0, 64, len(table),
            len(table) - 1,
        )  # fmt: skip
        return header + body + b"".join(table)
