"""What entries of fat binaries say about their LTO-IR: the compiler options that must agree."""

from __future__ import annotations

import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.diagnostics import Sink
    from pylink.inputs.pieces import Piece

FATBIN_MAGIC = b"\x50\xed\x55\xba"
CONTAINER_SIZE = 16

# Options of the compiler before LTO; all modules have to be compiled with the same ones.
SETTINGS = ("-ftz", "-prec_div", "-prec_sqrt", "-fmad")
LINE_INFO = "-generate-line-info"


def is_fatbin(data: bytes) -> bool:
    return data.startswith(FATBIN_MAGIC)


def entry_text(fatbin: bytes) -> str:
    """The options of the first entry, an empty text where it has none or is damaged."""
    try:
        header_size, _, _, block = struct.unpack_from("<IQII", fatbin, CONTAINER_SIZE + 4)
        if not block:
            return ""
        start, size = struct.unpack_from("<II", fatbin, CONTAINER_SIZE + block)
    except struct.error:
        return ""
    if start > header_size or size > header_size - start:
        return ""
    text = fatbin[CONTAINER_SIZE + start : CONTAINER_SIZE + start + size]
    return text.rstrip(b"\0").decode("utf-8", "replace")


def check_entries(modules: Sequence[Piece], sink: Sink) -> None:
    """Refuse modules whose settings differ; say when only some of them have line information."""
    texts = [entry_text(one.data).split() for one in modules if is_fatbin(one.data)]
    seen: dict[str, str] = {}
    for words in texts:
        for word in words:
            name, equals, value = word.partition("=")
            if equals and name in SETTINGS and seen.setdefault(name, value) != value:
                sink.fatal("lto-options-differ", option=name.replace("_", "-"))
    with_lines = [LINE_INFO in words for words in texts]
    if any(with_lines) and not all(with_lines):
        sink.report("lto-line-info")
