/* Names of section families, for `stem_size` of sectioncolumns.pxd; and a change of byte order. */
#ifndef PYLINK_FLEET_SECTIONCOLUMNS_H
#define PYLINK_FLEET_SECTIONCOLUMNS_H

#include <stdint.h>

/* Return the number whose bytes in memory are those of `value` in big-endian order. */
static inline uint64_t pylink_big_endian(uint64_t value) {
    return __builtin_bswap64(value);
}

/* Families whose sections have suffixes, such as `.text.F` and `.nv_debug_ptx_txt.HASH`, except for
   the numbered constant banks (`.nv.constant0.F`), which `stem_size` finds itself. */
static const char* const pylink_stems[] = {
    ".text",
    ".nv.info",
    ".nv.shared",
    ".nv.local",
    ".nv_debug_ptx_txt",
    ".nv.resolvedrela",
    ".nv.constant.optimizer",
};

#endif
