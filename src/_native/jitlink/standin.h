/* A library with nvJitLink's name and interface, which forwards every call to its installer.

   Each major release has a file of its own, which says what MAJOR is. The dynamic linker knows
   libraries by DT_SONAME: if this one is loaded first, programs that open libnvJitLink get it.

   The interface is that of nvJitLink.h: each function has a plain name and one with each minor
   release, all the same. `__nvJitLinkAPI` is not documented and other libraries of CUDA call it:
   it is a jump to that of the real library.

   Handles are numbers of the installer, which is a Python object. A call may come while an
   exception is on its way, from code that cleans up: it waits until the call is done. An exception
   of the installer is the result NVJITLINK_ERROR_INTERNAL; one that ends programs, such as an
   interrupt, is also raised in the main thread when that runs Python code again. Once the installer
   is gone, calls answer NVJITLINK_ERROR_INTERNAL, and destroying a handle succeeds: programs do
   that at their very end. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

enum { SUCCESS = 0, ERROR_INTERNAL = 6, ERROR_NULL_INPUT = 10 };

typedef uintptr_t Handle;

/* The results that get_size and get are asked for. */
enum { CUBIN, PTX, LTOIR, ERROR_LOG, INFO_LOG };

/* Has the methods that `ask` names; addresses are numbers to them. Changed with the GIL held. */
static PyObject* volatile installer;

/* An exception that ends programs, on its way to the main thread. */
static PyObject *ending_type, *ending_value, *ending_traceback;

/* The state of the interpreter that a call of the installer finds and restores. */
struct Interrupted {
    PyGILState_STATE state;
    PyObject *type, *value, *traceback;
};

static struct Interrupted enter(void) {
    struct Interrupted found;
    found.state = PyGILState_Ensure();
    PyErr_Fetch(&found.type, &found.value, &found.traceback);
    return found;
}

static void leave(struct Interrupted found) {
    PyErr_Restore(found.type, found.value, found.traceback);
    PyGILState_Release(found.state);
}

static int raise_again(void* unused) {
    (void)unused;
    PyErr_Restore(ending_type, ending_value, ending_traceback);
    ending_type = ending_value = ending_traceback = NULL;
    return -1;
}

/* The result where the installer raised; no exception is set any more. */
static int failed(void) {
    if (PyErr_ExceptionMatches(PyExc_Exception) || ending_type != NULL) {
        PyErr_Clear();
    } else {
        PyErr_Fetch(&ending_type, &ending_value, &ending_traceback);
        if (Py_AddPendingCall(raise_again, NULL) != 0) { /* the queue is full: lost after all */
            Py_CLEAR(ending_type);
            Py_CLEAR(ending_value);
            Py_CLEAR(ending_traceback);
        }
    }
    return ERROR_INTERNAL;
}

/* The result of a method with the arguments that `format` is for, a tuple of Py_BuildValue;
   `otherwise` once there is nobody to ask. */
static int ask(int otherwise, const char* method, const char* format, ...) {
    int result = otherwise;
    if (installer == NULL)
        return result;
    struct Interrupted found = enter();
    PyObject* asked = installer;
    if (asked != NULL) {
        va_list list;
        va_start(list, format);
        PyObject* arguments = Py_VaBuildValue(format, list);
        va_end(list);
        PyObject* function = arguments ? PyObject_GetAttrString(asked, method) : NULL;
        PyObject* answer = function ? PyObject_Call(function, arguments, NULL) : NULL;
        long number = answer ? PyLong_AsLong(answer) : -1;
        result = PyErr_Occurred() ? failed() : (int)number;
        Py_XDECREF(answer);
        Py_XDECREF(function);
        Py_XDECREF(arguments);
    }
    leave(found);
    return result;
}

/* A number as an argument: all are as wide as an address. */
#define N(value) ((Py_ssize_t)(value))

#define PUBLIC __attribute__((visibility("default")))

/* Called with the GIL; NULL when the installer goes. */
PUBLIC void pylink_standin_install(PyObject* installed) {
    Py_XINCREF(installed);
    PyObject* before = installer;
    installer = installed;
    Py_XDECREF(before);
}

#define ALIAS_(name, major, minor)                                                                 \
    extern __typeof__(name) __##name##_##major##_##minor PUBLIC __attribute__((alias(#name)));
#define ALIAS(name, major, minor) ALIAS_(name, major, minor)
#define ALIASES(name)                                                                              \
    ALIAS(name, MAJOR, 0)                                                                          \
    ALIAS(name, MAJOR, 1) ALIAS(name, MAJOR, 2) ALIAS(name, MAJOR, 3) ALIAS(name, MAJOR, 4)        \
        ALIAS(name, MAJOR, 5) ALIAS(name, MAJOR, 6) ALIAS(name, MAJOR, 7) ALIAS(name, MAJOR, 8)    \
            ALIAS(name, MAJOR, 9)

PUBLIC int nvJitLinkCreate(Handle* handle, uint32_t count, const char* const* options) {
    if (handle == NULL || (count != 0 && options == NULL))
        return ERROR_NULL_INPUT;
    *handle = 0;
    return ask(ERROR_INTERNAL, "create", "(nnn)", N(handle), N(count), N(options));
}
ALIASES(nvJitLinkCreate)

PUBLIC int nvJitLinkDestroy(Handle* handle) {
    if (handle == NULL || *handle == 0)
        return ERROR_NULL_INPUT;
    int result = ask(SUCCESS, "destroy", "(n)", N(*handle));
    *handle = 0;
    return result;
}
ALIASES(nvJitLinkDestroy)

PUBLIC int nvJitLinkAddData(Handle handle, int type, const void* data, size_t size,
                            const char* name) {
    if (handle == 0 || data == NULL)
        return ERROR_NULL_INPUT;
    return ask(ERROR_INTERNAL, "add_data", "(ninny)", N(handle), type, N(data), N(size),
               name != NULL ? name : "");
}
ALIASES(nvJitLinkAddData)

PUBLIC int nvJitLinkAddFile(Handle handle, int type, const char* name) {
    if (handle == 0 || name == NULL)
        return ERROR_NULL_INPUT;
    return ask(ERROR_INTERNAL, "add_file", "(niy)", N(handle), type, name);
}
ALIASES(nvJitLinkAddFile)

PUBLIC int nvJitLinkComplete(Handle handle) {
    if (handle == 0)
        return ERROR_NULL_INPUT;
    return ask(ERROR_INTERNAL, "complete", "(n)", N(handle));
}
ALIASES(nvJitLinkComplete)

static int get_size(Handle handle, int what, size_t* size) {
    if (handle == 0 || size == NULL)
        return ERROR_NULL_INPUT;
    return ask(ERROR_INTERNAL, "get_size", "(nin)", N(handle), what, N(size));
}

static int get(Handle handle, int what, char* here) {
    if (handle == 0 || here == NULL)
        return ERROR_NULL_INPUT;
    return ask(ERROR_INTERNAL, "get", "(nin)", N(handle), what, N(here));
}

#define RESULT(name, what)                                                                         \
    PUBLIC int nvJitLinkGet##name##Size(Handle handle, size_t* size) {                             \
        return get_size(handle, what, size);                                                       \
    }                                                                                              \
    ALIASES(nvJitLinkGet##name##Size)                                                              \
    PUBLIC int nvJitLinkGet##name(Handle handle, char* to) {                                       \
        return get(handle, what, to);                                                              \
    }                                                                                              \
    ALIASES(nvJitLinkGet##name)

RESULT(LinkedCubin, CUBIN)
RESULT(LinkedPtx, PTX)
RESULT(LinkedLTOIR, LTOIR)
RESULT(ErrorLog, ERROR_LOG)
RESULT(InfoLog, INFO_LOG)

PUBLIC int nvJitLinkVersion(unsigned int* major, unsigned int* minor) {
    if (major == NULL || minor == NULL)
        return ERROR_NULL_INPUT;
    return ask(ERROR_INTERNAL, "version", "(nn)", N(major), N(minor));
}

/* The address of the real library's __nvJitLinkAPI, once it was asked for. */
void* pylink_standin_api __attribute__((visibility("hidden")));

static int no_api(void) {
    return ERROR_INTERNAL;
}

__attribute__((visibility("hidden"), used)) void pylink_standin_find_api(void) {
    void* api = NULL;
    int result = ask(ERROR_INTERNAL, "find_api", "(n)", N(&api));
    pylink_standin_api = result == SUCCESS ? api : (void*)no_api;
}

/* The arguments of the function are unknown: all registers that could hold arguments keep their
   values. */
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
__asm__(".text\n"
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
