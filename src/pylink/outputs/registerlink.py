"""The file of --register-link-binaries: a macro call for every object that was linked."""

from __future__ import annotations

from pylink.diagnostics.stream import to_bytes
from pylink.files.atomic import write_output
from pylink.files.workdir import working_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pylink.diagnostics import Sink


# What registers a module whose wrapper only its library sees: the library hands it over. The symbol
# of the library is named so that the linker of the host does not leave the library out.
HIDDEN = """\
extern const char {anchor};
__attribute__((used)) static const void* const volatile keep{id} = &{anchor};
"""
OF_LIBRARY = """\
static const unsigned char def_module_id_str{id}[] \
__attribute__((aligned(1), section("__nv_module_id"))) = "def {id}";
__attribute__((visibility("default"))) void __cudaRegisterLinkedBinary{id}(
  void (*callback)(void **), void *wrapper, void *unused, void (*use)(void *))
{{
  volatile static const unsigned char *p;
  p = def_module_id_str{id};
  use((void *)&p);
  __cudaRegisterLinkedBinary((const __fatBinC_Wrapper_t *)wrapper, callback, 0);
}}
"""
# What lends a module that another file registers: the driver gets its code, and the module's
# own callback goes to the other image.
BORROWED = """\
static void lend_nothing(void **) {}
"""
LENT = """\
extern const __fatBinC_Wrapper_t __fatbinwrap{id};
static __attribute__((constructor)) void lend{id}(void)
{{
  __cudaRegisterLinkedBinary(&__fatbinwrap{id}, lend_nothing, 0);
}}
"""
# What registers a module that may be in the file made of this, or in a library that registers it,
# too. Its id is among those of the file only in the first case. Nobody else sees the function.
CONTAINS = """\
extern const char __start___nv_module_id[] __attribute__((visibility("hidden")));
extern const char __stop___nv_module_id[] __attribute__((visibility("hidden")));
static int contains_module(const char *id)
{
  for (const char *at = __start___nv_module_id; at < __stop___nv_module_id;
       at += __builtin_strlen(at) + 1)
    if (__builtin_strcmp(at, id) == 0)
      return 1;
  return 0;
}
"""
OPTIONAL = """\
extern const __fatBinC_Wrapper_t __fatbinwrap{id};
static const unsigned char lend_module_id_str{id}[] \
__attribute__((aligned(1), section("__nv_module_id"))) = "def lend {id}";
__attribute__((visibility("hidden"))) void __cudaRegisterLinkedBinary{id}(
  void (*callback)(void **), void *, void *, void (*use)(void *))
{{
  volatile static const unsigned char *p;
  p = lend_module_id_str{id};
  use((void *)&p);
  __cudaRegisterLinkedBinary(&__fatbinwrap{id}, callback, 0);
}}
static __attribute__((constructor)) void lend{id}(void)
{{
  if (!contains_module((const char *)lend_module_id_str{id} + 9))
    __cudaRegisterLinkedBinary(&__fatbinwrap{id}, lend_nothing, 0);
}}
"""


def register_text(
    listed: Sequence[tuple[str, bool]],
    directory: str,
    anchors: Mapping[str, str],
    lent: Sequence[str] = (),
    optional: Collection[str] = (),
) -> str:
    """The header text for module ids, marked by True, and names of files.

    A file is known by its absolute path, under `directory` if relative, dots and links as they
    are, in which every byte but ASCII letters and digits is an underscore. `anchors` has the ids
    whose wrapper only their library sees, with a symbol of it, or an empty name; `lent` those of
    modules that other files register, and `optional` those among `listed` that this one registers
    if it contains them.
    """
    lines = [f"#define NUM_PRELINKED_OBJECTS {len(listed) + len(lent)}\n"]
    if lent or optional:
        lines.append(BORROWED)
    if optional:
        lines.append(CONTAINS)
    lines += [LENT.format(id=name) for name in lent]
    for name, is_id in listed:
        if is_id and name in optional:
            lines.append(OPTIONAL.format(id=name))
            continue
        if is_id and name in anchors:
            anchor = anchors[name]
            lines.append(HIDDEN.format(anchor=anchor, id=name) if anchor else "")
            lines.append(OF_LIBRARY.format(id=name))
            continue
        identifier = name if is_id else file_identifier(name, directory)
        lines.append(f"DEFINE_REGISTER_FUNC({identifier})\n")
    return "".join(lines)


def file_identifier(name: str, directory: str) -> str:
    """What stands for the module id of a file that has none."""
    path = name if name.startswith("/") else f"{directory}/{name}"
    return "".join(
        chr(byte) if chr(byte).isascii() and chr(byte).isalnum() else "_" for byte in to_bytes(path)
    )


def write_register_file(
    file: str,
    listed: Sequence[tuple[str, bool]],
    sink: Sink,
    *,
    anchors: Mapping[str, str],
    lent: Sequence[str],
    optional: Collection[str],
) -> None:
    """Write the header for what was linked, as `Loaded.registered` and `Libraries` have it."""
    text = register_text(listed, working_directory(), anchors, lent, optional)
    write_output(file, to_bytes(text), sink)
