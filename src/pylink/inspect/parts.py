"""The parts of a cubin that can be listed, each with its option, as text and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pylink.diagnostics.stream import printable
from pylink.inspect import document, screen
from pylink.inspect.image import Image


@dataclass(frozen=True)
class Part:
    """One part: `text` formats it for people, `value` for JSON; an empty text is omitted."""

    name: str
    help: str
    text: Callable[[Image], str]
    value: Callable[[Image], object]


PARTS = (
    Part("headers", "ELF header and segments", screen.headers, document.headers),
    Part("sections", "section headers, mercury capsules", screen.sections, document.sections),
    Part("symbols", "symbol tables", screen.symbols, document.symbols),
    Part("relocs", "relocations", screen.relocations, document.relocations),
    Part("info", "records of .nv.info and .nv.compat", screen.info, document.info),
    Part("notes", "notes, with the linker's options", screen.notes, document.notes),
    Part("callgraph", "call graph, prototypes", screen.callgraph, document.callgraph),
)


def image_text(name: str, image: Image, parts: Sequence[Part]) -> str:
    """Return the texts of a cubin's parts that are not empty, under the file's name."""
    texts = [text for text in (part.text(image) for part in parts) if text]
    return "\n".join((f"{printable(name)}\n", *texts))


def image_document(name: str, image: Image, parts: Sequence[Part]) -> dict[str, object]:
    """Return the parts of a cubin as values for JSON, a key for each part."""
    return {"file": name, **{part.name: part.value(image) for part in parts}}
