"""Rewritten kernels of real cubins against the kernels in what nvlink makes of those cubins."""

from __future__ import annotations

import struct

import pytest
from helpers import oracle
from helpers.exits_native import rewrite_exits
from helpers.exits_reference import Object

pytestmark = oracle.needs_oracle

PLAIN = """
extern __device__ float other(float);
extern "C" __global__ void guard(float* o, const float* a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) o[i] = a[i] * 2;
}
extern "C" __global__ void loops(int* o, int n, int m) {
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < m; j++) {
      if (o[i * m + j] < 0) {
        if (o[j] > i) return;
        o[j] = i;
      } else if (o[i] == m) {
        break;
      }
    }
    __threadfence();
    if (o[i] == 4) { o[1] = 3; return; }
  }
  __syncthreads();
  o[0] = __shfl_xor_sync(~0u, o[1], 3);
}
extern "C" __global__ void cases(int* o, int n, int m) {
  switch (o[threadIdx.x]) {
    case 0: o[1] = n; break;
    case 1: atomicAdd_system(o, 2); __threadfence_system(); break;
    case 2: return;
    case 3: o[n] = __ffs(o[n]); if (o[m]) return; break;
    case 4: o[m] = __popc(o[m]); break;
    case 5: o[2] = m; return;
  }
  o[0] = 1;
}
extern "C" __global__ void initialises(int* o, int n) {
  __shared__ unsigned long long b;
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
               :: "r"((unsigned)__cvta_generic_to_shared(&b)), "r"(n));
  if (n < 4) return;
  o[0] = n * 3;
}
extern "C" __global__ void caller(float* o, int n) {
  if (n == 3) return;
  __threadfence();
  o[0] = other(o[1]);
}
extern "C" __global__ void surface(cudaSurfaceObject_t s, int n) {
  if (n == 3) return;
  surf2Dwrite<int>(n, s, n * 4, 1);
}
// An EXIT with two predicates.
extern "C" __global__ void leaves(float* r, const float* p, bool f) {
  float d = p[threadIdx.x];
  if (d != 123 && f) return;
  r[threadIdx.x] = d * 2;
}
// On sm_110 ptxas leaves out the line of each `min` here, and keeps the advance that led to it.
extern "C" __global__ void clamps(unsigned* p, unsigned n) {
  p[0] = min(p[1], 3u);
  p[2] = p[n];
  if (p[5] > 3) p[n] = min(p[4], n);
  p[3] = p[4];
}
"""
DEBUG = """
__device__ float other(float x) { return x * x; }
extern "C" __global__ void debugged(float* o, int n) {
  if (n > 5) {
    for (int k = 0; k < n; k++) { o[k] += 1; if (o[k] > 4) return; }
  }
  o[3] = other(o[2]);
}
extern "C" __global__ void leaf(float* o) { o[0] = 1; }
"""
SCOREBOARDS = 0xFFF << 110  # nvlink numbers them anew


def relocated(file: Object, text: str) -> set[int]:
    rela = file.by_name.get(".rela" + text)
    return {row[0] for row in struct.iter_unpack("<QQq", rela.data if rela else b"")}


def instructions(file: Object, text: str, without: set[int]) -> list[int]:
    """Instructions without scoreboards; 0 for those at offsets that relocations change."""
    data = file.by_name[text].data
    words = [int.from_bytes(data[i : i + 16], "little") for i in range(0, len(data), 16)]
    return [0 if 16 * i in without else word & ~SCOREBOARDS for i, word in enumerate(words)]


def sequences(file: Object, section: str) -> dict[str, bytes]:
    """The line program of each function, without its address."""
    rela = file.by_name.get(".rela" + section)
    if rela is None:
        return {}
    data = file.by_name[section].data
    ends, at = [], 0
    while at < len(data):
        at += 4 + struct.unpack_from("<I", data, at)[0]
        ends.append(at)
    rows = list(struct.iter_unpack("<QQq", rela.data))
    ends += [row[0] - 3 for row in rows]
    found = {}
    for start, info, _ in rows:
        found[file.symbols[info >> 32][0]] = data[start + 8 : min(e for e in ends if e > start)]
    return found


def call_frames(file: Object) -> dict[str, bytes]:
    """Length and call frame program of each function."""
    rela = file.by_name.get(".rela.debug_frame")
    if rela is None:
        return {}
    data = file.by_name[".debug_frame"].data
    found = {}
    for start, info, _ in struct.iter_unpack("<QQq", rela.data):
        if info & 0xFFFFFFFF == 2 and file.symbols[info >> 32][1] & 15 == 2:
            (length,) = struct.unpack_from("<Q", data, start - 16)
            found[file.symbols[info >> 32][0]] = data[start + 8 : start - 8 + length]
    return found


@pytest.mark.parametrize("arch", ["100", "103", "110", "120"])
@pytest.mark.parametrize("option", [(), ("-g",), ("-r",)], ids=["plain", "g", "r"])
@pytest.mark.parametrize("flags", [("-lineinfo",), ("-G",)], ids=["lineinfo", "G"])
@pytest.mark.parametrize("debug", [False, True], ids=["release", "debug"])
def test_kernels_equal_those_of_nvlink(
    arch: str, option: tuple[str, ...], flags: tuple[str, ...], debug: bool
) -> None:
    inputs = [
        oracle.compile(PLAIN, arch, flags),
        oracle.compile(DEBUG, arch, ("-G",) if debug else ()),
    ]
    linked = oracle.link(inputs, arch, option).image
    assert linked is not None
    output = Object(linked)
    barriers = debug or flags == ("-G",)
    mode = 2 if "-g" in option or "-r" in option else int(barriers)
    alone = "-r" in option and not barriers
    kernels = 0
    for image in inputs:
        file = Object(image if alone else rewrite_exits(image, mode))
        for name, _, other, section, _, size in file.symbols:
            if not other & 0x10:
                continue
            kernels += 1
            text = file.sections[section].name
            gone = relocated(file, text)
            assert instructions(file, text, gone) == instructions(output, text, gone), name
            assert size == len(output.by_name[text].data), name
            if not gone:
                ours, theirs = (side.by_name[".nv.capmerc" + text].data for side in (file, output))
                assert ours[4:] == theirs[4:], name
        for lines in (".debug_line", ".nv_debug_line_sass"):
            programs = sequences(output, lines)
            for name, program in sequences(file, lines).items():
                assert program == programs[name], (lines, name)
        frames = call_frames(output)
        for name, frame in call_frames(file).items():
            assert frame == frames[name], name
    assert kernels == 10
