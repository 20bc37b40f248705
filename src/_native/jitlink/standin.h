/* A library with nvJitLink's name and interface, which hands every call to whoever installed itself.
 *
 * Each major release has a file of its own, which says what MAJOR is. The dynamic linker knows libraries by
 * DT_SONAME, so where this one is loaded first, it is what programs get that ask for libnvJitLink.
 * The interface is that of nvJitLink.h: each function has a plain name and one with each minor
 * release, all the same. `__nvJitLinkAPI` is not documented and other libraries of CUDA call it:
 * it is a jump to that of the real library.
 *
 * Handles are numbers of the installer, which is Python code. A call may come while an exception is
 * on its way, from code that cleans up: it waits until the call is done. Once the installer is gone,
 * calls answer NVJITLINK_ERROR_INTERNAL, and destroying a handle succeeds: programs do that at their
 * very end.
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stddef.h>
#include <stdint.h>

enum { SUCCESS = 0, ERROR_INTERNAL = 6, ERROR_NULL_INPUT = 10 };

typedef uintptr_t Handle;

/* pylink/jitlink/library.py has the same functions in this order. */
struct Calls {
    int (*create)(Handle *, uint32_t, const char *const *);
    int (*destroy)(Handle *);
    int (*add_data)(Handle, int, const void *, size_t, const char *);
    int (*add_file)(Handle, int, const char *);
    int (*complete)(Handle);
    int (*get_size)(Handle, int, size_t *);
    int (*get)(Handle, int, char *);
    int (*version)(unsigned int *, unsigned int *);
    int (*find_api)(void **);
};

/* What get_size and get are asked for. */
enum { CUBIN, PTX, LTOIR, ERROR_LOG, INFO_LOG };

static const struct Calls *volatile calls;

/* What a call of the installer finds and leaves behind. */
struct Interrupted {
    PyGILState_STATE state;
    PyObject *type, *value, *traceback;
};

static struct Interrupted enter(void)
{
    struct Interrupted found;
    found.state = PyGILState_Ensure();
    PyErr_Fetch(&found.type, &found.value, &found.traceback);
    return found;
}

static void leave(struct Interrupted found)
{
    PyErr_Restore(found.type, found.value, found.traceback);
    PyGILState_Release(found.state);
}

/* The result of `call`, a call through `to`; `otherwise` once there is nobody to call. */
#define ASK(call, otherwise) \
    const struct Calls *to = calls; \
    int result = otherwise; \
    if (to) { \
        struct Interrupted found = enter(); \
        result = to->call; \
        leave(found); \
    }

#define PUBLIC __attribute__((visibility("default")))

/* NULL when the installer goes. */
PUBLIC void pylink_standin_install(const struct Calls *installed) { calls = installed; }

#define ALIAS_(name, major, minor) \
    extern __typeof__(name) __##name##_##major##_##minor PUBLIC __attribute__((alias(#name)));
#define ALIAS(name, major, minor) ALIAS_(name, major, minor)
#define ALIASES(name) \
    ALIAS(name, MAJOR, 0) ALIAS(name, MAJOR, 1) ALIAS(name, MAJOR, 2) ALIAS(name, MAJOR, 3) \
    ALIAS(name, MAJOR, 4) ALIAS(name, MAJOR, 5) ALIAS(name, MAJOR, 6) ALIAS(name, MAJOR, 7) \
    ALIAS(name, MAJOR, 8) ALIAS(name, MAJOR, 9)

PUBLIC int nvJitLinkCreate(Handle *handle, uint32_t count, const char *const *options)
{
    if (handle == NULL || (count != 0 && options == NULL))
        return ERROR_NULL_INPUT;
    *handle = 0;
    ASK(create(handle, count, options), ERROR_INTERNAL)
    return result;
}
ALIASES(nvJitLinkCreate)

PUBLIC int nvJitLinkDestroy(Handle *handle)
{
    if (handle == NULL || *handle == 0)
        return ERROR_NULL_INPUT;
    ASK(destroy(handle), SUCCESS)
    *handle = 0;
    return result;
}
ALIASES(nvJitLinkDestroy)

PUBLIC int nvJitLinkAddData(Handle handle, int type, const void *data, size_t size,
                            const char *name)
{
    if (handle == 0 || data == NULL)
        return ERROR_NULL_INPUT;
    ASK(add_data(handle, type, data, size, name), ERROR_INTERNAL)
    return result;
}
ALIASES(nvJitLinkAddData)

PUBLIC int nvJitLinkAddFile(Handle handle, int type, const char *name)
{
    if (handle == 0 || name == NULL)
        return ERROR_NULL_INPUT;
    ASK(add_file(handle, type, name), ERROR_INTERNAL)
    return result;
}
ALIASES(nvJitLinkAddFile)

PUBLIC int nvJitLinkComplete(Handle handle)
{
    if (handle == 0)
        return ERROR_NULL_INPUT;
    ASK(complete(handle), ERROR_INTERNAL)
    return result;
}
ALIASES(nvJitLinkComplete)

static int get_size(Handle handle, int what, size_t *size)
{
    if (handle == 0 || size == NULL)
        return ERROR_NULL_INPUT;
    ASK(get_size(handle, what, size), ERROR_INTERNAL)
    return result;
}

static int get(Handle handle, int what, char *here)
{
    if (handle == 0 || here == NULL)
        return ERROR_NULL_INPUT;
    ASK(get(handle, what, here), ERROR_INTERNAL)
    return result;
}

#define RESULT(name, what) \
    PUBLIC int nvJitLinkGet##name##Size(Handle handle, size_t *size) \
    { \
        return get_size(handle, what, size); \
    } \
    ALIASES(nvJitLinkGet##name##Size) \
    PUBLIC int nvJitLinkGet##name(Handle handle, char *to) { return get(handle, what, to); } \
    ALIASES(nvJitLinkGet##name)

RESULT(LinkedCubin, CUBIN)
RESULT(LinkedPtx, PTX)
RESULT(LinkedLTOIR, LTOIR)
RESULT(ErrorLog, ERROR_LOG)
RESULT(InfoLog, INFO_LOG)

PUBLIC int nvJitLinkVersion(unsigned int *major, unsigned int *minor)
{
    if (major == NULL || minor == NULL)
        return ERROR_NULL_INPUT;
    ASK(version(major, minor), ERROR_INTERNAL)
    return result;
}

/* Where the real library's __nvJitLinkAPI is, once it was asked for. */
void *pylink_standin_api __attribute__((visibility("hidden")));

static int no_api(void) { return ERROR_INTERNAL; }

__attribute__((visibility("hidden"), used)) void pylink_standin_find_api(void)
{
    void *api = NULL;
    ASK(find_api(&api), ERROR_INTERNAL)
    pylink_standin_api = result == SUCCESS ? api : (void *)no_api;
}

/* Its arguments are not known: all registers that could hold some are as they came. */
#if defined(__x86_64__)
__asm__(
    ".text\n"
    ".globl __nvJitLinkAPI\n"
    ".type __nvJitLinkAPI, @function\n"
    "__nvJitLinkAPI:\n"
    "    cmpq $0, pylink_standin_api(%rip)\n"
    "    jne 1f\n"
    "    pushq %rdi\n    pushq %rsi\n    pushq %rdx\n    pushq %rcx\n    pushq %r8\n    pushq %r9\n"
    "    pushq %rax\n"
    "    subq $128, %rsp\n"
    "    movups %xmm0, (%rsp)\n      movups %xmm1, 16(%rsp)\n"
    "    movups %xmm2, 32(%rsp)\n    movups %xmm3, 48(%rsp)\n"
    "    movups %xmm4, 64(%rsp)\n    movups %xmm5, 80(%rsp)\n"
    "    movups %xmm6, 96(%rsp)\n    movups %xmm7, 112(%rsp)\n"
    "    call pylink_standin_find_api\n"
    "    movups (%rsp), %xmm0\n      movups 16(%rsp), %xmm1\n"
    "    movups 32(%rsp), %xmm2\n    movups 48(%rsp), %xmm3\n"
    "    movups 64(%rsp), %xmm4\n    movups 80(%rsp), %xmm5\n"
    "    movups 96(%rsp), %xmm6\n    movups 112(%rsp), %xmm7\n"
    "    addq $128, %rsp\n"
    "    popq %rax\n"
    "    popq %r9\n    popq %r8\n    popq %rcx\n    popq %rdx\n    popq %rsi\n    popq %rdi\n"
    "1:  jmp *pylink_standin_api(%rip)\n"
    ".size __nvJitLinkAPI, . - __nvJitLinkAPI\n");
#elif defined(__aarch64__)
__asm__(
    ".text\n"
    ".globl __nvJitLinkAPI\n"
    ".type __nvJitLinkAPI, %function\n"
    "__nvJitLinkAPI:\n"
    "    adrp x16, pylink_standin_api\n"
    "    ldr x16, [x16, :lo12:pylink_standin_api]\n"
    "    cbnz x16, 1f\n"
    "    stp x29, x30, [sp, #-224]!\n"
    "    stp x0, x1, [sp, #16]\n     stp x2, x3, [sp, #32]\n"
    "    stp x4, x5, [sp, #48]\n     stp x6, x7, [sp, #64]\n"
    "    str x8, [sp, #80]\n"
    "    stp q0, q1, [sp, #96]\n     stp q2, q3, [sp, #128]\n"
    "    stp q4, q5, [sp, #160]\n    stp q6, q7, [sp, #192]\n"
    "    bl pylink_standin_find_api\n"
    "    ldp q0, q1, [sp, #96]\n     ldp q2, q3, [sp, #128]\n"
    "    ldp q4, q5, [sp, #160]\n    ldp q6, q7, [sp, #192]\n"
    "    ldr x8, [sp, #80]\n"
    "    ldp x0, x1, [sp, #16]\n     ldp x2, x3, [sp, #32]\n"
    "    ldp x4, x5, [sp, #48]\n     ldp x6, x7, [sp, #64]\n"
    "    ldp x29, x30, [sp], #224\n"
    "    adrp x16, pylink_standin_api\n"
    "    ldr x16, [x16, :lo12:pylink_standin_api]\n"
    "1:  br x16\n"
    ".size __nvJitLinkAPI, . - __nvJitLinkAPI\n");
#else
#error "__nvJitLinkAPI has no jump for this processor"
#endif
