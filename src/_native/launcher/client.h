/* A link by the server that PYLINK_SERVER names, `pylink serve`: this process sends it its
 * arguments, environment, directory and streams, and exits with the link's status. The other side
 * is src/pylink/serve/request.py. Nothing unexpected is an error: the link is then done without a
 * server.
 */
#include <poll.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#define SERVER    "PYLINK_SERVER"
#define ANSWER_MS 500 /* how long to wait for an answer, in ms, before linking without a server */

extern char** environ;

/* Send `size` bytes; the first message carries the descriptors. */
static int send_all(int server, const char* data, size_t size, const int* descriptors,
                    size_t count) {
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(4 * sizeof(int))];
    } control;
    struct iovec part;
    struct msghdr message;
    while (size) {
        ssize_t sent;
        memset(&message, 0, sizeof message);
        part.iov_base = (void*)data;
        part.iov_len = size;
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        if (count) {
            struct cmsghdr* head;
            memset(&control, 0, sizeof control);
            message.msg_control = &control;
            message.msg_controllen = CMSG_SPACE(count * sizeof *descriptors);
            head = CMSG_FIRSTHDR(&message);
            head->cmsg_level = SOL_SOCKET;
            head->cmsg_type = SCM_RIGHTS;
            head->cmsg_len = CMSG_LEN(count * sizeof *descriptors);
            memcpy(CMSG_DATA(head), descriptors, count * sizeof *descriptors);
        }
        sent = sendmsg(server, &message, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return 0;
        count = 0;
        data += sent;
        size -= (size_t)sent;
    }
    return 1;
}

/* Connect to this user's server at the path; -1 if there is none. */
static int find_server(const char* path) {
    struct sockaddr_un place;
    struct ucred peer;
    socklen_t size = sizeof peer;
    int server;
    memset(&place, 0, sizeof place);
    place.sun_family = AF_UNIX;
    if (strlen(path) >= sizeof place.sun_path)
        return -1;
    strcpy(place.sun_path, path);
    server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (server < 0)
        return -1;
    /* Streams 0 to 2 are sent along: if one is closed, the socket must not take its number. */
    if (server <= STDERR_FILENO || connect(server, (struct sockaddr*)&place, sizeof place) != 0 ||
        getsockopt(server, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.uid != geteuid()) {
        close(server);
        return -1;
    }
    return server;
}

/* The request: its size, then strings that end in zeros: script, umask, number of arguments,
 * arguments, environment. */
static char* make_request(const char* script, int argc, char** argv, size_t* size) {
    char mask[16], count[16], *request, *end;
    const char* head[3];
    mode_t own = umask(0);
    uint32_t length;
    int i;
    umask(own);
    snprintf(mask, sizeof mask, "%o", (unsigned)own);
    snprintf(count, sizeof count, "%d", argc);
    head[0] = script, head[1] = mask, head[2] = count;
    *size = sizeof length;
    for (i = 0; i < 3; i++)
        *size += strlen(head[i]) + 1;
    for (i = 0; i < argc; i++)
        *size += strlen(argv[i]) + 1;
    for (i = 0; environ[i]; i++)
        *size += strlen(environ[i]) + 1;
    if (*size > 1u << 30 || (request = malloc(*size)) == NULL)
        return NULL;
    length = (uint32_t)(*size - sizeof length);
    memcpy(request, &length, sizeof length);
    end = request + sizeof length;
    for (i = 0; i < 3; i++)
        end = stpcpy(end, head[i]) + 1;
    for (i = 0; i < argc; i++)
        end = stpcpy(end, argv[i]) + 1;
    for (i = 0; environ[i]; i++)
        end = stpcpy(end, environ[i]) + 1;
    return request;
}

/* The exit status of the link by a server, or -1 when there was none. */
static int link_by(int server, const char* script, int argc, char** argv) {
    int descriptors[4] = {0, 1, 2, -1}, status = -1;
    unsigned char answer[2];
    size_t size;
    char* request;
    struct pollfd taken = {server, POLLIN, 0};
    request = make_request(script, argc, argv, &size);
    descriptors[3] = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (request && descriptors[3] >= 0 && send_all(server, request, size, descriptors, 4) &&
        poll(&taken, 1, ANSWER_MS) == 1 && read(server, answer, 1) == 1 && answer[0] == 'y') {
        ssize_t got;
        do
            got = read(server, answer + 1, 1);
        while (got < 0 && errno == EINTR);
        if (got == 1)
            status = answer[1];
    }
    if (descriptors[3] >= 0)
        close(descriptors[3]);
    free(request);
    close(server);
    return status;
}
