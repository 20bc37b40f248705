"""Kernels and variables in the images of files, and those that several files have."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import dataclass, field

from pylink._native.elfheaders import read_sections
from pylink.facts.elf import SHT_SYMTAB, STB_LOCAL, STO_ENTRY, STT_FUNC, STT_OBJECT
from pylink.facts.objectformats import sm_of_cubin
from pylink.facts.records import SYM
from pylink.inspect.containers import UnreadableFile, parts
from pylink.size.sources import FileSource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pylink.audit.model import LinkedFile
    from pylink.audit.process import Group

# Prefixes of the names of sections with variables.
_VARIABLES = (b".nv.global", b".nv.constant3")
# Limit of the bytes of a container that is unpacked; a larger one is recorded as a fault.
_MOST_CONTAINER_BYTES = 1 << 31


@dataclass
class Symbols:
    """Global names of a cubin: kernels with their code, and variables."""

    kernels: dict[bytes, bytes] = field(default_factory=dict)
    variables: set[bytes] = field(default_factory=set)


@dataclass
class SharedNames:
    """Names of kernels or variables that two files have; `first` is loaded before `second`.

    `differs` means that the code of the kernels differs; it is False for variables.
    """

    first: LinkedFile
    second: LinkedFile
    names: list[str]
    differs: bool = False


def read_symbols(cubin: bytes) -> Symbols:
    """Return the global names of a cubin; empty if the bytes are not a cubin."""
    symbols = Symbols()
    try:
        sections = read_sections(cubin).sections
    except ValueError:
        return symbols
    for table in sections:
        if table.type != SHT_SYMTAB or table.stored < 0 or table.link >= len(sections):
            continue
        names = sections[table.link]
        strings = cubin[names.offset : names.offset + max(names.stored, 0)]
        rows = cubin[table.offset : table.offset + table.stored - table.stored % SYM.size]
        for name, info, other, number, value, size in SYM.iter_unpack(rows):
            end = strings.find(b"\0", name)
            if info >> 4 == STB_LOCAL or not 0 < number < len(sections) or end <= name:
                continue
            section = sections[number]
            if info & 15 == STT_FUNC and other & STO_ENTRY:
                start = section.offset + value
                symbols.kernels[strings[name:end]] = cubin[start : start + size]
            elif info & 15 == STT_OBJECT and section.name.startswith(_VARIABLES):
                symbols.variables.add(strings[name:end])
    return symbols


class DeviceCode:
    """Reads kernels and variables from the images of files; their names are read once."""

    def __init__(self) -> None:
        # By file: what `symbols` returns for it, kernels and variables.
        self._symbols: dict[LinkedFile, tuple[set[bytes], set[bytes]]] = {}

    def symbols(self, file: LinkedFile) -> tuple[set[bytes], set[bytes]]:
        """Return names of the kernels and of the variables in the first cubin of each image."""
        if file not in self._symbols:
            kernels: set[bytes] = set()
            variables: set[bytes] = set()
            for _, symbols in self._cubins(file, every=False):
                kernels.update(symbols.kernels)
                variables |= symbols.variables
            self._symbols[file] = kernels, variables
        return self._symbols[file]

    def code(self, file: LinkedFile, names: set[bytes]) -> dict[bytes, dict[int, bytes]]:
        """Return digests of the code of these kernels: by name, then by SM number."""
        code: dict[bytes, dict[int, bytes]] = defaultdict(dict)
        for sm, symbols in self._cubins(file, every=True):
            for name in names & symbols.kernels.keys():
                code[name][sm] = hashlib.sha256(symbols.kernels[name]).digest()
        return code

    def _cubins(self, file: LinkedFile, *, every: bool) -> Iterator[tuple[int, Symbols]]:
        """Yield SM number and names of each cubin; without `every`, of the first in each image.

        An unreadable image is recorded as a fault of the file.
        """
        source = FileSource(file.path)
        try:
            for container in file.images:
                if container.end - container.start > _MOST_CONTAINER_BYTES:
                    file.add_fault("a fat binary is too large to be unpacked")
                    continue
                data = source.read(container.start, container.end - container.start)
                try:
                    for part in parts(file.path, data):
                        if part.kind == "cubin" and part.data:
                            yield part.arch or sm_of_cubin(part.data), read_symbols(part.data)
                            if not every:
                                break
                except UnreadableFile as error:
                    file.add_fault(str(error).removeprefix(f"{file.path}: "))
        finally:
            source.close()


def find_shared_kernels(groups: Sequence[Group], device: DeviceCode) -> list[SharedNames]:
    """Return the kernels whose host symbol in one file the loader replaces by an earlier file's.

    Two files have up to two results: kernels whose code differs, and kernels with equal code.
    """
    pairs: dict[tuple[LinkedFile, LinkedFile], set[bytes]] = defaultdict(set)
    global_scope: list[LinkedFile] = []
    for group in groups:
        scope = list(dict.fromkeys([*global_scope, *group.members]))
        first_file: dict[bytes, LinkedFile] = {}  # by name of a function
        for file in scope:
            if not file.images:
                continue
            if not file.is_symbolic and file in group.loaded:
                for name in sorted(first_file.keys() & file.functions):
                    pairs[first_file[name], file].add(name)
            for name in file.functions:
                first_file.setdefault(name, file)
        if group.is_global:
            global_scope = scope
    shared_pairs = []
    for (file, other), names in pairs.items():
        kernels = names & device.symbols(file)[0] & device.symbols(other)[0]
        if kernels:
            code, other_code = device.code(file, kernels), device.code(other, kernels)
            for differs in (True, False):
                chosen = sorted(
                    name for name in kernels if (code[name] != other_code[name]) == differs
                )
                if chosen:
                    names_chosen = list(map(decode_name, chosen))
                    shared_pairs.append(SharedNames(file, other, names_chosen, differs))
    return shared_pairs


def find_shared_variables(files: Sequence[LinkedFile], device: DeviceCode) -> list[SharedNames]:
    """Return the variables that several files have.

    Each result has the first file that has them, as `first`, and one of the others.
    """
    first_file: dict[bytes, LinkedFile] = {}  # by name of a variable
    pairs: dict[tuple[LinkedFile, LinkedFile], list[bytes]] = defaultdict(list)
    with_code = [file for file in files if file.images]
    if len(with_code) < 2:
        return []
    for file in with_code:
        for name in sorted(device.symbols(file)[1]):
            other = first_file.setdefault(name, file)
            if other is not file:
                pairs[other, file].append(name)
    return [
        SharedNames(file, other, list(map(decode_name, names)))
        for (file, other), names in pairs.items()
    ]


def decode_name(name: bytes) -> str:
    """Return a symbol's name, or the id of a module, as text for messages."""
    return name.decode("utf-8", "surrogateescape")
