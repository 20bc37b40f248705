"""Makes a C header with nvcc's options for the launcher, when the launcher is built.

With this table, the `nvcc` of an overlay (the launcher under this name) recognizes device-link
steps without starting Python.
"""

from __future__ import annotations

from pylink.devicelink.nvccoptions import (
    HOST_DEFAULT,
    HOST_EXCEPT,
    HOST_HIDDEN,
    HOST_PREFIXES,
    HOST_WORDS,
    LEFT,
    LINKED_EXTENSIONS,
    OPTIONS,
    OTHER_OUTPUTS,
)
from pylink.options.table import FLAG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pylink.devicelink.nvccoptions import NvccOption

HEAD = """\
/* Made from src/pylink/devicelink/nvccoptions.py. */
enum {
    NVCC_NOTHING,
    NVCC_LEFT,
    NVCC_DEVICE_LINK,
    NVCC_ENDS,
    NVCC_FORWARDS,
    NVCC_OPTIONS_FILE,
    NVCC_HOST_WORDS
};
struct nvcc_option {
    const char *spelling;
    unsigned char is_flag, joined, use;
};
static const struct nvcc_option NVCC_OPTIONS[] = {
"""
# By long name of an option of nvcc: what the native launcher does for it. Options that are not here
# have NVCC_LEFT if `nvccoptions` leaves their command lines to nvcc (LEFT), else NVCC_NOTHING.
USES = {
    "device-link": "NVCC_DEVICE_LINK",
    "forward-unknown-to-host-compiler": "NVCC_FORWARDS",
    "options-file": "NVCC_OPTIONS_FILE",
    "compiler-options": "NVCC_HOST_WORDS",
    **dict.fromkeys(OTHER_OUTPUTS, "NVCC_ENDS"),
}


def header_text() -> str:
    """Return the text of the C header: an array of nvcc's options, and arrays of strings."""
    lines = [f"    {row}," for option in OPTIONS for row in _spelling_rows(option)]
    texts_of_array = {
        "LINKED": LINKED_EXTENSIONS,
        "HOST_WORDS": HOST_WORDS,
        "HOST_PREFIXES": HOST_PREFIXES,
        "HOST_EXCEPT": HOST_EXCEPT,
        "HOST_VISIBILITY": (HOST_HIDDEN, HOST_DEFAULT),
    }
    arrays = [_array(name, texts) for name, texts in texts_of_array.items()]
    return HEAD + "\n".join([*lines, "    {0, 0, 0, 0}", "};", *arrays, ""])


def _spelling_rows(option: NvccOption) -> Iterator[str]:
    """Yield the rows of an option in C: one for its short and one for its long spelling."""
    use = "NVCC_LEFT" if option.use == LEFT else USES.get(option.long, "NVCC_NOTHING")
    for spelling, joined in ((f"-{option.short}", option.joined), (f"--{option.long}", False)):
        yield f'{{"{spelling}", {int(option.takes == FLAG)}, {int(joined)}, {use}}}'


def _array(name: str, texts: Sequence[str]) -> str:
    """Return the definition of an array of strings in C, which ends with a null."""
    items = ", ".join(f'"{text}"' for text in texts)
    return f"static const char *const {name}[] = {{{items}, 0}};"
