/* The program `pylink`: starts the interpreter with no more than a link needs.
   
   Beside this program lies `pylink-python`, the same command line as a Python script. Its first
   line, which installers write, names the interpreter. In an editable install, its second line
   names the directory that the package is in. The interpreter runs the package's bundle, one .pyc
   file with many of its modules, as its main program (src/pylink/startup/bundle.py says where that
   lies). It does so without `site` and without variables of the environment for Python (-I -S).
   Without a bundle it runs the script.
   
   Until pylink has set a handler, the interpreter would print a traceback for an interrupt. So
   SIGINT is blocked until then (src/pylink/startup/program.py).
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

#ifndef SELF /* tests set a path that does not exist */
#define SELF "/proc/self/exe"
#endif

#define SCRIPT         "pylink-python"
#define DIRECTORY_NOTE "# pylink is in "
/* Directories of installed packages, relative to the one that has `bin`: distributions differ. */
static const char* const site_directories[] = {
    "lib/" PYLINK_LIB "/site-packages",
    "lib64/" PYLINK_LIB "/site-packages",
    "lib/" PYLINK_LIB "/dist-packages",
};
/* Variables of the environment that src/pylink/startup/program.py reads: the name under which the
   program was started, and a mark that it has blocked SIGINT. */
#define NAME "PYLINK_STARTED_AS"
#define HELD "PYLINK_INTERRUPTS_HELD"

/* Return whether a file is a complete bundle (the modules of every link in one file) for this
   interpreter's bytecode. */
static int is_bundle(const char* path) {
    static const unsigned char magic[4] = PYLINK_MAGIC;
    unsigned char head[HEAD_END];
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC), good;
    if (file < 0)
        return 0;
    good = read(file, head, sizeof head) == (ssize_t)sizeof head && fstat(file, &status) == 0 &&
           memcmp(head + HEAD_MAGIC, magic, sizeof magic) == 0 &&
           size_in_head(head) == status.st_size;
    close(file);
    return good;
}

/* Put `name` after the first `end` bytes of a path, which are the package's directory. Returns
   whether a bundle has that path. */
static int find_named_bundle(char* path, size_t end, const char* name) {
    strcpy(path + end, name);
    return is_bundle(path);
}

/* Set `path`, of `room` bytes, to a bundle of the package in the directory `package`: the one in
   its __pycache__, else the one in the user's cache, else the shipped one. Returns 0 if it has
   none. */
static int find_bundle(const char* package, char* path, size_t room) {
    size_t end = strlen(package);
    if (end + 64 > room) /* longer than each name below */
        return 0;
    memcpy(path, package, end);
    if (find_named_bundle(path, end, "/__pycache__/" PYLINK_BUNDLE) ||
        open_cached(package, path, room))
        return 1;
    memcpy(path, package, end);
    return find_named_bundle(path, end, "/startup/" PYLINK_SHIPPED);
}

/* Set `package`, of `room` bytes, to the directory of the package, which lies in `directory`. If
   that is NULL, it lies in one of `site_directories`. Returns 0 if it is not there. */
static int find_package(const char* directory, const char* program_directory, char* package,
                        size_t room) {
    struct stat status;
    const char* slash = strrchr(program_directory, '/');
    size_t i;
    if (directory)
        return snprintf(package, room, "%s/pylink", directory) < (int)room &&
               stat(package, &status) == 0;
    for (i = 0; slash && i < sizeof site_directories / sizeof *site_directories; i++)
        if (snprintf(package, room, "%.*s/%s/pylink", (int)(slash - program_directory),
                     program_directory, site_directories[i]) < (int)room &&
            stat(package, &status) == 0)
            return 1;
    return 0;
}

/* End a line with a zero instead of its line feed, and return what follows `start` in it; NULL, and
   nothing is changed, if the line does not begin with `start`. */
static char* cut_prefix(char* line, const char* start) {
    size_t size = strlen(start);
    char* end = strchr(line, '\n');
    if (end == NULL || strncmp(line, start, size) != 0)
        return NULL;
    *end = '\0';
    return line + size;
}

/* Block interrupts, and set a variable that says so, unless the parent process blocked them
   already: then pylink must not unblock them. Returns 0 on success. */
static int hold_interrupts(void) {
    sigset_t interrupts, before;
    sigemptyset(&interrupts);
    sigaddset(&interrupts, SIGINT);
    if (sigprocmask(SIG_BLOCK, &interrupts, &before) != 0 || sigismember(&before, SIGINT))
        return unsetenv(HELD);
    return setenv(HELD, "1", 1);
}

/* Return whether `line`, a script's first line without `#!`, is only the path of a Python
   interpreter, so that this program can start it with other arguments. The line may also name a
   shell that starts one, or have arguments. */
static int is_python(const char* line) {
    const char* name = strrchr(line, '/');
    return name && strncmp(name + 1, "python", 6) == 0 && strchr(name, ' ') == NULL;
}

/* Print that an action on a path failed, with the system's reason. Returns the exit status. */
static int fail(const char* action, const char* path) {
    fprintf(stderr, "pylink: cannot %s %s: %s\n", action, path, strerror(errno));
    return 1;
}

/* Set `path`, of `room` (PATH_MAX) bytes, to this program's path without symbolic links. Returns 0,
   or -1 if it cannot be found. /proc may be missing, as in a small chroot; the kernel also passes
   the path that was started (AT_EXECFN). */
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

/* Let a server link if PYLINK_SERVER names one, or if it is empty or not set and the overlay of
   this program uses one. Returns the exit status, or -1 if no server linked. */
static int link_by_server(const char* script, int argc, char** argv) {
    const char* path = getenv(SERVER);
    static char socket[108 + 64]; /* the longest path of a socket, and what find_auto_socket adds */
    int server;
    if (argc <= 0)
        return -1;
    if ((path == NULL || !*path) && is_served_overlay(argv[0]))
        path = AUTO;
    if (path == NULL || !*path)
        return -1;
    if (strcmp(path, AUTO) != 0) {
        server = connect_to_server(path);
    } else {
        if (!find_auto_socket(script, socket, sizeof socket))
            return -1;
        server = connect_to_server(socket);
        if (server < 0)
            start_server(script, socket);
    }
    return server < 0 ? -1 : link_through(server, script, argc, argv);
}

int main(int argc, char** argv) {
    static char program_directory[PATH_MAX], script[PATH_MAX + sizeof SCRIPT];
    static char package[3 * PATH_MAX], bundle[3 * PATH_MAX + 64];
    static char text[2 * PATH_MAX]; /* zeros after what is read */
    char **arguments = calloc((size_t)argc + 7, sizeof *arguments), *slash, *second_line,
         *directory, *python;
    int file, n = 0, i, status;
    if (arguments == NULL || find_program(program_directory, sizeof program_directory) != 0 ||
        (slash = strrchr(program_directory, '/')) == NULL)
        return fail("find", argc > 0 ? argv[0] : SCRIPT);
    *slash = '\0';
    if (strcmp(slash + 1, NVCC) == 0) {
        run_nvcc(program_directory, argc, argv);
        return fail("start", "the toolkit's nvcc");
    }
    if (strcmp(slash + 1, FATBINARY) == 0) {
        run_fatbinary(program_directory, argc, argv);
        return fail("start", "the toolkit's fatbinary");
    }
    snprintf(script, sizeof script, "%s/" SCRIPT, program_directory);
    file = open(script, O_RDONLY | O_CLOEXEC);
    if (file < 0 || read(file, text, sizeof text - 1) < 0)
        return fail("read", script);
    close(file);
    if ((status = link_by_server(script, argc, argv)) >= 0)
        return status;
    second_line = strchr(text, '\n');
    directory = second_line ? cut_prefix(second_line + 1, DIRECTORY_NOTE) : NULL;
    python = cut_prefix(text, "#!/");
    if (setenv(NAME, argc > 0 ? argv[0] : SCRIPT, 1) != 0 || hold_interrupts() != 0)
        return fail("start", script);
    if (python == NULL || !is_python(--python)) { /* the system knows how to start the script */
        arguments[n++] = script;
    } else {
        arguments[n++] = python;
        if (find_package(directory, program_directory, package, sizeof package) &&
            find_bundle(package, bundle, sizeof bundle)) {
            arguments[n++] = "-I";
            arguments[n++] = "-S";
            arguments[n++] = bundle;
            arguments[n++] = script;
            arguments[n++] = package;
        } else {
            arguments[n++] = script;
        }
    }
    for (i = 1; i < argc; i++)
        arguments[n++] = argv[i];
    execv(arguments[0], arguments);
    return fail("start", arguments[0]);
}
