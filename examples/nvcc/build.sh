#!/bin/sh
# A program of two files, compiled and linked by one nvcc command; pylink links the device code.
#
#   pylink toolkit-overlay toolkit --cuda /usr/local/cuda
#   ./build.sh toolkit squares
set -eu
toolkit=$1
program=$2
here=$(dirname "$0")
exec "$toolkit/bin/nvcc" -rdc=true -arch="${ARCH:-sm_90}" "$here/main.cu" "$here/square.cu" -o "$program"
