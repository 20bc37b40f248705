/* nvcc of an overlay: which command lines are device-link steps, and who does them.
 *
 * An overlay (src/pylink/command/overlay.py) has a copy of this program as bin/nvcc, beside it the
 * toolkit's nvcc as bin/toolkit-nvcc, and the program itself as bin/pylink. Steps, and links of
 * programs that need one, are for `pylink dlink --as-nvcc`; all else becomes the toolkit's nvcc with
 * the same words, and costs no more than reading them. The toolkit's nvcc can do any of it, and
 * `pylink dlink` hands on what turns out not to be for it, so a wrong guess here costs time alone.
 * The words follow the table in src/pylink/devicelink/nvccoptions.py.
 */
#include "nvcctable.h"

#define NVCC         "nvcc"
#define TOOLKIT_NVCC "toolkit-nvcc"
#define PYLINK       "pylink"
/* Set by the caller that wants nvcc itself (src/pylink/devicelink/toolkit.py). */
#define HANDED_ON    "PYLINK_DLINK_HANDED_ON"
#define MOST_FILES   1000
#define LARGEST_FILE (256 << 20)
#define BLANKS       " \t\r\n"

/* Counts of the arguments so far. */
struct nvcc_words {
    const struct nvcc_option* wants; /* the option whose argument comes next */
    int inputs, files;
    int links; /* -dlink */
    int ends;  /* an output that only a device-link step has */
    int forwards, unknown;
    int refused; /* a word that only nvcc understands */
};

static void take_word(struct nvcc_words* words, const char* word);

static int ends_with(const char* word, const char* end) {
    size_t size = strlen(word), tail = strlen(end);
    return size >= tail && strcmp(word + size - tail, end) == 0;
}

static int starts_with_any(const char* word, const char* const* starts) {
    for (; *starts; starts++)
        if (strncmp(word, *starts, strlen(*starts)) == 0)
            return 1;
    return 0;
}

static int is_any(const char* word, const char* const* words) {
    for (; *words; words++)
        if (strcmp(word, *words) == 0)
            return 1;
    return 0;
}

/* Words for the compiler of the host, with commas, blanks and quotes between them. */
static void take_host_words(struct nvcc_words* words, const char* text) {
    static const char between[] = ", \t'\"";
    char word[256];
    while (*(text += strspn(text, between))) {
        size_t size = strcspn(text, between);
        if (size >= sizeof word) {
            words->refused = 1;
            return;
        }
        memcpy(word, text, size);
        word[size] = '\0';
        if (!is_any(word, HOST_WORDS) &&
            (!starts_with_any(word, HOST_PREFIXES) || starts_with_any(word, HOST_EXCEPT)))
            words->refused |= !is_any(word, HOST_VISIBILITY);
        if (words->refused)
            return;
        text += size;
    }
}

/* The words of a text, as `split_arguments` of src/pylink/options/file.py has them. The text is
 * overwritten. */
static void take_text(struct nvcc_words* words, char* text) {
    while (!words->refused && *(text += strspn(text, BLANKS))) {
        char *word = text, *end = text;
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
            words->refused = 1; /* a mistake, for which nvcc has the words */
            return;
        }
        text += *text != '\0';
        *end = '\0';
        take_word(words, word);
    }
}

/* The words of an options file. A pipe can be read once, by the program that uses what is in it. */
static void take_file(struct nvcc_words* words, const char* path) {
    struct stat status;
    char* text = NULL;
    ssize_t size = -1;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file >= 0 && ++words->files < MOST_FILES && fstat(file, &status) == 0 &&
        S_ISREG(status.st_mode) && status.st_size < LARGEST_FILE)
        text = malloc((size_t)status.st_size + 1);
    if (text)
        size = read(file, text, (size_t)status.st_size);
    if (file >= 0)
        close(file);
    if (size >= 0) {
        text[size] = '\0';
        take_text(words, text);
    } else {
        words->refused = 1;
    }
    free(text);
}

static void take_argument(struct nvcc_words* words, const char* argument) {
    const struct nvcc_option* option = words->wants;
    char *files, *rest, *file;
    words->wants = NULL;
    if (option->use == NVCC_HOST_WORDS)
        take_host_words(words, argument);
    if (option->use != NVCC_OPTIONS_FILE)
        return;
    files = rest = strdup(argument);
    while (files && !words->refused && (file = strsep(&rest, ",")) != NULL)
        if (*file)
            take_file(words, file);
    free(files);
}

static void take_flag(struct nvcc_words* words, const struct nvcc_option* option) {
    words->links |= option->use == NVCC_DEVICE_LINK;
    words->ends |= option->use == NVCC_ENDS;
    words->forwards |= option->use == NVCC_FORWARDS;
}

static void take_word(struct nvcc_words* words, const char* word) {
    const struct nvcc_option* option;
    size_t size = strcspn(word, "=");
    if (words->wants) {
        take_argument(words, word);
        return;
    }
    if (*word != '-') {
        const char* const* kind;
        for (kind = LINKED; *kind && !ends_with(word, *kind); kind++)
            ;
        words->inputs++;
        words->refused |= *kind == NULL;
        return;
    }
    for (option = NVCC_OPTIONS; option->spelling; option++)
        if (strlen(option->spelling) == size && strncmp(option->spelling, word, size) == 0)
            break;
    if (option->spelling == NULL) {
        for (option = NVCC_OPTIONS; option->spelling; option++)
            if (option->joined && strncmp(option->spelling, word, 2) == 0)
                return; /* none of these changes who does the step */
        take_host_words(words, word);
        words->unknown = 1;
        return;
    }
    words->refused |= option->use == NVCC_LEFT || (option->is_flag && word[size]);
    if (option->is_flag) {
        take_flag(words, option);
        return;
    }
    words->wants = option;
    if (word[size])
        take_argument(words, word + size + 1);
}

static void take_variable(struct nvcc_words* words, const char* name) {
    const char* value = getenv(name);
    char* text = value ? strdup(value) : NULL;
    if (text)
        take_text(words, text);
    free(text);
}

/* Whether a command line of nvcc is a device-link step, or a link that has one in it. */
static int is_step(int argc, char** argv) {
    struct nvcc_words words = {NULL, 0, 0, 0, 0, 0, 0, 0};
    int i;
    take_variable(&words, "NVCC_PREPEND_FLAGS");
    for (i = 1; i < argc && !words.refused; i++)
        take_word(&words, argv[i]);
    if (!words.refused)
        take_variable(&words, "NVCC_APPEND_FLAGS");
    return !words.refused && words.wants == NULL && words.inputs > 0 &&
           (words.forwards || !words.unknown) && (words.links || !words.ends);
}

/* Become the program that does it; `directory` is that of this one. Returns when none can be
   started. */
static void run_nvcc(const char* directory, int argc, char** argv) {
    static char program[PATH_MAX + sizeof TOOLKIT_NVCC], root[PATH_MAX];
    const char* slash = strrchr(directory, '/');
    char** words;
    int i, n = 0;
    if (getenv(HANDED_ON)) {
        unsetenv(HANDED_ON);
    } else if (slash && is_step(argc, argv) && (words = calloc((size_t)argc + 6, sizeof *words))) {
        snprintf(root, sizeof root, "%.*s", (int)(slash == directory ? 1 : slash - directory),
                 directory);
        snprintf(program, sizeof program, "%s/" PYLINK, directory);
        words[n++] = PYLINK;
        words[n++] = "dlink";
        words[n++] = "--cuda";
        words[n++] = root;
        words[n++] = "--as-nvcc";
        for (i = 1; i < argc; i++)
            words[n++] = argv[i];
        if (getenv(SERVER) == NULL && is_served_directory(directory, strlen(directory)))
            setenv(SERVER, AUTO, 1);
        execv(program, words);
    }
    snprintf(program, sizeof program, "%s/" TOOLKIT_NVCC, directory);
    execv(program, argv);
}
