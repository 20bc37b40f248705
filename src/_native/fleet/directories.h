/* Reads the next entry of a directory. */
#ifndef PYLINK_FLEET_DIRECTORIES_H
#define PYLINK_FLEET_DIRECTORIES_H

#include <dirent.h>
#include <errno.h>

/* Return the next entry, or NULL at the end or after a failure. Sets *error to errno or 0. */
static struct dirent* pylink_next_entry(DIR* directory, int* error) {
    errno = 0;
    struct dirent* entry = readdir(directory);
    *error = entry == NULL ? errno : 0;
    return entry;
}

#endif
