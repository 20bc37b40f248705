/* fatbinary of an overlay: the toolkit's, with the words of builds that link device code by clang.
 *
 * CMake names each cubin of a clang build as -im=profile=sm_N,file=F, which no fatbinary of CUDA 13
 * knows; its own word for that is --image3=kind=elf,sm=N,file=F.
 */
#define FATBINARY         "fatbinary"
#define TOOLKIT_FATBINARY "toolkit-fatbinary"

/* The word that fatbinary knows for an image; the word itself for all others, NULL without memory. */
static char* known_image(char* word) {
    static const char* const old[] = {"-im=profile=sm_", "--image=profile=sm_", NULL};
    static const char known[] = "--image3=kind=elf,sm=";
    const char* const* start;
    for (start = old; *start; start++)
        if (strncmp(word, *start, strlen(*start)) == 0) {
            const char* rest = word + strlen(*start);
            char* made = malloc(sizeof known + strlen(rest));
            if (made)
                stpcpy(stpcpy(made, known), rest);
            return made;
        }
    return word;
}

/* Become the fatbinary of the toolkit; returns when it cannot be started. */
static void run_fatbinary(const char* directory, int argc, char** argv) {
    static char program[PATH_MAX + sizeof TOOLKIT_FATBINARY];
    int i;
    for (i = 1; i < argc; i++)
        if ((argv[i] = known_image(argv[i])) == NULL)
            return;
    snprintf(program, sizeof program, "%s/" TOOLKIT_FATBINARY, directory);
    execv(program, argv);
}
