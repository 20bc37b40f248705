/* The next entry of a folder. */
#ifndef PYLINK_FLEET_FOLDERS_H
#define PYLINK_FLEET_FOLDERS_H

#include <dirent.h>
#include <errno.h>

/* NULL at the end, or with the reason in `error`. */
static struct dirent* pylink_next_entry(DIR* folder, int* error) {
    errno = 0;
    struct dirent* entry = readdir(folder);
    *error = entry == NULL ? errno : 0;
    return entry;
}

#endif
