/* The program `pylink`: starts the interpreter with no more than a link needs.
 *
 * Beside this program lies `pylink-python`, the same command line as a Python script. Its first
 * line, which installers write, names the interpreter, and the second, of an editable install, the
 * folder of the package. Where that has a bundle for the interpreter that this was compiled for
 * (src/pylink/command/bundle.py), it becomes the main program, without `site` and without what the
 * environment says of Python (-I -S); otherwise the script does.
 *
 * The interpreter would answer an interrupt with a traceback until pylink has told it what to do, so
 * interrupts are held until then (src/pylink/command/program.py).
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
#include <unistd.h>

#include "client.h"

#define SCRIPT "pylink-python"
#define FOLDER "# pylink is in "
#define SITE "../lib/" PYLINK_LIB "/site-packages"
/* As in src/pylink/command/program.py. */
#define NAME "PYLINK_STARTED_AS"
#define HELD "PYLINK_INTERRUPTS_HELD"

/* Whether a file is a whole bundle, in the bytecode of this interpreter. */
static int is_bundle(const char *path) {
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

/* What follows `start` on a line, which is ended there; NULL when the line starts otherwise. */
static char *rest_of(char *line, const char *start) {
    size_t size = strlen(start);
    char *end = strchr(line, '\n');
    if (end == NULL || strncmp(line, start, size) != 0)
        return NULL;
    *end = '\0';
    return line + size;
}

/* Hold interrupts, and say so: who starts a program may have reasons to hold them himself. */
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
static int is_python(const char *line) {
    const char *name = strrchr(line, '/');
    return name && strncmp(name + 1, "python", 6) == 0 && strchr(name, ' ') == NULL;
}

static int fail(const char *what, const char *path) {
    fprintf(stderr, "pylink: cannot %s %s: %s\n", what, path, strerror(errno));
    return 1;
}

int main(int argc, char **argv) {
    static char here[PATH_MAX], script[PATH_MAX + sizeof SCRIPT], bundle[3 * PATH_MAX];
    static char text[2 * PATH_MAX]; /* zeros behind what is read */
    char **words = calloc((size_t)argc + 6, sizeof *words), *slash, *second, *folder, *python, *server;
    ssize_t size = readlink("/proc/self/exe", here, sizeof here - 1);
    int file, n = 0, i, status;
    if (words == NULL || size < 0 || (slash = strrchr(here, '/')) == NULL)
        return fail("read", "/proc/self/exe");
    *slash = '\0';
    snprintf(script, sizeof script, "%s/" SCRIPT, here);
    file = open(script, O_RDONLY | O_CLOEXEC);
    if (file < 0 || read(file, text, sizeof text - 1) < 0)
        return fail("read", script);
    close(file);
    server = getenv(SERVER);
    if (server && *server && argc > 0 && (status = link_by_server(server, script, argc, argv)) >= 0)
        return status;
    second = strchr(text, '\n');
    folder = second ? rest_of(second + 1, FOLDER) : NULL;
    python = rest_of(text, "#!/");
    if (setenv(NAME, argc > 0 ? argv[0] : SCRIPT, 1) != 0 || hold_interrupts() != 0)
        return fail("start", script);
    if (python == NULL || !is_python(--python)) { /* not for us to understand */
        words[n++] = script;
    } else {
        words[n++] = python;
        if (folder)
            snprintf(bundle, sizeof bundle, "%s/pylink/" PYLINK_BUNDLE, folder);
        else
            snprintf(bundle, sizeof bundle, "%s/" SITE "/pylink/" PYLINK_BUNDLE, here);
        if (is_bundle(bundle)) {
            words[n++] = "-I";
            words[n++] = "-S";
            words[n++] = bundle;
        }
        words[n++] = script;
    }
    for (i = 1; i < argc; i++)
        words[n++] = argv[i];
    execv(words[0], words);
    return fail("start", words[0]);
}
