/* What all entry points have in common: how values get from Fortran to C and back. */
#ifndef WEFT_FORTRAN_H
#define WEFT_FORTRAN_H

#include <ISO_Fortran_binding.h>
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "weft_weak.h"

/* Entry points call C's function of the same name, so that a tool of any language sees each call once. The sources of entries are
   compiled twice, for MPI's names and for PMPI's. */
#ifdef WEFT_PROFILED
#define WEFT_ENTRY(result, name, arguments) result p##name##_ arguments
#define WEFT_C(function) P##function
#else
#define WEFT_ENTRY(result, name, arguments) result name##_ arguments
#define WEFT_C(function) function
#endif

/* An entry point that calls no function of C has both names. */
#define WEFT_ALONE(name, arguments)                                                    \
    void p##name##_ arguments;                                                         \
    void name##_ arguments __attribute__((weak, alias("p" #name "_")));                \
    void p##name##_ arguments

/* A function that this MPI library lacks is told when it is called, not when a program is linked. */
#define WEFT_LACKS(function) WEFT_LACKS_(function)
#define WEFT_LACKS_(function)                                                          \
    if (__builtin_expect(!function, 0)) {                                              \
        weft_ierror(ierror, weft_lacks(#function));                                    \
        return;                                                                        \
    }

int weft_lacks(const char *function) __attribute__((visibility("hidden")));

/* The error code is optional in mpi_f08. */
static inline void weft_ierror(int *ierror, int rc)
{
    if (ierror)
        *ierror = rc;
}

/* Arrays and strings up to these sizes need no memory from the heap. */
enum { WEFT_FEW = 32, WEFT_SHORT = 256 };

static inline void *weft_room(void *few, int n, size_t size)
{
    return few && n <= WEFT_FEW ? few : malloc((size_t)n * size);
}

static inline void weft_drop(void *taken, void *few)
{
    if (taken != few)
        free(taken);
}

/* Handles: those of the standard are the same numbers in both languages. */
#define WEFT_HANDLE(name, type)                                                        \
    static inline type weft_##name##_in(int value)                                     \
    {                                                                                  \
        return (unsigned)value < 0x1000u ? (type)(intptr_t)value                       \
                                         : PMPI_##name##_fromint(value);               \
    }                                                                                  \
    static inline int weft_##name##_out(type handle)                                   \
    {                                                                                  \
        return (uintptr_t)handle < 0x1000u ? (int)(intptr_t)handle                     \
                                           : PMPI_##name##_toint(handle);              \
    }                                                                                  \
    static inline type *weft_##name##_list(const int *from, int n, type *few, int in)  \
    {                                                                                  \
        type *to = weft_room(few, n, sizeof(type));                                    \
        for (int i = 0; i < n; i++)                                                    \
            to[i] = in ? weft_##name##_in(from[i]) : (type)0;                          \
        return to;                                                                     \
    }                                                                                  \
    static inline void weft_##name##_unlist(int *to, int n, const type *from)          \
    {                                                                                  \
        for (int i = 0; i < n; i++)                                                    \
            if (from[i])                                                               \
                to[i] = weft_##name##_out(from[i]);                                    \
    }

WEFT_HANDLE(Comm, MPI_Comm)
WEFT_HANDLE(Errhandler, MPI_Errhandler)
WEFT_HANDLE(File, MPI_File)
WEFT_HANDLE(Group, MPI_Group)
WEFT_HANDLE(Info, MPI_Info)
WEFT_HANDLE(Message, MPI_Message)
WEFT_HANDLE(Op, MPI_Op)
WEFT_HANDLE(Request, MPI_Request)
WEFT_HANDLE(Session, MPI_Session)
WEFT_HANDLE(Type, MPI_Datatype)
WEFT_HANDLE(Win, MPI_Win)

/* Addresses that mean something: variables of Fortran. */
extern int weft_bottom_, weft_in_place_, weft_buffer_automatic_;
extern int weft_unweighted_[1], weft_weights_empty_[1], weft_errcodes_ignore_[1];
extern int weft_status_ignore_[8], weft_statuses_ignore_[8];
extern char weft_argv_null_[1], weft_argvs_null_[1];

/* What follows is known within the library alone: no call of it takes a detour. */
#pragma GCC visibility push(hidden)

/* Where these variables lie, asked once; the program's own variables may lie between them. */
extern uintptr_t weft_special, weft_special_span;

static inline void *weft_buffer(void *at)
{
    if (__builtin_expect((uintptr_t)at - weft_special > weft_special_span, 1))
        return at;
    return at == &weft_in_place_ ? MPI_IN_PLACE
        : at == &weft_bottom_ ? MPI_BOTTOM
        : at == &weft_buffer_automatic_ ? MPI_BUFFER_AUTOMATIC : at;
}

static inline MPI_Status *weft_status(MPI_Status *at)
{
    void *one = at;
    int ignored = one == weft_status_ignore_ || one == weft_statuses_ignore_;
    return ignored ? MPI_STATUS_IGNORE : at;
}

static inline int *weft_weights(int *at)
{
    return at == weft_unweighted_ ? MPI_UNWEIGHTED
        : at == weft_weights_empty_ ? MPI_WEIGHTS_EMPTY : at;
}

static inline int *weft_error_codes(int *at)
{
    return at == weft_errcodes_ignore_ ? MPI_ERRCODES_IGNORE : at;
}

/* The compiler's own truth, asked once. */
typedef int weft_logical;
extern weft_logical weft_true, weft_false;

static inline int weft_is_true(weft_logical value)
{
    return value != weft_false;
}

static inline weft_logical weft_truth(int value)
{
    return value ? weft_true : weft_false;
}

int *weft_truths_in(const weft_logical *from, int n, int *few);
void weft_truths_out(weft_logical *to, int n, const int *from);

/* Strings: Fortran's are padded with blanks, C's end with NUL. */
enum { WEFT_AS_IT_IS, WEFT_TRIMMED };
char *weft_string_in(const char *from, size_t length, int front, char *few);
char *weft_string_room(char *few, int size);
void weft_string_out(char *to, size_t length, const char *from);
char **weft_argv(const char *from, size_t length, size_t step, int count);
char ***weft_argvs(const char *from, size_t length, int count);
void weft_argvs_drop(char ***argvs);

void weft_from_one(int *places, int count);

/* Groups that arrays have an element for. */
enum { WEFT_ALL, WEFT_DESTINATIONS, WEFT_SOURCES };
int weft_peers(MPI_Comm comm, int which, const void *buffer);
int weft_dimensions(MPI_Comm comm);

/* Tells the library about this compiler, once it runs. */
void weft_begin(void);

/* Attributes: an attribute that Fortran sets lies in memory, where C finds it. */
enum { WEFT_AINT, WEFT_INT };
void *weft_attribute_in(int keyval, MPI_Aint value, int width);
MPI_Aint weft_attribute(int keyval, void *attribute);
void *weft_attribute_like(int keyval, MPI_Aint value, void *original);
void weft_attribute_drop(int keyval, void *attribute);

/* Callbacks. */
typedef void weft_function(void);
void *weft_state(weft_function *const functions[3], MPI_Aint state, MPI_Aint *variable);
MPI_Comm_copy_attr_function weft_Comm_copy_attr_function;
MPI_Comm_delete_attr_function weft_Comm_delete_attr_function;
MPI_Type_copy_attr_function weft_Type_copy_attr_function;
MPI_Type_delete_attr_function weft_Type_delete_attr_function;
MPI_Win_copy_attr_function weft_Win_copy_attr_function;
MPI_Win_delete_attr_function weft_Win_delete_attr_function;
MPI_Copy_function weft_Copy_function;
MPI_Delete_function weft_Delete_function;
MPI_Grequest_query_function weft_Grequest_query_function;
MPI_Grequest_free_function weft_Grequest_free_function;
MPI_Grequest_cancel_function weft_Grequest_cancel_function;
MPI_Datarep_extent_function weft_Datarep_extent_function;
MPI_Datarep_conversion_function weft_read_conversion, weft_write_conversion;
MPI_Datarep_conversion_function_c weft_read_conversion_c, weft_write_conversion_c;
#pragma GCC visibility push(default)
void mpi_conversion_fn_null_(void);
void mpi_conversion_fn_null_c_(void);
#pragma GCC visibility pop
#define WEFT_CONVERSION(function, trampoline)                                          \
    ((function) == mpi_conversion_fn_null_ || (function) == mpi_conversion_fn_null_c_  \
         ? NULL : trampoline)
MPI_User_function *weft_slot_User_function(weft_function *function);
MPI_User_function_c *weft_slot_User_function_c(weft_function *function);
MPI_Comm_errhandler_function *weft_slot_Comm_errhandler_function(weft_function *function);
MPI_File_errhandler_function *weft_slot_File_errhandler_function(weft_function *function);
MPI_Win_errhandler_function *weft_slot_Win_errhandler_function(weft_function *function);
MPI_Session_errhandler_function *
weft_slot_Session_errhandler_function(weft_function *function);

/* Sections of arrays. */
enum { WEFT_READ = 1, WEFT_WRITE = 2, WEFT_NO_COPY = 4, WEFT_PERSISTENT = 8 };

/* What stands for a section in the call. */
typedef struct {
    void *at;
    MPI_Count count;
    MPI_Datatype type;
    /* A datatype made for it, to be freed behind the call. */
    MPI_Datatype made;
    /* A copy without gaps, to be written back if `use` says so. */
    void *copy;
    const CFI_cdesc_t *section;
    /* Below 0 where the section cannot be taken. */
    int use;
} weft_view;

int weft_has_gaps(const CFI_cdesc_t *section);
weft_view weft_whole_gaps(const CFI_cdesc_t *section, MPI_Count count, MPI_Datatype type, int use);
weft_view weft_blocks_gaps(const CFI_cdesc_t *section, MPI_Datatype type, int use);
weft_view weft_packed_gaps(const CFI_cdesc_t *section, int use);
weft_view weft_no_gaps(void);
void weft_view_close(weft_view *view, int rc, const int *request);

/* Scalars, and vectors that are whole, are told at once. */
static inline int weft_gaps(const CFI_cdesc_t *section)
{
    if (section->rank == 0)
        return 0;
    if (section->rank == 1 && section->dim[0].sm == (CFI_index_t)section->elem_len)
        return 0;
    return weft_has_gaps(section);
}

/* Whose error handler hears of it. */
enum { WEFT_COMM, WEFT_WIN, WEFT_FILE, WEFT_SESSION };
int weft_refused(int owner, int handle, const char *argument);

/* Without gaps the address is all that is needed; a view is made only with them. */
#define WEFT_VIEW(name, counted, typed, gaps, refused)                                 \
    void *name##_at;                                                                   \
    MPI_Count name##_count = counted;                                                  \
    MPI_Datatype name##_type = typed;                                                  \
    weft_view name##_v;                                                                \
    const int name##_g = weft_gaps(name);                                              \
    (void)name##_count, (void)name##_type;                                             \
    if (__builtin_expect(name##_g, 0)) {                                               \
        name##_v = gaps;                                                               \
        if (name##_v.use < 0) {                                                        \
            weft_ierror(ierror, refused);                                              \
            return;                                                                    \
        }                                                                              \
        name##_at = name##_v.at;                                                       \
        name##_count = name##_v.count;                                                 \
        name##_type = name##_v.type;                                                   \
    } else                                                                             \
        name##_at = weft_buffer(name->base_addr);

#define WEFT_VIEW_END(name, request)                                                   \
    if (__builtin_expect(name##_g, 0))                                                 \
        weft_view_close(&name##_v, rc, request);

/* What requests keep until they are complete. */
void weft_keep(const int *request, int rc, void *memory, int use);
void weft_keep_copy(const int *request, weft_view *view);
extern int weft_kept;
void weft_complete(int n, const int *requests, int index);
void weft_completed_some(int n, const int *places, const int *requests);
void weft_start(int n, const int *requests);
void weft_write_back(int request);
void weft_forget(int request);

/* After an error those are complete whose handle C has taken; the others' memory is still in use. */
static inline void
weft_completed(int rc, int n, const int *requests, const MPI_Request *left)
{
    if (__builtin_expect(!__atomic_load_n(&weft_kept, __ATOMIC_RELAXED), 1))
        return;
    for (int i = 0; i < n; i++)
        if (rc == MPI_SUCCESS || left[i] == MPI_REQUEST_NULL)
            weft_complete(i + 1, requests, i);
}

static inline void weft_completed_one(int index, const int *requests)
{
    if (__builtin_expect(__atomic_load_n(&weft_kept, __ATOMIC_RELAXED), 0) && index >= 0)
        weft_complete(index + 1, requests, index);
}

static inline void weft_started(int n, const int *requests)
{
    if (__builtin_expect(__atomic_load_n(&weft_kept, __ATOMIC_RELAXED), 0))
        weft_start(n, requests);
}

static inline void weft_arrived(const int *request)
{
    if (__builtin_expect(__atomic_load_n(&weft_kept, __ATOMIC_RELAXED), 0))
        weft_write_back(*request);
}

static inline void weft_freed(const int *request)
{
    if (__builtin_expect(__atomic_load_n(&weft_kept, __ATOMIC_RELAXED), 0))
        weft_forget(*request);
}

/* Elements of a section to and from memory without gaps. */
void weft_pack(const CFI_cdesc_t *section, void *to);
void weft_unpack(const CFI_cdesc_t *section, const void *from);
size_t weft_bytes(const CFI_cdesc_t *section);

#pragma GCC visibility pop

#endif
