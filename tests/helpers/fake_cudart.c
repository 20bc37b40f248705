/* A CUDA runtime without a GPU: it says what is registered, by whom, and which image a launch finds.

   Lines are `image N: by FILE`, `NAME: image N, host FILE`, and `use NAME: image N` or `use ?: none`. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int magic, version;
    const uint64_t* data;
    void** linked;
} Wrapper;
typedef struct {
    int number;
} Image;

static struct {
    const void* host;
    const char* name;
    int image;
} known[4096];
static int images, count;

/* Return the name of the program or library that contains an address. */
static const char* file_of(const void* address) {
    Dl_info info;
    const char* name = dladdr(address, &info) && info.dli_fname ? info.dli_fname : "?";
    const char* slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

void** __cudaRegisterFatBinary(Wrapper* wrapper) {
    Image* image = malloc(sizeof *image);
    image->number = ++images;
    printf("image %d: by %s\n", image->number, file_of(__builtin_return_address(0)));
    if (wrapper->version == 2)
        for (void** part = wrapper->linked; *part; ++part)
            printf("image %d: has %s\n", image->number, file_of(*part));
    return (void**)image;
}

void __cudaRegisterFatBinaryEnd(Image* image) {
    printf("image %d: complete\n", image->number);
}
void __cudaUnregisterFatBinary(Image* image) {
    (void)image;
}
char __cudaInitModule(Image* image) {
    (void)image;
    return 1;
}

/* Print and record that an image has the kernel or variable of a host address. */
static void add(Image* image, const void* host, const char* name) {
    printf("%s: image %d, host %s\n", name, image->number, file_of(host));
    known[count].host = host;
    known[count].name = strdup(name);
    known[count++].image = image->number;
}

void __cudaRegisterFunction(Image* image, void* host, char* device, char* name, int limit, void* a,
                            void* b, void* c, void* d, int* e) {
    add(image, host, name);
}

void __cudaRegisterVar(Image* image, void* host, char* device, char* name, int x, size_t size,
                       int constant, int global) {
    add(image, host, name);
}

void __cudaRegisterManagedVar(Image* image, void* host, char* device, char* name, int x,
                              size_t size, int constant, int global) {
    add(image, host, name);
}

/* Print the images that have the kernel or variable of a host address; return a CUDA status. */
static int use(const void* host) {
    int found = 0;
    for (int i = 0; i < count; ++i)
        if (known[i].host == host && ++found)
            printf("use %s: image %d\n", known[i].name, known[i].image);
    if (!found)
        printf("use ?: none, by %s\n", file_of(host));
    return found ? 0 : 98;
}

unsigned __cudaPushCallConfiguration() {
    return 0;
}
int __cudaPopCallConfiguration() {
    return 0;
}
int __cudaGetKernel(void** kernel, void* host) {
    *kernel = host;
    return 0;
}
int __cudaLaunchKernel(void* host) {
    return use(host);
}
int cudaLaunchKernel(void* host) {
    return use(host);
}
int cudaMemcpyToSymbol(void* host) {
    return use(host);
}
int cudaMemcpyFromSymbol(void* to, void* host) {
    return use(host);
}
int cudaMalloc(void** memory, size_t size) {
    *memory = calloc(1, size);
    return 0;
}
int cudaMemcpy(void* to, const void* from, size_t size, int kind) {
    memcpy(to, from, size);
    return 0;
}
int cudaFree(void* memory) {
    free(memory);
    return 0;
}
int cudaDeviceSynchronize(void) {
    return 0;
}
int cudaGetLastError(void) {
    return 0;
}
const char* cudaGetErrorString(int status) {
    return status ? "error" : "no error";
}
