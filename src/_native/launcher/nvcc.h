/* nvcc of an overlay: which command lines are device-link steps, and which program does them.
   
   An overlay (src/pylink/command/overlay.py) has a copy of this program as bin/nvcc, beside it the
   toolkit's nvcc as bin/toolkit-nvcc, and the program itself as bin/pylink. Device-link steps, and
   links of programs that need one, are done by `pylink dlink --as-nvcc`. For all other command
   lines the toolkit's nvcc is started with the same arguments. A wrong guess here only costs time:
   the toolkit's nvcc can do any of it, and `pylink dlink` starts it for what it does not support.
   nvcctable.h is made from the options in src/pylink/devicelink/nvccoptions.py.
 */
#include "nvcctable.h"

#define NVCC         "nvcc"
#define TOOLKIT_NVCC "toolkit-nvcc"
#define PYLINK       "pylink"
/* A variable of the environment: a caller that must get the toolkit's nvcc sets it
   (src/pylink/devicelink/toolkit.py). */
#define HANDED_ON    "PYLINK_DLINK_HANDED_ON"
#define MOST_FILES   1000        /* so many options files are left to nvcc: they may form a loop */
#define LARGEST_FILE (256 << 20) /* an options file of so many bytes is left to nvcc */
#define BLANKS       " \t\r\n"

/* A command line of nvcc: what its arguments so far say. The functions `take_` below record it. */
struct command_line {
    const struct nvcc_option* option; /* whose value is the next argument; or NULL */
    int inputs, options_files;        /* how many inputs and options files it has */
    int has_dlink;                    /* has -dlink */
    int is_other_output;              /* has -fatbin or the like: links only if it has -dlink */
    int forwards_unknown;             /* has -forward-unknown-to-host-compiler */
    int has_unknown;                  /* has an option that is not in the table */
    int is_for_nvcc;                  /* has an argument that only nvcc understands */
};

/* Record one argument in `line`; defined below, since it calls functions that call it: an option
   may name a file with further arguments. */
static void take_argument(struct command_line* line, const char* argument);

static int ends_with(const char* argument, const char* end) {
    size_t size = strlen(argument), tail = strlen(end);
    return size >= tail && strcmp(argument + size - tail, end) == 0;
}

/* Return whether an argument starts with one of the texts in a list that ends with NULL. */
static int starts_with_any(const char* argument, const char* const* starts) {
    for (; *starts; starts++)
        if (strncmp(argument, *starts, strlen(*starts)) == 0)
            return 1;
    return 0;
}

/* Return whether an argument is one of the texts in a list that ends with NULL. */
static int is_any(const char* argument, const char* const* texts) {
    for (; *texts; texts++)
        if (strcmp(argument, *texts) == 0)
            return 1;
    return 0;
}

/* Record in `line` a text with arguments of the host compiler, which commas, blanks and quotes
   separate. One that the tables of nvcctable.h do not allow leaves the command line to nvcc. */
static void take_host_arguments(struct command_line* line, const char* text) {
    static const char between[] = ", \t'\"";
    char argument[256];
    while (*(text += strspn(text, between))) {
        size_t size = strcspn(text, between);
        if (size >= sizeof argument) {
            line->is_for_nvcc = 1;
            return;
        }
        memcpy(argument, text, size);
        argument[size] = '\0';
        if (!is_any(argument, HOST_WORDS) &&
            (!starts_with_any(argument, HOST_PREFIXES) || starts_with_any(argument, HOST_EXCEPT)))
            line->is_for_nvcc |= !is_any(argument, HOST_VISIBILITY);
        if (line->is_for_nvcc)
            return;
        text += size;
    }
}

/* Record in `line` the arguments in a text, split as `split_arguments` of
   src/pylink/options/file.py splits them. The text is overwritten. */
static void take_arguments(struct command_line* line, char* text) {
    while (!line->is_for_nvcc && *(text += strspn(text, BLANKS))) {
        char *argument = text, *end = text;
        int quoted = 0;
        while (*text && (quoted || strchr(BLANKS, *text) == NULL)) {
            if (*text == '"') {
                quoted = !quoted;
            } else {
                if (*text == '\\' && *++text == '\0')
                    break;
                *end++ = *text;
            }
            text++;
        }
        if (quoted || (*text == '\0' && text[-1] == '\\')) {
            line->is_for_nvcc = 1; /* a mistake: nvcc has the message for it */
            return;
        }
        text += *text != '\0';
        *end = '\0';
        take_argument(line, argument);
    }
}

/* Record in `line` the arguments in an options file. One that is not a regular file is left to
   nvcc, since a pipe can be read only once. */
static void take_options_file(struct command_line* line, const char* path) {
    struct stat status;
    char* text = NULL;
    ssize_t size = -1;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file >= 0 && ++line->options_files < MOST_FILES && fstat(file, &status) == 0 &&
        S_ISREG(status.st_mode) && status.st_size < LARGEST_FILE)
        text = malloc((size_t)status.st_size + 1);
    if (text)
        size = read(file, text, (size_t)status.st_size);
    if (file >= 0)
        close(file);
    if (size >= 0) {
        text[size] = '\0';
        take_arguments(line, text);
    } else {
        line->is_for_nvcc = 1;
    }
    free(text);
}

/* Record in `line` an argument that is the value of the option before it, `line->option`. */
static void take_value(struct command_line* line, const char* argument) {
    const struct nvcc_option* option = line->option;
    char *files, *rest, *file;
    line->option = NULL;
    if (option->use == NVCC_HOST_WORDS)
        take_host_arguments(line, argument);
    if (option->use != NVCC_OPTIONS_FILE)
        return;
    files = rest = strdup(argument);
    while (files && !line->is_for_nvcc && (file = strsep(&rest, ",")) != NULL)
        if (*file)
            take_options_file(line, file);
    free(files);
}

/* Record in `line` an option that takes no value. */
static void take_flag(struct command_line* line, const struct nvcc_option* option) {
    line->has_dlink |= option->use == NVCC_DEVICE_LINK;
    line->is_other_output |= option->use == NVCC_ENDS;
    line->forwards_unknown |= option->use == NVCC_FORWARDS;
}

/* Record one argument in `line`: a value, an input, or an option, perhaps joined with its value. */
static void take_argument(struct command_line* line, const char* argument) {
    const struct nvcc_option* option;
    size_t size = strcspn(argument, "=");
    if (line->option) {
        take_value(line, argument);
        return;
    }
    if (*argument != '-') {
        const char* const* kind;
        for (kind = LINKED; *kind && !ends_with(argument, *kind); kind++)
            ;
        line->inputs++;
        line->is_for_nvcc |= *kind == NULL;
        return;
    }
    for (option = NVCC_OPTIONS; option->spelling; option++)
        if (strlen(option->spelling) == size && strncmp(option->spelling, argument, size) == 0)
            break;
    if (option->spelling == NULL) {
        for (option = NVCC_OPTIONS; option->spelling; option++)
            if (option->joined && strncmp(option->spelling, argument, 2) == 0)
                return; /* such as -Lpath: none of these changes which program does the step */
        take_host_arguments(line, argument);
        line->has_unknown = 1;
        return;
    }
    line->is_for_nvcc |= option->use == NVCC_LEFT || (option->is_flag && argument[size]);
    if (option->is_flag) {
        take_flag(line, option);
        return;
    }
    line->option = option;
    if (argument[size])
        take_value(line, argument + size + 1);
}

/* Record in `line` the arguments in a variable of the environment. */
static void take_variable(struct command_line* line, const char* name) {
    const char* value = getenv(name);
    char* text = value ? strdup(value) : NULL;
    if (text)
        take_arguments(line, text);
    free(text);
}

/* Return whether pylink does a command line of nvcc: a device-link step, or the link of a program,
   which includes such a step. */
static int is_step(int argc, char** argv) {
    struct command_line line = {NULL, 0, 0, 0, 0, 0, 0, 0};
    int i;
    take_variable(&line, "NVCC_PREPEND_FLAGS");
    for (i = 1; i < argc && !line.is_for_nvcc; i++)
        take_argument(&line, argv[i]);
    if (!line.is_for_nvcc)
        take_variable(&line, "NVCC_APPEND_FLAGS");
    return !line.is_for_nvcc && line.option == NULL && line.inputs > 0 &&
           (line.forwards_unknown || !line.has_unknown) &&
           (line.has_dlink || !line.is_other_output);
}

/* Replace this process by the program that does an nvcc command line: pylink or the toolkit's nvcc,
   both in `directory`. Returns only if that cannot be started. */
static void run_nvcc(const char* directory, int argc, char** argv) {
    static char program[PATH_MAX + sizeof TOOLKIT_NVCC], root[PATH_MAX];
    const char* slash = strrchr(directory, '/');
    char** arguments;
    int i, n = 0;
    if (getenv(HANDED_ON)) {
        unsetenv(HANDED_ON);
    } else if (slash && is_step(argc, argv) &&
               (arguments = calloc((size_t)argc + 6, sizeof *arguments))) {
        snprintf(root, sizeof root, "%.*s", (int)(slash == directory ? 1 : slash - directory),
                 directory);
        snprintf(program, sizeof program, "%s/" PYLINK, directory);
        arguments[n++] = PYLINK;
        arguments[n++] = "dlink";
        arguments[n++] = "--cuda";
        arguments[n++] = root;
        arguments[n++] = "--as-nvcc";
        for (i = 1; i < argc; i++)
            arguments[n++] = argv[i];
        if (getenv(SERVER) == NULL && is_served_directory(directory, strlen(directory)))
            setenv(SERVER, AUTO, 1);
        execv(program, arguments);
    }
    snprintf(program, sizeof program, "%s/" TOOLKIT_NVCC, directory);
    execv(program, argv);
}
