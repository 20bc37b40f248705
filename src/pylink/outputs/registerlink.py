"""The header of --register-link-binaries, which registers every object that was linked."""

from __future__ import annotations

from pylink.diagnostics.stream import to_bytes
from pylink.files.atomic import write_text
from pylink.files.workdir import working_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pylink.diagnostics import Sink


# Refers to a symbol of a library, so that the host linker does not omit the library.
REFERENCE_TO_LIBRARY = """\
extern const char {anchor};
__attribute__((used)) static const void* const volatile keep{id} = &{anchor};
"""
# Registers a module whose wrapper (the symbol of its code) is hidden in its library: the library
# passes the wrapper as an argument.
REGISTER_FOR_LIBRARY = """\
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
# A callback that does nothing, for a module that another file registers, too. The module's own
# callback gets the image of that file.
EMPTY_CALLBACK = """\
static void lend_nothing(void **) {}
"""
# Registers the code of a lent module, i.e. one that another file registers, too.
REGISTER_LENT = """\
extern const __fatBinC_Wrapper_t __fatbinwrap{id};
static __attribute__((constructor)) void lend{id}(void)
{{
  __cudaRegisterLinkedBinary(&__fatbinwrap{id}, lend_nothing, 0);
}}
"""
# Tells whether the program or library made with this header contains a module: then its section
# __nv_module_id has the module's id.
CONTAINS_MODULE = """\
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
# Registers a module that may be in the program or library made with this header, or in another
# library that registers it. The function is hidden. 9 is the length of "def lend ".
REGISTER_OPTIONAL = """\
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
    """Return the text of the header; `listed` are module ids (marked True) and file names (False).

    A file's identifier is its absolute path (relative paths start at `directory`, dots and links
    stay), with an underscore for every byte that is not an ASCII letter or digit. `anchors` has the
    ids of modules whose wrapper is hidden in a library, each with the name of a symbol that the
    library exports, or an empty name. `lent` has the ids of modules that other files register, too.
    `optional` has the ids in `listed` that another file registers, too. If the program or library
    made with this header contains such a module, it is registered with its own callback, else like
    a lent one.
    """
    lines = [f"#define NUM_PRELINKED_OBJECTS {len(listed) + len(lent)}\n"]
    if lent or optional:
        lines.append(EMPTY_CALLBACK)
    if optional:
        lines.append(CONTAINS_MODULE)
    lines += [REGISTER_LENT.format(id=name) for name in lent]
    for name, is_id in listed:
        if is_id and name in optional:
            lines.append(REGISTER_OPTIONAL.format(id=name))
            continue
        if is_id and name in anchors:
            anchor = anchors[name]
            lines.append(REFERENCE_TO_LIBRARY.format(anchor=anchor, id=name) if anchor else "")
            lines.append(REGISTER_FOR_LIBRARY.format(id=name))
            continue
        identifier = name if is_id else module_id_of_file(name, directory)
        lines.append(f"DEFINE_REGISTER_FUNC({identifier})\n")
    return "".join(lines)


def module_id_of_file(name: str, directory: str) -> str:
    """Return the identifier that replaces the module id of a file without one."""
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
    """Write the header of `register_text`; files are relative to the working directory."""
    text = register_text(listed, working_directory(), anchors, lent, optional)
    write_text(file, text, sink)
