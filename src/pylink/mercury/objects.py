"""One object's Mercury sections, as the three vectors that a comparison walks."""

from __future__ import annotations

from pylink._native.dedup import Vectors
from pylink.mercury.cubin import (
    ATTRIBUTE_SECTION,
    MERCURY_PREFIX,
    SECTION_KIND,
    SYMTAB,
    TARGET_PREFIX,
    MalformedCubin,
    family_of,
    sections_of,
    symbol_table,
)
from pylink.mercury.reasons import show_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import Buffer

    from pylink._native.dedup import Signature
    from pylink._native.elfheaders import Section

    Payload = bytes | memoryview
    Name = bytes | str

# Bits of the keys of headers and targets, which are hashes; a test reduces them, so that keys
# collide.
KEY_MASK = 0xFFFF_FFFF_FFFF_FFFF


def _encode_name(name: Name) -> bytes:
    """Return the bytes of a name: text is encoded as UTF-8, with surrogates for other bytes."""
    return name if isinstance(name, bytes) else name.encode("utf-8", "surrogateescape")


def _freeze_payload(data: Buffer) -> Payload:
    """Return immutable bytes of a buffer: a writable or scattered one is copied."""
    if isinstance(data, bytes):
        return data
    view = memoryview(data)
    if not view.readonly or not view.c_contiguous:
        return bytes(view)
    return view.cast("B")


def _unpickle(
    vectors: tuple[object, ...], families: tuple[str, ...], unlisted: tuple[tuple[str, int], ...]
) -> MercuryObject:
    """Make an object from its pickled state: `vectors` are the arguments of MercuryObject."""
    item = MercuryObject(*vectors)  # type: ignore[arg-type]
    item.families = families
    item.unlisted = unlisted
    return item


class MercuryObject:
    """The vectors of one object: primary data, section headers, relocation targets.

    `primary` holds payloads; `headers` holds (name, q0, q8, addralign): two qwords and a number of
    which the low 32 bits are compared (in a cubin the section's size, its sh_link and sh_info, and
    its sh_addralign); `targets` holds (name, payload). Names are bytes or text. Raises ValueError
    if a number is out of range.
    """

    __slots__ = (
        "digests", "families", "headers", "name", "primary", "signature_cache", "targets",
        "unlisted", "vectors",
    )  # fmt: skip

    def __init__(
        self,
        primary: Iterable[Buffer] = (),
        headers: Iterable[tuple[Name, int, int, int]] = (),
        targets: Iterable[tuple[Name, Buffer]] = (),
        name: str = "",
    ) -> None:
        self.name = name
        self.primary: tuple[Payload, ...] = tuple(_freeze_payload(data) for data in primary)
        self.headers: tuple[tuple[bytes, int, int, int], ...] = tuple(
            (_encode_name(section), q0, q8, align) for section, q0, q8, align in headers
        )
        self.targets: tuple[tuple[bytes, Payload], ...] = tuple(
            (_encode_name(target), _freeze_payload(data)) for target, data in targets
        )
        # Only cubins have these: the families of the primary entries, and (name, size) of Mercury
        # sections that are never compared.
        self.families: tuple[str, ...] = ()
        self.unlisted: tuple[tuple[str, int], ...] = ()
        self.digests: dict[int, int] = {}  # of primary entries, by row, as far as computed
        self.signature_cache: Signature | None = None
        try:
            self.vectors = Vectors(self.primary, self.headers, self.targets, KEY_MASK)
        except OverflowError as error:
            raise ValueError(
                f"{name or 'object'}: q0, q8 and addralign are unsigned 64-bit numbers"
            ) from error

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle with copies of the payloads, since views cannot be pickled."""
        primary = tuple(map(bytes, self.primary))
        targets = tuple((name, bytes(data)) for name, data in self.targets)
        vectors = (primary, self.headers, targets, self.name)
        return _unpickle, (vectors, self.families, self.unlisted)

    @classmethod
    def from_cubin(cls, data: Buffer, name: str = "") -> MercuryObject:
        """Make the vectors of a cubin's Mercury sections, with the symbols they refer to.

        Payloads are views of `data`, or of one copy if it is writable. Raises MalformedCubin.
        """
        view = memoryview(_freeze_payload(data))
        return cls.from_sections(sections_of(view, name or "cubin"), view, name)

    @classmethod
    def from_sections(
        cls, sections: list[Section], contents: memoryview, name: str
    ) -> MercuryObject:
        """Make the vectors of a file's sections, in order; their offsets are those in `contents`.

        The vectors are empty without Mercury sections that are compared. Raises MalformedCubin.
        """
        file = name or "cubin"
        families = [family_of(section.name) for section in sections]
        compared = [s for s, kind in zip(sections, families, strict=True) if kind is not None]
        targets = [section for section in sections if section.name.startswith(TARGET_PREFIX)]
        for section in compared:
            if section.align > 0xFFFF_FFFF:
                raise MalformedCubin(
                    f"{file}: {show_name(section.name)}: sh_addralign {section.align:#x}"
                )

        def data(section: Section) -> memoryview:
            return contents[section.offset : section.offset + section.stored]

        item = cls(
            [data(section) for section in compared],
            [(s.name, s.size, s.link | s.info << 32, s.align) for s in compared],
            [(section.name, data(section)) for section in targets],
            name,
        )
        item.families = tuple(kind for kind in families if kind is not None)
        item.unlisted = tuple(
            (show_name(s.name), s.size)
            for s, kind in zip(sections, families, strict=True)
            if s.name.startswith(MERCURY_PREFIX)
            and kind is None
            and not s.name.startswith(TARGET_PREFIX)
        )
        if not compared and not targets:
            return item
        symtab = symbol_table(sections, targets, file)
        attributes = [data(section) for section in sections if section.name == ATTRIBUTE_SECTION]
        try:
            item.vectors.attach_symbols(
                data(symtab),
                data(sections[symtab.link]),
                tuple(
                    section.name if kind is not None else None
                    for section, kind in zip(sections, families, strict=True)
                ),
                tuple(sections[target.info].name for target in targets),
                attributes[0] if attributes else b"",
                b"".join(
                    SECTION_KIND.pack(s.type, s.flags, s.entsize, s.stored)
                    for s in (*compared, *targets)
                ),
            )
        except IndexError as error:
            raise MalformedCubin(
                f"{file}: {show_name(SYMTAB)}: a name or a relocation's symbol runs past its table"
            ) from error
        return item

    @property
    def size(self) -> int:
        """Bytes of all payloads; an output loses another number of bytes if the object folds."""
        return self.vectors.size

    @property
    def has_symbols(self) -> bool:
        """Whether the object has a symbol table, as those of cubins do."""
        return self.vectors.has_symbols

    def signature(self) -> Signature:
        """Return the numbers by which references for it are found (`Vectors.signature`); cached."""
        if self.signature_cache is None:
            self.signature_cache = self.vectors.signature()
        return self.signature_cache

    def entry_name(self, row: int) -> str:
        """Return the name of a primary entry's section, or `primary entry N` if it has none."""
        if len(self.headers) == len(self.primary) and row < len(self.headers):
            return show_name(self.headers[row][0])
        return f"primary entry {row}"

    def __repr__(self) -> str:
        return (
            f"MercuryObject({self.name!r}: {len(self.primary)} primary, "
            f"{len(self.headers)} headers, {len(self.targets)} targets)"
        )
