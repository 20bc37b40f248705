"""Keeps functions visible through LTO, by a module that names them in `llvm.used`.

nvJitLink produces whole programs: with -ptx it removes functions that no kernel of the modules
calls, and makes all others local. Functions that plain cubins call must stay visible. Functions
that a cubin also defines must stay visible, too, or the link would not notice the two definitions.
An entry of `llvm.used` (NVVM IR specification, reserved global names) keeps a function visible. The
module only declares functions; linking the modules resolves the names, also those of kernels and
variables. A name that no module defines is declared in the PTX, until `drop_unused` removes it.
"""

from __future__ import annotations

import re

from pylink.diagnostics.stream import to_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# NVVM IR that refers to functions, so that the compiler keeps them. Data layout, triple and version
# marker are required by the NVVM IR specification.
MODULE = """\
target datalayout = "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-\
f32:32:32-f64:64:64-v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"
target triple = "nvptx64-nvidia-cuda"
{declarations}
@llvm.used = appending global [{count} x i8*] [{references}], section "llvm.metadata"
!nvvmir.version = !{{!0}}
!0 = !{{i32 2, i32 0}}
"""

# The declaration of a name that no module defines or uses. A function that is used but not
# defined has the same declaration if it has neither arguments nor result.
DECLARATION = re.compile(rb"^\.extern \.func ([\w$%]+)\n\(\)\n;\n", re.MULTILINE)
# A name or keyword in PTX.
WORD = re.compile(rb"[\w$%]+")


def keep_source(names: Sequence[str]) -> str:
    """Return NVVM IR that keeps functions with these names; empty without names."""
    if not names:
        return ""
    quoted_names = [quote(name) for name in names]
    return MODULE.format(
        declarations="\n".join(f"declare void @{name}()" for name in quoted_names),
        count=len(quoted_names),
        references=", ".join(f"i8* bitcast (void ()* @{name} to i8*)" for name in quoted_names),
    )


def quote(name: str) -> str:
    """Return a name in quotes, with LLVM's escapes."""
    return (
        '"'
        + "".join(
            chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:02X}"
            for byte in to_bytes(name)
        )
        + '"'
    )


def drop_unused(ptx: bytes, names: Iterable[str]) -> bytes:
    """Remove declarations of these names from the PTX, if nothing in it uses them."""
    unused = set(DECLARATION.findall(ptx)).intersection(map(to_bytes, names))
    if not unused:
        return ptx
    unused.difference_update(WORD.findall(DECLARATION.sub(b"", ptx)))
    return DECLARATION.sub(lambda match: b"" if match[1] in unused else match[0], ptx)
