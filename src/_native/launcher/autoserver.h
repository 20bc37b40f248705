/* PYLINK_SERVER=auto: the first link starts a server, and links by itself meanwhile; later ones find
 * it. It has a socket for each user and installation, in a directory of mode 0700 of that user's, and
 * ends when nobody has linked for a while. Whoever gets the lock starts it; the server holds the lock
 * as long as it lives. src/pylink/serve/command.py is the other side.
 */
#include <sys/file.h>
#include <sys/wait.h>

#define AUTO           "auto"
#define MARK           "nvlink.serve" /* beside the nvlink of an overlay: as PYLINK_SERVER=auto */
#define LONGEST_PARENT 45    /* bytes: with the names below it and a suffix a socket has 107 */
#define PAUSE          10    /* seconds until another try, after a server that ended at once */
#define IDLE           "600" /* seconds without links after which it ends */

/* The path of the socket for this user and the installation with this script; 0 if no server may
   run. The directory is created if it does not exist. */
static int find_auto(const char* script, char* path, size_t room) {
    const char* runtime = getenv("XDG_RUNTIME_DIR");
    uid_t user = geteuid();
    struct stat status, installed;
    size_t size;
    if (getuid() != user || getgid() != getegid() || getauxval(AT_SECURE) ||
        stat(script, &installed) != 0)
        return 0;
    if (runtime && *runtime == '/' && strlen(runtime) <= LONGEST_PARENT &&
        stat(runtime, &status) == 0 && status.st_uid == user)
        size = (size_t)snprintf(path, room, "%s/pylink-auto", runtime);
    else
        size = (size_t)snprintf(path, room, "/tmp/pylink-auto-%u", (unsigned)user);
    if (size + 64 > room)
        return 0;
    mkdir(path, 0700);
    if (lstat(path, &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != user ||
        (status.st_mode & 07777) != 0700)
        return 0;
    snprintf(path + size, room - size, "/%llx-%llx", (unsigned long long)installed.st_dev,
             (unsigned long long)installed.st_ino);
    return 1;
}

/* Whether the directory whose path is so long is `bin` of an overlay that has a server. */
static int is_served_directory(const char* directory, size_t size) {
    char path[PATH_MAX + sizeof MARK];
    if (size >= PATH_MAX)
        return 0;
    snprintf(path, sizeof path, "%.*s/" MARK, (int)size, directory);
    return access(path, F_OK) == 0;
}

/* Whether this is the nvlink of an overlay that has a server. */
static int is_served_overlay(const char* started) {
    const char* slash = started ? strrchr(started, '/') : NULL;
    return slash != NULL && strcmp(slash + 1, "nvlink") == 0 &&
           is_served_directory(started, (size_t)(slash - started));
}

/* The lock of a server to be started, or -1: another one has it, or the last one ended at once. */
static int take_lock(const char* path) {
    char name[PATH_MAX];
    struct stat status;
    int lock;
    if (snprintf(name, sizeof name, "%s.lock", path) >= (int)sizeof name)
        return -1;
    lock = open(name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (lock < 0)
        return -1;
    if (flock(lock, LOCK_EX | LOCK_NB) != 0 || fstat(lock, &status) != 0 ||
        (status.st_size && time(NULL) - status.st_mtime < PAUSE) || ftruncate(lock, 0) != 0 ||
        write(lock, "\n", 1) != 1) {
        close(lock);
        return -1;
    }
    return lock;
}

/* Start a server in a process of its own: nothing of this one is left in it but user, limits and
 * environment. */
static void start_server(const char* script, const char* path) {
    int lock = take_lock(path), i, nothing, most;
    sigset_t none;
    pid_t child;
    if (lock < 0)
        return;
    child = fork();
    if (child > 0)
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
            ;
    close(child == 0 ? -1 : lock);
    if (child != 0)
        return;
    if (setsid() < 0 || fork() != 0) /* a parent that ends at once leaves it to the system */
        _exit(0);
    unsetenv(SERVER);
    most = (int)sysconf(_SC_OPEN_MAX);
    nothing = open("/dev/null", O_RDWR);
    for (i = 0; i < 3; i++)
        dup2(nothing, i);
    lock = dup2(lock, 3); /* without the flag that closes it */
    for (i = 4; i < (most > 0 && most < 65536 ? most : 65536); i++)
        close(i);
    for (i = 1; i < 32; i++)
        signal(i, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (chdir("/") == 0)
        execl(script, script, "serve", "--auto", path, "--idle-timeout", IDLE, (char*)NULL);
    _exit(1);
}
