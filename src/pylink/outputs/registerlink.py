"""The file of --register-link-binaries: a macro call for every object that was linked."""

from __future__ import annotations

from pylink.diagnostics.stream import to_bytes
from pylink.outputs.wholefile import write_output
from pylink.outputs.workdir import working_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.diagnostics import Sink


def register_text(listed: Sequence[tuple[str, bool]], directory: str) -> str:
    """The header text for module ids, marked by True, and names of files.

    A file is known by its absolute path, under `directory` if relative, dots and links as they
    are, in which every byte but ASCII letters and digits is an underscore.
    """
    lines = [f"#define NUM_PRELINKED_OBJECTS {len(listed)}\n"]
    for name, is_id in listed:
        if is_id:
            lines.append(f"DEFINE_REGISTER_FUNC({name})\n")
            continue
        path = name if name.startswith("/") else f"{directory}/{name}"
        identifier = "".join(
            chr(byte) if chr(byte).isascii() and chr(byte).isalnum() else "_"
            for byte in to_bytes(path)
        )
        lines.append(f"DEFINE_REGISTER_FUNC({identifier})\n")
    return "".join(lines)


def write_register_file(file: str, listed: Sequence[tuple[str, bool]], sink: Sink) -> None:
    """Write the header for what was linked, as `Loaded.registered` has it."""
    write_output(file, to_bytes(register_text(listed, working_directory())), sink)
