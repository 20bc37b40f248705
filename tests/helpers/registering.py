"""Programs and libraries that register modules as device code does, made by a C compiler only.

A module consists of a constructor that calls its registration function, its id, and a symbol in
place of its fat binary. A device link defines the functions and refers to the fat binaries.
"""

from __future__ import annotations

import subprocess
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

COMPILER = (sysconfig.get_config_var("CC") or "cc").split()[0]


@dataclass(frozen=True)
class Code:
    """The contents of a file: host code of `modules`, and a device link of `linked` modules.

    `images` are fat binaries of linked code, `relocatable` those for device links, `exports` names
    of functions, and `extra_ids` further ids in `__nv_module_id`.
    """

    modules: Sequence[str] = ()
    linked: Sequence[str] = ()
    images: Sequence[bytes] = ()
    exports: Sequence[str] = ()
    extra_ids: Sequence[str] = ()
    relocatable: Sequence[bytes] = ()


def source(code: Code, folder: Path, name: str) -> str:
    """Return the C source of a file with these contents."""
    lines = []
    for identifier in dict.fromkeys([*code.modules, *code.linked]):
        lines.append(f"void __cudaRegisterLinkedBinary{identifier}(void);")
        lines.append(f"extern const long __fatbinwrap{identifier};")
    for identifier in code.modules:
        lines += [
            f"const long __fatbinwrap{identifier} = 1;",
            f"__attribute__((constructor)) static void call{identifier}(void) "
            f"{{ __cudaRegisterLinkedBinary{identifier}(); }}",
            _word(identifier),
        ]
    for identifier in code.linked:
        lines += [
            f"void __cudaRegisterLinkedBinary{identifier}(void) {{}}",
            f"const void *part{identifier} = &__fatbinwrap{identifier};",
            _word(f"def {identifier}"),
        ]
    lines += [_word(identifier) for identifier in code.extra_ids]
    for section, containers in ((".nv_fatbin", code.images), ("__nv_relfatbin", code.relocatable)):
        for number, container in enumerate(containers):
            path = folder / f"{name}.{number}{section}"
            path.write_bytes(container)
            lines.append(
                f'__asm__(".pushsection {section},\\"a\\"\\n.incbin \\"{path}\\"\\n.popsection");'
            )
    lines += [f"void {function}(void) {{}}" for function in code.exports]
    return "\n".join([*lines, "int unused;", ""])


def _word(text: str) -> str:
    """Return a statement that adds a string to `__nv_module_id`."""
    return f'__asm__(".pushsection __nv_module_id,\\"a\\"\\n.asciz \\"{text}\\"\\n.popsection");'


def library(folder: Path, name: str, code: Code, *flags: str) -> Path:
    """Return a shared library; `flags` are for the compiler."""
    return _make(folder, name, source(code, folder, name), "-shared", "-fPIC", *flags)


def program(folder: Path, name: str, code: Code, *flags: str) -> Path:
    """Return a program that does nothing."""
    text = source(code, folder, name) + "int main(void) { return 0; }\n"
    return _make(folder, name, text, "-Wl,--unresolved-symbols=ignore-all", *flags)


def _make(folder: Path, name: str, text: str, *flags: str) -> Path:
    """Compile a C source, and return the path of the program or library."""
    (folder / f"{name}.c").write_text(text)
    words = [COMPILER, "-w", f"{name}.c", "-Wl,--no-as-needed", "-L.", *flags, "-o", name]
    subprocess.run(words, cwd=folder, check=True)
    return folder / name
