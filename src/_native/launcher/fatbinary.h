/* The program `fatbinary` of an overlay (a toolkit that links with pylink). It translates arguments
   of builds of device code with clang, and starts the toolkit's fatbinary.
   
   CMake names each cubin of a clang build as -im=profile=sm_N,file=F. fatbinary of CUDA 13 does not
   know that; it wants --image3=kind=elf,sm=N,file=F.
 */
#define FATBINARY         "fatbinary"
#define TOOLKIT_FATBINARY "toolkit-fatbinary"

/* Return an argument as fatbinary of CUDA 13 wants it: translated if it begins with
   `-im=profile=sm_` or `--image=profile=sm_`, else the argument itself. NULL if memory is
   exhausted. */
static char* translate_image(char* argument) {
    static const char* const profile_prefixes[] = {"-im=profile=sm_", "--image=profile=sm_", NULL};
    static const char image_prefix[] = "--image3=kind=elf,sm=";
    const char* const* start;
    for (start = profile_prefixes; *start; start++)
        if (strncmp(argument, *start, strlen(*start)) == 0) {
            const char* rest = argument + strlen(*start);
            char* translated = malloc(sizeof image_prefix + strlen(rest));
            if (translated)
                stpcpy(stpcpy(translated, image_prefix), rest);
            return translated;
        }
    return argument;
}

/* Replace this process by the toolkit's fatbinary in a directory, with translated arguments.
   Returns only if that fails. */
static void run_fatbinary(const char* directory, int argc, char** argv) {
    static char program[PATH_MAX + sizeof TOOLKIT_FATBINARY];
    int i;
    for (i = 1; i < argc; i++)
        if ((argv[i] = translate_image(argv[i])) == NULL)
            return;
    snprintf(program, sizeof program, "%s/" TOOLKIT_FATBINARY, directory);
    execv(program, argv);
}
