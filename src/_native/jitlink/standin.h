/* A library with nvJitLink's name and interface, which forwards calls to its installer, an object
   of Python that pylink_standin_install sets. A call that lacks a handle or pointer that it needs
   returns NVJITLINK_ERROR_NULL_INPUT at once.

   Each major release has a file of its own, which defines MAJOR. The dynamic linker knows libraries
   by DT_SONAME: if this one is loaded first, programs that open libnvJitLink get it.

   The interface is that of nvJitLink.h: each function has a plain name and, except for
   nvJitLinkVersion, an alias for each minor release. `__nvJitLinkAPI` is not documented, but other
   libraries of CUDA call it: here it is a jump to the real library's function of this name.

   Handles are numbers that the installer gives out. Code that cleans up may call while an
   exception of Python is set: that exception is set aside during the call. If the
   installer raises, the result is NVJITLINK_ERROR_INTERNAL; an exception that ends programs, such
   as KeyboardInterrupt, is also raised in the main thread when that runs Python code again. After
   the installer is gone, calls return NVJITLINK_ERROR_INTERNAL. Only destroying a handle still
   succeeds: programs do that at their very end. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Values of nvJitLinkResult. */
enum { SUCCESS = 0, ERROR_INTERNAL = 6, ERROR_NULL_INPUT = 10 };

typedef uintptr_t Handle;

/* The results of a link that get_size and get are asked for: indices of RESULTS in
   jitlink/real.py. */
enum { CUBIN, PTX, LTOIR, ERROR_LOG, INFO_LOG };

/* The object whose methods `call_installer` calls, or NULL. Methods get addresses as numbers.
   Changed with the GIL held. */
static PyObject* volatile installer;

/* An exception that ends programs, which waits to be raised in the main thread; or NULL. */
static PyObject *ending_type, *ending_value, *ending_traceback;

/* The state of the interpreter before a call of the installer: GIL, and the exception that is set.
   */
struct Interrupted {
    PyGILState_STATE state;
    PyObject *type, *value, *traceback;
};

/* Take the GIL, and set the exception aside that may be set. */
static struct Interrupted enter(void) {
    struct Interrupted before;
    before.state = PyGILState_Ensure();
    PyErr_Fetch(&before.type, &before.value, &before.traceback);
    return before;
}

/* Undo `enter`: set the exception again, and release the GIL. */
static void leave(struct Interrupted before) {
    PyErr_Restore(before.type, before.value, before.traceback);
    PyGILState_Release(before.state);
}

/* Raise the waiting exception; called by the main thread. */
static int raise_again(void* unused) {
    (void)unused;
    PyErr_Restore(ending_type, ending_value, ending_traceback);
    ending_type = ending_value = ending_traceback = NULL;
    return -1;
}

/* Clear the exception that the installer raised; one that ends programs waits for the main thread.
   Returns ERROR_INTERNAL. */
static int clear_exception(void) {
    if (PyErr_ExceptionMatches(PyExc_Exception) || ending_type != NULL) {
        PyErr_Clear();
    } else {
        PyErr_Fetch(&ending_type, &ending_value, &ending_traceback);
        if (Py_AddPendingCall(raise_again, NULL) != 0) { /* the queue is full: it is lost */
            Py_CLEAR(ending_type);
            Py_CLEAR(ending_value);
            Py_CLEAR(ending_traceback);
        }
    }
    return ERROR_INTERNAL;
}

/* Call a method of the installer, a Python object; `format` makes a tuple of the arguments.
   Returns the method's result, an nvJitLinkResult; ERROR_INTERNAL if it raises, and `otherwise` if
   there is no installer. */
static int call_installer(int otherwise, const char* method, const char* format, ...) {
    int result = otherwise;
    if (installer == NULL)
        return result;
    struct Interrupted before = enter();
    PyObject* current = installer;
    if (current != NULL) {
        va_list list;
        va_start(list, format);
        PyObject* arguments = Py_VaBuildValue(format, list);
        va_end(list);
        PyObject* function = arguments ? PyObject_GetAttrString(current, method) : NULL;
        PyObject* returned = function ? PyObject_Call(function, arguments, NULL) : NULL;
        long number = returned ? PyLong_AsLong(returned) : -1;
        result = PyErr_Occurred() ? clear_exception() : (int)number;
        Py_XDECREF(returned);
        Py_XDECREF(function);
        Py_XDECREF(arguments);
    }
    leave(before);
    return result;
}

/* A number or address as an argument for format `n`. */
#define N(value) ((Py_ssize_t)(value))

#define PUBLIC __attribute__((visibility("default")))

/* Set the installer, or remove it (NULL). The caller holds the GIL. */
PUBLIC void pylink_standin_install(PyObject* installed) {
    Py_XINCREF(installed);
    PyObject* before = installer;
    installer = installed;
    Py_XDECREF(before);
}

/* ALIASES(f) defines a second name of `f` for each minor release, such as __f_13_0 to __f_13_9. */
#define ALIAS_(name, major, minor)                                                                 \
    extern __typeof__(name) __##name##_##major##_##minor PUBLIC __attribute__((alias(#name)));
#define ALIAS(name, major, minor) ALIAS_(name, major, minor)
#define ALIASES(name)                                                                              \
    ALIAS(name, MAJOR, 0)                                                                          \
    ALIAS(name, MAJOR, 1)                                                                          \
    ALIAS(name, MAJOR, 2)                                                                          \
    ALIAS(name, MAJOR, 3)                                                                          \
    ALIAS(name, MAJOR, 4)                                                                          \
    ALIAS(name, MAJOR, 5)                                                                          \
    ALIAS(name, MAJOR, 6) ALIAS(name, MAJOR, 7) ALIAS(name, MAJOR, 8) ALIAS(name, MAJOR, 9)

PUBLIC int nvJitLinkCreate(Handle* handle, uint32_t count, const char* const* options) {
    if (handle == NULL || (count != 0 && options == NULL))
        return ERROR_NULL_INPUT;
    *handle = 0;
    return call_installer(ERROR_INTERNAL, "create", "(nnn)", N(handle), N(count), N(options));
}
ALIASES(nvJitLinkCreate)

PUBLIC int nvJitLinkDestroy(Handle* handle) {
    if (handle == NULL || *handle == 0)
        return ERROR_NULL_INPUT;
    int result = call_installer(SUCCESS, "destroy", "(n)", N(*handle));
    *handle = 0;
    return result;
}
ALIASES(nvJitLinkDestroy)

PUBLIC int nvJitLinkAddData(Handle handle, int type, const void* data, size_t size,
                            const char* name) {
    if (handle == 0 || data == NULL)
        return ERROR_NULL_INPUT;
    return call_installer(ERROR_INTERNAL, "add_data", "(ninny)", N(handle), type, N(data), N(size),
                          name != NULL ? name : "");
}
ALIASES(nvJitLinkAddData)

PUBLIC int nvJitLinkAddFile(Handle handle, int type, const char* name) {
    if (handle == 0 || name == NULL)
        return ERROR_NULL_INPUT;
    return call_installer(ERROR_INTERNAL, "add_file", "(niy)", N(handle), type, name);
}
ALIASES(nvJitLinkAddFile)

PUBLIC int nvJitLinkComplete(Handle handle) {
    if (handle == 0)
        return ERROR_NULL_INPUT;
    return call_installer(ERROR_INTERNAL, "complete", "(n)", N(handle));
}
ALIASES(nvJitLinkComplete)

/* Set the size in bytes of `content`, a result of the link such as ERROR_LOG. */
static int get_size(Handle handle, int content, size_t* size) {
    if (handle == 0 || size == NULL)
        return ERROR_NULL_INPUT;
    return call_installer(ERROR_INTERNAL, "get_size", "(nin)", N(handle), content, N(size));
}

/* Copy `content`, a result of the link, to the caller's buffer, which has room for it. */
static int get(Handle handle, int content, char* buffer) {
    if (handle == 0 || buffer == NULL)
        return ERROR_NULL_INPUT;
    return call_installer(ERROR_INTERNAL, "get", "(nin)", N(handle), content, N(buffer));
}

/* Define the two functions of a result: one gets its size, the other its contents. */
#define RESULT(name, content)                                                                      \
    PUBLIC int nvJitLinkGet##name##Size(Handle handle, size_t* size) {                             \
        return get_size(handle, content, size);                                                    \
    }                                                                                              \
    ALIASES(nvJitLinkGet##name##Size)                                                              \
    PUBLIC int nvJitLinkGet##name(Handle handle, char* buffer) {                                   \
        return get(handle, content, buffer);                                                       \
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
    return call_installer(ERROR_INTERNAL, "version", "(nn)", N(major), N(minor));
}

/* The address of the real library's __nvJitLinkAPI, or of no_api if it has none; NULL before the
   first call. */
void* pylink_standin_api __attribute__((visibility("hidden")));

/* Stands for a missing __nvJitLinkAPI. */
static int no_api(void) {
    return ERROR_INTERNAL;
}

/* Set pylink_standin_api. Called by the jump below. */
__attribute__((visibility("hidden"), used)) void pylink_standin_find_api(void) {
    void* api = NULL;
    int result = call_installer(ERROR_INTERNAL, "find_api", "(n)", N(&api));
    pylink_standin_api = result == SUCCESS ? api : (void*)no_api;
}

/* Jump to the real library's function; the first call looks for its address. The function's
   parameters are unknown, so all registers that can hold arguments are saved and restored. */
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
