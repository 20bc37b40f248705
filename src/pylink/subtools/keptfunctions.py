"""Keeping functions through LTO: a module that names them in `llvm.used`.

nvJitLink makes whole programs: with -ptx, a function that no kernel of the modules calls is gone,
and every other one is local. What plain cubins of the link call has to stay visible, and so does
what they define, too: only then does the link see the second definition. An entry of `llvm.used`
(NVVM IR specification, reserved global names) says just that. The module only declares functions;
linking the modules resolves the names, also those of kernels and variables. A name that nothing
defines is declared in the PTX, unless it is taken out.
"""

from __future__ import annotations

import re

from pylink.diagnostics.stream import to_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Data layout, triple and version marker are those that the NVVM IR specification asks for.
MODULE = """\
target datalayout = "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-\
f32:32:32-f64:64:64-v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"
target triple = "nvptx64-nvidia-cuda"
{declarations}
@llvm.used = appending global [{count} x i8*] [{references}], section "llvm.metadata"
!nvvmir.version = !{{!0}}
!0 = !{{i32 2, i32 0}}
"""

# What becomes of a name that no module defines or uses. A function without arguments and result
# that is used but not defined has the same declaration.
DECLARATION = re.compile(rb"^\.extern \.func ([\w$%]+)\n\(\)\n;\n", re.MULTILINE)
WORD = re.compile(rb"[\w$%]+")


def keep_source(names: Sequence[str]) -> str:
    """NVVM IR that keeps the functions called so; an empty text for no names."""
    if not names:
        return ""
    quoted = [quote(name) for name in names]
    return MODULE.format(
        declarations="\n".join(f"declare void @{name}()" for name in quoted),
        count=len(quoted),
        references=", ".join(f"i8* bitcast (void ()* @{name} to i8*)" for name in quoted),
    )


def quote(name: str) -> str:
    """A name as LLVM writes it between quotes."""
    return (
        '"'
        + "".join(
            chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:02X}"
            for byte in to_bytes(name)
        )
        + '"'
    )


def drop_unused(ptx: bytes, names: Iterable[str]) -> bytes:
    """The PTX without declarations of those of the names that nothing in it uses."""
    unused = set(DECLARATION.findall(ptx)).intersection(map(to_bytes, names))
    if not unused:
        return ptx
    unused.difference_update(WORD.findall(DECLARATION.sub(b"", ptx)))
    return DECLARATION.sub(lambda match: b"" if match[1] in unused else match[0], ptx)
