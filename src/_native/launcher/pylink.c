/* The program `pylink`: starts the interpreter with no more than a link needs.
 *
 * Beside this program lies `pylink-python`, the same command line as a Python script. Its first
 * line, which installers write, names the interpreter, and the second, of an editable install, the
 * directory of the package. The main program is the bundle of it for the interpreter that this was
 * compiled for (src/pylink/startup/bundle.py has the places), without `site` and without what the
 * environment says of Python (-I -S). Without a bundle it is the script.
 *
 * The interpreter would answer an interrupt with a traceback until pylink has set a handler, so
 * interrupts are held until then (src/pylink/startup/program.py).
 */
#define _GNU_SOURCE /* struct ucred, stpcpy */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client.h"
#include "fatbinary.h"
#include "usercache.h"
#include "autoserver.h"
#include "nvcc.h"

#ifndef SELF
#define SELF "/proc/self/exe"
#endif

#define SCRIPT "pylink-python"
#define DIRECTORY_NOTE "# pylink is in "
/* Places of installed packages, below the directory that has `bin`: some distributions have places
 * of their own. */
static const char* const sites[] = {
    "lib/" PYLINK_LIB "/site-packages",
    "lib64/" PYLINK_LIB "/site-packages",
    "lib/" PYLINK_LIB "/dist-packages",
};
/* The names of src/pylink/startup/program.py. */
#define NAME "PYLINK_STARTED_AS"
#define HELD "PYLINK_INTERRUPTS_HELD"

/* Whether a file is a whole bundle, in the bytecode of this interpreter. */
static int is_bundle(const char* path) {
    static const unsigned char magic[4] = PYLINK_MAGIC;
    unsigned char head[16];
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC), good;
    if (file < 0)
        return 0;
    good = read(file, head, sizeof head) == (ssize_t)sizeof head && fstat(file, &status) == 0 &&
           memcmp(head, magic, sizeof magic) == 0 &&
           (head[12] | head[13] << 8 | head[14] << 16) == status.st_size;
    close(file);
    return good;
}

/* Whether the bundle of a file name that ends the path of the package is one; if so, the path is it. */
static int find_in(char* path, size_t end, const char* name) {
    strcpy(path + end, name);
    return is_bundle(path);
}

/* Find the best bundle of the package in the directory `package`; 0 without one. */
static int find_bundle(const char* package, char* path, size_t room) {
    size_t end = strlen(package);
    if (end + 64 > room)
        return 0;
    memcpy(path, package, end);
    if (find_in(path, end, "/__pycache__/" PYLINK_BUNDLE) || open_cached(package, path, room))
        return 1;
    memcpy(path, package, end);
    return find_in(path, end, "/startup/" PYLINK_SHIPPED);
}

/* Find the directory of the package, which lies in `directory`, or beside that of this program. */
static int find_package(const char* directory, const char* here, char* package, size_t room) {
    struct stat status;
    const char* slash = strrchr(here, '/');
    size_t i;
    if (directory)
        return snprintf(package, room, "%s/pylink", directory) < (int)room &&
               stat(package, &status) == 0;
    for (i = 0; slash && i < sizeof sites / sizeof *sites; i++)
        if (snprintf(package, room, "%.*s/%s/pylink", (int)(slash - here), here, sites[i]) <
                (int)room &&
            stat(package, &status) == 0)
            return 1;
    return 0;
}

/* Cut a line off and return the rest after `start`; NULL when the line starts otherwise. */
static char* rest_of(char* line, const char* start) {
    size_t size = strlen(start);
    char* end = strchr(line, '\n');
    if (end == NULL || strncmp(line, start, size) != 0)
        return NULL;
    *end = '\0';
    return line + size;
}

/* Hold interrupts, and say so: the parent of a program may have reasons to hold them. */
static int hold_interrupts(void) {
    sigset_t interrupts, before;
    sigemptyset(&interrupts);
    sigaddset(&interrupts, SIGINT);
    if (sigprocmask(SIG_BLOCK, &interrupts, &before) != 0 || sigismember(&before, SIGINT))
        return unsetenv(HELD);
    return setenv(HELD, "1", 1);
}

/* Whether the rest of a first line is an interpreter of Python by itself, to be started with words
 * of ours: it may be a shell's that starts one, or have words. */
static int is_python(const char* line) {
    const char* name = strrchr(line, '/');
    return name && strncmp(name + 1, "python", 6) == 0 && strchr(name, ' ') == NULL;
}

static int fail(const char* what, const char* path) {
    fprintf(stderr, "pylink: cannot %s %s: %s\n", what, path, strerror(errno));
    return 1;
}

/* The path of this program without links, in a place of PATH_MAX bytes; 0, or -1 if nothing says
 * it. There may be no /proc, as in a small chroot; the kernel hands over the path that was started,
 * too. */
static int find_program(char* path, size_t room) {
    ssize_t size = readlink(SELF, path, room - 1);
    const char* started;
    if (size >= 0) {
        path[size] = '\0';
        return 0;
    }
    started = (const char*)getauxval(AT_EXECFN);
    return started != NULL && realpath(started, path) != NULL ? 0 : -1;
}

/* The exit status of the link by the server that is asked for, or -1 when there was none. */
static int link_by_server(const char* script, int argc, char** argv) {
    const char* path = getenv(SERVER);
    static char socket[108 + 64];
    int server;
    if (argc <= 0)
        return -1;
    if ((path == NULL || !*path) && is_served_overlay(argv[0]))
        path = AUTO;
    if (path == NULL || !*path)
        return -1;
    if (strcmp(path, AUTO) != 0) {
        server = find_server(path);
    } else {
        if (!find_auto(script, socket, sizeof socket))
            return -1;
        server = find_server(socket);
        if (server < 0)
            start_server(script, socket);
    }
    return server < 0 ? -1 : link_by(server, script, argc, argv);
}

int main(int argc, char** argv) {
    static char here[PATH_MAX], script[PATH_MAX + sizeof SCRIPT];
    static char package[3 * PATH_MAX], bundle[3 * PATH_MAX + 64];
    static char text[2 * PATH_MAX]; /* zeros after what is read */
    char **words = calloc((size_t)argc + 7, sizeof *words), *slash, *second, *directory, *python;
    int file, n = 0, i, status;
    if (words == NULL || find_program(here, sizeof here) != 0 ||
        (slash = strrchr(here, '/')) == NULL)
        return fail("find", argc > 0 ? argv[0] : SCRIPT);
    *slash = '\0';
    if (strcmp(slash + 1, NVCC) == 0) {
        run_nvcc(here, argc, argv);
        return fail("start", "the toolkit's nvcc");
    }
    if (strcmp(slash + 1, FATBINARY) == 0) {
        run_fatbinary(here, argc, argv);
        return fail("start", "the toolkit's fatbinary");
    }
    snprintf(script, sizeof script, "%s/" SCRIPT, here);
    file = open(script, O_RDONLY | O_CLOEXEC);
    if (file < 0 || read(file, text, sizeof text - 1) < 0)
        return fail("read", script);
    close(file);
    if ((status = link_by_server(script, argc, argv)) >= 0)
        return status;
    second = strchr(text, '\n');
    directory = second ? rest_of(second + 1, DIRECTORY_NOTE) : NULL;
    python = rest_of(text, "#!/");
    if (setenv(NAME, argc > 0 ? argv[0] : SCRIPT, 1) != 0 || hold_interrupts() != 0)
        return fail("start", script);
    if (python == NULL || !is_python(--python)) { /* not for us to understand */
        words[n++] = script;
    } else {
        words[n++] = python;
        if (find_package(directory, here, package, sizeof package) &&
            find_bundle(package, bundle, sizeof bundle)) {
            words[n++] = "-I";
            words[n++] = "-S";
            words[n++] = bundle;
            words[n++] = script;
            words[n++] = package;
        } else {
            words[n++] = script;
        }
    }
    for (i = 1; i < argc; i++)
        words[n++] = argv[i];
    execv(words[0], words);
    return fail("start", words[0]);
}
