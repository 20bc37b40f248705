/* Names of sections as an index has them. */
#ifndef PYLINK_FLEET_SECTIONCOLUMNS_H
#define PYLINK_FLEET_SECTIONCOLUMNS_H

#include <stdint.h>

static inline uint64_t pylink_big_endian(uint64_t value) {
    return __builtin_bswap64(value);
}
/* How names begin that a file may have several of, up to the dot after which they differ. */
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
