"""Facts about the machine of a measurement, as texts for people and comparisons."""

from __future__ import annotations

import datetime
import os
import platform
import re

from pylink import __version__

_MOUNTS = "/proc/self/mounts"
# A byte of a path in _MOUNTS, in octal. The kernel writes spaces, tabs, newlines, backslashes and
# number signs in this way.
_ESCAPE = re.compile(rb"\\([0-7]{3})")


def facts(directory: str) -> dict[str, str]:
    """Return the facts on which a result depends; `directory` is the directory of the outputs."""
    processor = _field("/proc/cpuinfo", r"^(?:model name|Model|CPU part)\s*:\s*(.*)$")
    memory = _field("/proc/meminfo", r"^MemTotal:\s*([0-9]+) kB")
    flags = _field("/proc/cpuinfo", r"^flags\s*:(.*)$").split()
    pages = re.search(r"\[(\w+)\]", _read("/sys/kernel/mm/transparent_hugepage/enabled"))
    system = platform.uname()
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": f"{processor or system.machine}{', virtual' if 'hypervisor' in flags else ''}",
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{int(memory) / 1e6:.1f} GB" if memory else "unknown",
        "kernel": f"{system.system} {system.release} {system.machine}",
        "large pages": pages[1] if pages else "unknown",
        "file system": _file_system(directory),
        "C library": " ".join(platform.libc_ver()).strip() or "unknown",
        "Python": platform.python_version(),
        "pylink": __version__,
    }


def load() -> float:
    """Return the average number of running and waiting processes in the last minute."""
    return os.getloadavg()[0]


def _file_system(directory: str) -> str:
    """Return the type of the file system of a directory: that of the longest mount point above."""
    path = os.path.realpath(directory)
    best_mount = "", "unknown"  # mount point and type
    for line in _read_bytes(_MOUNTS).split(b"\n")[:-1]:
        _, escaped_point, kind, *_ = line.split(b" ")
        point = os.fsdecode(_ESCAPE.sub(lambda match: bytes([int(match[1], 8)]), escaped_point))
        is_below = path == point or path.startswith(point.rstrip("/") + "/")
        if is_below and len(point) >= len(best_mount[0]):
            best_mount = point, kind.decode()
    return best_mount[1]


def _field(path: str, pattern: str) -> str:
    """Return what the one group of a pattern matches in a file; empty without a match."""
    match = re.search(pattern, _read(path), re.MULTILINE)
    return match[1].strip() if match else ""


def _read(path: str) -> str:
    """Return the text of a file; empty if it cannot be read."""
    return _read_bytes(path).decode(errors="replace")


def _read_bytes(path: str) -> bytes:
    """Return the contents of a file; empty if it cannot be read."""
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except OSError:
        return b""
