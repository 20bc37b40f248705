#!/bin/sh
# Device code in C, compiled by clang; a kernel and an archive, linked by pylink into a cubin.
# clang comes with clang-nvlink-wrapper (Debian: clang-tools) and finds the linker in the toolkit.
#
#   pylink toolkit-overlay toolkit --cuda /usr/local/cuda
#   LLVM=/usr/lib/llvm-22/bin ./build.sh toolkit squares.cubin
set -eu
toolkit=$1
cubin=$2
here=$(dirname "$0")
llvm=${LLVM:+$LLVM/}
flags="--target=nvptx64-nvidia-cuda -march=${ARCH:-sm_90} -O2 -nogpulib --cuda-path=$toolkit"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${llvm}clang" $flags -c "$here/square.c" -o "$work/square.o"
"${llvm}llvm-ar" rc "$work/libsquare.a" "$work/square.o"
"${llvm}clang" $flags "$here/kernel.c" -L"$work" -lsquare -o "$cubin"
