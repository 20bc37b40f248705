/* PYLINK_SERVER=auto: the first link starts a server, and links by itself meanwhile; later links
   use the server. Each user and installation has a socket of its own, in a directory of that user
   with mode 0700. A process that locks the lock file beside the socket starts the server, which
   keeps the lock as long as it lives. A server ends after some minutes without links.
   src/pylink/serve/command.py is the code of the server.
 */
#include <sys/file.h>
#include <sys/wait.h>

#define AUTO "auto"
#define MARK "nvlink.serve"  /* a file beside an overlay's nvlink, whose links then use AUTO */
#define LONGEST_PARENT 45    /* bytes of a usable XDG_RUNTIME_DIR: a socket's path may have 107 */
#define RETRY_SECONDS  10    /* from the start of a server that has ended to the next start */
#define IDLE_SECONDS   "600" /* without links, after which a server ends */

/* Set the path of the socket for this user and the installation with this script, and create its
   directory. Returns 0 if no server may be used: `room`, the size of `path`, is too small, the
   program is set-user-ID or set-group-ID, the script is missing, or another user could write to the
   directory. */
static int find_auto_socket(const char* script, char* path, size_t room) {
    const char* runtime = getenv("XDG_RUNTIME_DIR");
    uid_t user = geteuid();
    struct stat status, script_status;
    size_t size;
    if (getuid() != user || getgid() != getegid() || getauxval(AT_SECURE) ||
        stat(script, &script_status) != 0)
        return 0;
    if (runtime && *runtime == '/' && strlen(runtime) <= LONGEST_PARENT &&
        stat(runtime, &status) == 0 && status.st_uid == user)
        size = (size_t)snprintf(path, room, "%s/pylink-auto", runtime);
    else
        size = (size_t)snprintf(path, room, "/tmp/pylink-auto-%u", (unsigned)user);
    if (size + 64 > room) /* the name below has at most 34 bytes, the lock's suffix 5 */
        return 0;
    mkdir(path, 0700);
    if (lstat(path, &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != user ||
        (status.st_mode & 07777) != 0700)
        return 0;
    snprintf(path + size, room - size, "/%llx-%llx", (unsigned long long)script_status.st_dev,
             (unsigned long long)script_status.st_ino);
    return 1;
}

/* Return whether a directory is the `bin` of an overlay (a toolkit that links with pylink) whose
   links use a server: it has the file MARK. The first `size` bytes of `directory` are its path. */
static int is_served_directory(const char* directory, size_t size) {
    char path[PATH_MAX + sizeof MARK];
    if (size >= PATH_MAX)
        return 0;
    snprintf(path, sizeof path, "%.*s/" MARK, (int)size, directory);
    return access(path, F_OK) == 0;
}

/* Return whether the program that was started under this path is the nvlink of an overlay whose
   links use a server. */
static int is_served_overlay(const char* started) {
    const char* slash = started ? strrchr(started, '/') : NULL;
    return slash != NULL && strcmp(slash + 1, "nvlink") == 0 &&
           is_served_directory(started, (size_t)(slash - started));
}

/* Take the lock for starting a server at a socket's path. Returns the lock file's descriptor. -1 if
   another process has the lock, if a server that has ended was started less than RETRY_SECONDS ago,
   or if the file cannot be used. */
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
        (status.st_size && time(NULL) - status.st_mtime < RETRY_SECONDS) ||
        ftruncate(lock, 0) != 0 || write(lock, "\n", 1) != 1) {
        close(lock);
        return -1;
    }
    return lock;
}

/* Start a server at the socket's path; do nothing if `take_lock` fails. The server inherits user,
   limits, niceness, processors, control group and umask of this process, and the environment
   without PYLINK_SERVER. No signal is blocked or ignored there. Its streams are /dev/null, and the
   only open file that it inherits is the lock, as descriptor 3. */
static void start_server(const char* script, const char* path) {
    int lock = take_lock(path), i, null_device, descriptor_limit;
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
    if (setsid() < 0 || fork() != 0) /* the parent ends at once, so init adopts the server */
        _exit(0);
    unsetenv(SERVER);
    if (lock < 3) /* a standard stream is closed */
        lock = fcntl(lock, F_DUPFD_CLOEXEC, 3);
    descriptor_limit = (int)sysconf(_SC_OPEN_MAX);
    null_device = open("/dev/null", O_RDWR);
    for (i = 0; i < 3; i++)
        dup2(null_device, i);
    dup2(lock, 3);
    fcntl(3, F_SETFD, 0); /* The server inherits the lock. If it was 3, it still has O_CLOEXEC. */
    for (i = 4; i < (descriptor_limit > 0 && descriptor_limit < 65536 ? descriptor_limit : 65536);
         i++)
        close(i);
    for (i = 1; i < 32; i++) /* all standard signals */
        signal(i, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (chdir("/") == 0)
        execl(script, script, "serve", "--auto", path, "--idle-timeout", IDLE_SECONDS, (char*)NULL);
    _exit(1);
}
