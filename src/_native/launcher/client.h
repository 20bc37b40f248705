/* A link by the server at the socket that PYLINK_SERVER names (`pylink serve`): this process sends
   its arguments, environment, working directory and streams to it, and exits with the link's
   status. src/pylink/serve/request.py reads what is sent. If anything fails, this process links by
   itself.
 */
#include <poll.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#define SERVER    "PYLINK_SERVER"
#define ANSWER_MS 500 /* how long to wait for an answer, in ms, before linking without a server */

extern char** environ;

/* Send `size` bytes; the first message carries `count` descriptors. Returns 0 if it fails. */
static int send_all(int server, const char* data, size_t size, const int* descriptors,
                    size_t count) {
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(4 * sizeof(int))]; /* for the descriptors of link_through */
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

/* Connect to the server at a socket's path. Returns a descriptor. -1 if there is no server, if it
   is another user's, or if a standard stream is closed. */
static int connect_to_server(const char* path) {
    struct sockaddr_un address;
    struct ucred peer;
    socklen_t size = sizeof peer;
    int server;
    memset(&address, 0, sizeof address);
    address.sun_family = AF_UNIX;
    if (strlen(path) >= sizeof address.sun_path)
        return -1;
    strcpy(address.sun_path, path);
    server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (server < 0)
        return -1;
    /* Streams 0 to 2 are sent along: if one is closed, the socket must not take its number. */
    if (server <= STDERR_FILENO ||
        connect(server, (struct sockaddr*)&address, sizeof address) != 0 ||
        getsockopt(server, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.uid != geteuid()) {
        close(server);
        return -1;
    }
    return server;
}

/* Return a request, to be freed, and set its size in bytes; NULL if it is too large or memory is
   exhausted. It consists of the size of what follows (uint32_t), then strings that end in zeros:
   script, umask (octal), number of arguments, arguments, environment. */
static char* make_request(const char* script, int argc, char** argv, size_t* size) {
    char mask_text[16], count[16], *request, *end;
    const char* head[3];
    mode_t mask = umask(0); /* reading it means setting it */
    uint32_t length;
    int i;
    umask(mask);
    snprintf(mask_text, sizeof mask_text, "%o", (unsigned)mask);
    snprintf(count, sizeof count, "%d", argc);
    head[0] = script, head[1] = mask_text, head[2] = count;
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

/* Let a server link. Returns the exit status of the link, or -1 if the server reports none. Closes
   `server`, a connected socket. The server answers 'y' when it begins, and later a byte with the
   exit status. */
static int link_through(int server, const char* script, int argc, char** argv) {
    int descriptors[4] = {0, 1, 2, -1}, status = -1; /* streams, and the working directory */
    unsigned char answer[2];
    size_t size;
    char* request;
    struct pollfd readable = {server, POLLIN, 0};
    request = make_request(script, argc, argv, &size);
    descriptors[3] = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (request && descriptors[3] >= 0 && send_all(server, request, size, descriptors, 4) &&
        poll(&readable, 1, ANSWER_MS) == 1 && read(server, answer, 1) == 1 && answer[0] == 'y') {
        ssize_t count;
        do
            count = read(server, answer + 1, 1);
        while (count < 0 && errno == EINTR);
        if (count == 1)
            status = answer[1];
    }
    if (descriptors[3] >= 0)
        close(descriptors[3]);
    free(request);
    close(server);
    return status;
}
