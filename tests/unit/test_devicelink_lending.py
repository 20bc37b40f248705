"""The object of a device-link step that hands over modules which other files register."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from pylink.devicelink.container import make_container
from pylink.devicelink.hostobject import LENT, OPTIONAL, HostObject, Unit

# Modules `own` and `here` are in the file, `there` and `other` are not.
MODULES = """\
#include <stdio.h>
typedef struct { int magic, version; const char **data; void *filename; } Wrapper;
typedef void (*Callback)(void **);
#define MODULE(id) \\
    static const char *name_##id = #id; \\
    Wrapper __fatbinwrap_##id = {0x466243b1, 1, &name_##id, 0};
#define CONTAINED(id) \\
    static char text_##id[] __attribute__((section("__nv_module_id"), aligned(16))) = "_" #id; \\
    void __cudaRegisterLinkedBinary_##id(Callback, void *, void *, void (*)(void *)); \\
    static void use_##id(void *p) { (void)p; } \\
    static void callback_##id(void **handle) { printf("callback %s\\n", #id); } \\
    __attribute__((constructor)) static void start_##id(void) \\
    { __cudaRegisterLinkedBinary_##id(callback_##id, &__fatbinwrap_##id, text_##id, use_##id); }
MODULE(own) MODULE(here) MODULE(there) MODULE(other)
CONTAINED(own)
CONTAINED(here)
void **__cudaRegisterFatBinary(Wrapper *wrapper)
{
    for (const char ***part = wrapper->filename; *part; ++part)
        printf("has %s\\n", **part);
    return 0;
}
void __cudaRegisterFatBinaryEnd(void **handle) { printf("end\\n"); }
void __cudaUnregisterFatBinary(void **handle) { printf("unregister\\n"); }
"""
MAIN = "int main(void) { return 0; }\n"
MACHINES = {
    "X86_64": ("gcc", []),
    "AARCH64": ("aarch64-linux-gnu-gcc", ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"]),
}
UNITS = [
    Unit("_own"),
    Unit("_here", role=OPTIONAL),
    Unit("_there", role=OPTIONAL),
    Unit("_other", role=LENT),
]


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("machine", MACHINES)
def test_each_module_is_handed_over_once(tmp_path: Path, machine: str, shared: bool) -> None:
    compiler, emulator = MACHINES[machine]
    if shutil.which(compiler) is None or (emulator and shutil.which(emulator[0]) is None):
        pytest.skip("needs a compiler for aarch64: apt install g++-aarch64-linux-gnu qemu-user")
    container = make_container([])
    (tmp_path / "made.o").write_bytes(b"".join(HostObject(UNITS, machine).pieces(container)))
    (tmp_path / "modules.c").write_text(MODULES)
    (tmp_path / "main.c").write_text(MAIN)
    library = [compiler, "-w", "-fPIC", "-shared", "made.o", "modules.c", "-o", "libmodules.so"]
    inputs = ["-Wl,--no-as-needed", "libmodules.so", "-Wl,-rpath,."] if shared else []
    inputs = inputs or ["made.o", "modules.c"]
    for command in ([library] if shared else []) + [[compiler, "-w", "main.c", *inputs]]:
        subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run(
        [*emulator, "./a.out"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    lines = done.stdout.splitlines()
    assert sorted(lines[:4]) == ["has here", "has other", "has own", "has there"]
    assert sorted(lines[4:6]) == ["callback here", "callback own"]
    assert lines[6:] == ["end", "unregister"]


def test_only_this_file_sees_the_registration_of_a_module_that_may_be_elsewhere(
    tmp_path: Path,
) -> None:
    container = make_container([])
    (tmp_path / "made.o").write_bytes(b"".join(HostObject(UNITS, "X86_64").pieces(container)))
    said = subprocess.run(
        ["readelf", "-sW", "made.o"], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout
    seen = {line.split()[-1]: line.split()[5] for line in said.splitlines() if "GLOBAL" in line}
    registrations = {name: seen[name] for name in seen if "RegisterLinkedBinary" in name}
    assert registrations == {
        "__cudaRegisterLinkedBinary_own": "DEFAULT",
        "__cudaRegisterLinkedBinary_here": "HIDDEN",
        "__cudaRegisterLinkedBinary_there": "HIDDEN",
    }
