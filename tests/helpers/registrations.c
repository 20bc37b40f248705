/* Functions in place of the CUDA runtime's. Each prints a line about a registration to standard
   error.

   Handles are numbered. The line of a wrapper has its version, and size and hash of its containers.
   REGISTRATIONS names a file stem under which each container is also written. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    uint32_t magic, version;
    const uint8_t* data;
    const uint8_t** linked;
} Wrapper;

static int handles;

#define LINE(...) (fprintf(stderr, __VA_ARGS__), fflush(stderr))

/* Return the number of a handle, -1 for NULL. */
static int number(void** handle) {
    return handle ? (int)(intptr_t)*handle : -1;
}

/* Print size and hash of a fat binary, and write it to a file if it is linked code. */
static void describe(const char* role, const uint8_t* data) {
    uint16_t head;
    uint64_t size;
    uint64_t hash = 1469598103934665603u;
    memcpy(&head, data + 6, 2);
    memcpy(&size, data + 8, 8);
    size += head;
    for (uint64_t i = 0; i < size; ++i)
        hash = (hash ^ data[i]) * 1099511628211u;
    LINE("  %s: %llu bytes, hash %016llx, %s\n", role, (unsigned long long)size,
         (unsigned long long)hash, (uintptr_t)data % 8 ? "not aligned" : "aligned");
    if (getenv("REGISTRATIONS") && strcmp(role, "linked") == 0) {
        char name[4096];
        snprintf(name, sizeof name, "%s.%d", getenv("REGISTRATIONS"), handles);
        int file = open(name, O_CREAT | O_TRUNC | O_WRONLY, 0644);
        if (file < 0 || write(file, data, size) != (ssize_t)size || close(file))
            abort();
    }
}

void** __cudaRegisterFatBinary(const Wrapper* wrapper) {
    void** handle = malloc(sizeof *handle);
    *handle = (void*)(intptr_t)++handles;
    LINE("register %d: magic %08x, version %u\n", handles, wrapper->magic, wrapper->version);
    describe("linked", wrapper->data);
    if (wrapper->version == 2)
        for (const uint8_t** part = wrapper->linked; part && *part; ++part)
            describe("part", *part);
    return handle;
}

void __cudaRegisterFatBinaryEnd(void** handle) {
    LINE("end of %d\n", number(handle));
}
void __cudaUnregisterFatBinary(void** handle) {
    LINE("unregister %d\n", number(handle));
}
char __cudaInitModule(void** handle) {
    LINE("init %d\n", number(handle));
    return 1;
}

void __cudaRegisterFunction(void** handle, const char* host, char* device, const char* name,
                            int limit, void* a, void* b, void* c, void* d, int* e) {
    LINE("function of %d: %s, %s, %d, %d%d%d%d%d, %s\n", number(handle), device, name, limit, !!a,
         !!b, !!c, !!d, !!e, host ? "host" : "no host");
}

void __cudaRegisterVar(void** handle, char* host, char* device, const char* name, int external,
                       size_t size, int constant, int global) {
    LINE("variable of %d: %s, %s, %d, %zu, %d, %d\n", number(handle), device, name, external, size,
         constant, global);
}

void __cudaRegisterManagedVar(void** handle, void** host, char* device, const char* name,
                              int external, size_t size, int constant, int global) {
    LINE("managed variable of %d: %s, %s, %d, %zu, %d, %d\n", number(handle), device, name,
         external, size, constant, global);
}

unsigned __cudaPushCallConfiguration(void) {
    return 0;
}
int __cudaPopCallConfiguration(void) {
    return 0;
}
int __cudaGetKernel(void** kernel, void* host) {
    *kernel = host;
    return 0;
}
int __cudaLaunchKernel(void) {
    return 0;
}
int cudaLaunchKernel(void) {
    return 0;
}
int cudaDeviceSynchronize(void) {
    return 0;
}
