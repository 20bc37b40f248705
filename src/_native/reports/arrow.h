/* Structures of the Arrow C data and stream interfaces, and the export of columns through them.
   
   Source: "The Arrow C data interface" and "The Arrow C stream interface" of the Arrow
   specification. A consumer may move any structure and release it later, on any thread. So a schema
   owns copies of its names. An array, like the stream, owns a reference to the Python object that
   holds the buffers.
 */

#ifndef PYLINK_ARROW_H
#define PYLINK_ARROW_H

#include <Python.h>

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ARROW_NULLABLE 2 /* a flag of ArrowSchema */

/* The three structures of the specification, which describes their fields. */
struct ArrowSchema {
    const char* format;
    const char* name;
    const char* metadata;
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema** children;
    struct ArrowSchema* dictionary;
    void (*release)(struct ArrowSchema*);
    void* private_data;
};

struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void** buffers;
    struct ArrowArray** children;
    struct ArrowArray* dictionary;
    void (*release)(struct ArrowArray*);
    void* private_data;
};

struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream*, struct ArrowSchema*);
    int (*get_next)(struct ArrowArrayStream*, struct ArrowArray*);
    const char* (*get_last_error)(struct ArrowArrayStream*);
    void (*release)(struct ArrowArrayStream*);
    void* private_data;
};

/* A column. `values` are numbers, a bit for each row, or codes of texts, which are the indices of
   the texts in the dictionary. */
typedef struct {
    const char* format; /* Arrow's letter for the type of `values` */
    const char* name;
    const void* values;
    const void* valid;   /* a bit for each row, 0 for null; NULL without nulls */
    int64_t nulls;       /* number of nulls */
    int64_t texts;       /* number of texts in the dictionary; -1: no dictionary */
    const void* offsets; /* int32: where each text starts in `bytes`, and the end of the last */
    const void* bytes;   /* UTF-8 */
} ArrowColumn;

/* The state of a stream, which gives one batch of all rows, then the end. */
typedef struct {
    PyObject* owner; /* keeps the buffers of the columns */
    int64_t rows;
    int64_t count; /* number of columns */
    int done;      /* the batch was given */
    ArrowColumn* columns;
} ArrowTable;

/* Drop a reference to `owner`, on any thread. Does nothing for NULL, and after Python has ended. */
static void arrow_release_owner(PyObject* owner) {
    PyGILState_STATE state;
    if (owner == NULL || !Py_IsInitialized())
        return;
    state = PyGILState_Ensure();
    Py_DECREF(owner);
    PyGILState_Release(state);
}

/* Return a new reference to `owner`, on any thread. */
static PyObject* arrow_hold_owner(PyObject* owner) {
    PyGILState_STATE state = PyGILState_Ensure();
    Py_INCREF(owner);
    PyGILState_Release(state);
    return owner;
}

/* Free what a schema consists of, as its callback `release`. */
static void arrow_release_schema(struct ArrowSchema* schema) {
    int64_t i;
    for (i = 0; i < schema->n_children; i++) {
        struct ArrowSchema* child = schema->children[i];
        if (child != NULL && child->release != NULL)
            child->release(child);
        free(child);
    }
    free(schema->children);
    if (schema->dictionary != NULL && schema->dictionary->release != NULL)
        schema->dictionary->release(schema->dictionary);
    free(schema->dictionary);
    free((void*)schema->format);
    free((void*)schema->name);
    schema->release = NULL;
}

/* Fill a schema, with copies of `format` and `name`, and `children` NULLs for its children. Returns
   0, or -1 without memory. */
static int arrow_new_schema(struct ArrowSchema* schema, const char* format, const char* name,
                            int64_t flags, int64_t children) {
    memset(schema, 0, sizeof *schema);
    schema->release = arrow_release_schema;
    schema->flags = flags;
    schema->format = strdup(format);
    schema->name = strdup(name);
    if (children)
        schema->children = calloc((size_t)children, sizeof *schema->children);
    if (schema->children != NULL)
        schema->n_children = children;
    if (schema->format == NULL || schema->name == NULL || schema->n_children != children) {
        arrow_release_schema(schema);
        return -1;
    }
    return 0;
}

/* Fill the schema of a column. Returns 0, or -1 without memory. */
static int arrow_column_schema(struct ArrowSchema* schema, const ArrowColumn* column) {
    int64_t flags = column->valid != NULL ? ARROW_NULLABLE : 0;
    if (arrow_new_schema(schema, column->format, column->name, flags, 0))
        return -1;
    if (column->texts < 0)
        return 0;
    schema->dictionary = calloc(1, sizeof *schema->dictionary);
    if (schema->dictionary == NULL || arrow_new_schema(schema->dictionary, "u", "", 0, 0)) {
        arrow_release_schema(schema);
        return -1;
    }
    return 0;
}

/* Fill `schema`: a struct with a child for each column. Returns 0 or an errno, as get_schema. */
static int arrow_get_schema(struct ArrowArrayStream* stream, struct ArrowSchema* schema) {
    const ArrowTable* table = stream->private_data;
    int64_t i;
    if (arrow_new_schema(schema, "+s", "", 0, table->count))
        return ENOMEM;
    for (i = 0; i < table->count; i++) {
        schema->children[i] = calloc(1, sizeof **schema->children);
        if (schema->children[i] == NULL ||
            arrow_column_schema(schema->children[i], &table->columns[i])) {
            arrow_release_schema(schema);
            return ENOMEM;
        }
    }
    return 0;
}

/* Free what an array consists of, and drop its owner, as its callback `release`. */
static void arrow_release_array(struct ArrowArray* array) {
    int64_t i;
    for (i = 0; i < array->n_children; i++) {
        struct ArrowArray* child = array->children[i];
        if (child != NULL && child->release != NULL)
            child->release(child);
        free(child);
    }
    free(array->children);
    if (array->dictionary != NULL && array->dictionary->release != NULL)
        array->dictionary->release(array->dictionary);
    free(array->dictionary);
    free(array->buffers);
    array->release = NULL;
    arrow_release_owner(array->private_data);
}

/* Fill an array, with a reference to `owner`, and NULLs for its buffers and children: `buffers` and
   `children` are their numbers. Returns 0, or -1 without memory. */
static int arrow_new_array(struct ArrowArray* array, PyObject* owner, int64_t length,
                           int64_t buffers, int64_t children) {
    memset(array, 0, sizeof *array);
    array->release = arrow_release_array;
    array->length = length;
    array->buffers = calloc((size_t)buffers, sizeof *array->buffers);
    if (array->buffers != NULL)
        array->n_buffers = buffers;
    if (children)
        array->children = calloc((size_t)children, sizeof *array->children);
    if (array->children != NULL)
        array->n_children = children;
    if (array->buffers == NULL || array->n_children != children) {
        arrow_release_array(array);
        return -1;
    }
    array->private_data = arrow_hold_owner(owner);
    return 0;
}

/* Fill the array of a column. Returns 0, or -1 without memory. */
static int arrow_column_array(struct ArrowArray* array, const ArrowColumn* column, PyObject* owner,
                              int64_t rows) {
    if (arrow_new_array(array, owner, rows, 2, 0))
        return -1;
    array->buffers[0] = column->valid;
    array->buffers[1] = column->values;
    array->null_count = column->nulls;
    if (column->texts < 0)
        return 0;
    array->dictionary = calloc(1, sizeof *array->dictionary);
    if (array->dictionary == NULL ||
        arrow_new_array(array->dictionary, owner, column->texts, 3, 0)) {
        arrow_release_array(array);
        return -1;
    }
    array->dictionary->buffers[1] = column->offsets;
    array->dictionary->buffers[2] = column->bytes;
    return 0;
}

/* Fill `array` with all rows at the first call, and with zeros later: no more batches follow.
   Returns 0 or an errno, as get_next. */
static int arrow_get_next(struct ArrowArrayStream* stream, struct ArrowArray* array) {
    ArrowTable* table = stream->private_data;
    int64_t i;
    if (table->done) {
        memset(array, 0, sizeof *array);
        return 0;
    }
    if (arrow_new_array(array, table->owner, table->rows, 1, table->count))
        return ENOMEM;
    for (i = 0; i < table->count; i++) {
        array->children[i] = calloc(1, sizeof **array->children);
        if (array->children[i] == NULL ||
            arrow_column_array(array->children[i], &table->columns[i], table->owner, table->rows)) {
            arrow_release_array(array);
            return ENOMEM;
        }
    }
    table->done = 1;
    return 0;
}

/* Return why `get_schema` or `get_next` failed, as `get_last_error`: only memory can be missing. */
static const char* arrow_get_last_error(struct ArrowArrayStream* stream) {
    (void)stream;
    return "out of memory";
}

/* Free the table of a stream, and drop its owner, as its callback `release`. */
static void arrow_release_stream(struct ArrowArrayStream* stream) {
    ArrowTable* table = stream->private_data;
    stream->release = NULL;
    arrow_release_owner(table->owner);
    free(table->columns);
    free(table);
}

/* Return a stream that owns `table`; NULL without memory, and then the caller still owns it. */
static struct ArrowArrayStream* arrow_new_stream(ArrowTable* table) {
    struct ArrowArrayStream* stream = calloc(1, sizeof *stream);
    if (stream == NULL)
        return NULL;
    stream->get_schema = arrow_get_schema;
    stream->get_next = arrow_get_next;
    stream->get_last_error = arrow_get_last_error;
    stream->release = arrow_release_stream;
    stream->private_data = table;
    return stream;
}

#endif
