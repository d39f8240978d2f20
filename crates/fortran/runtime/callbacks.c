/* Callbacks: C's functions that call Fortran's. */
#include "weft_fortran.h"

#include <pthread.h>
#include <stdio.h>

/* What C hands back to callbacks that have a state: Fortran's functions with Fortran's state. */
typedef struct {
    weft_function *functions[3];
    MPI_Aint state;
    /* The program's variable, if callbacks may change it; NULL if callbacks get a value. */
    MPI_Aint *variable;
} state;

void *weft_state(weft_function *const functions[3], MPI_Aint value, MPI_Aint *variable)
{
    state *made = malloc(sizeof(state));
    memcpy(made->functions, functions, sizeof(made->functions));
    made->state = value;
    made->variable = variable;
    return made;
}

/* Copies a state that a callback has changed to the program's variable, since Fortran passes the state by reference. If the state
   was an expression, its memory may be in other use: it is changed only if it still holds the state. */
static void changed(const state *s, MPI_Aint before)
{
    if (s->state != before && s->variable && *s->variable == before)
        *s->variable = s->state;
}

#define COPY(name, type, handle, integer)                                              \
    int weft_##name(type object, int keyval, void *extra, void *in, void *out, int *flag) \
    {                                                                                  \
        typedef void function(int *, int *, integer *, integer *, integer *,           \
                              weft_logical *, int *);                                  \
        state *s = extra;                                                              \
        int number = weft_##handle##_out(object), rc = MPI_SUCCESS;                    \
        integer value = (integer)s->state, from = (integer)weft_attribute(keyval, in), to = 0; \
        weft_logical copied = weft_false;                                              \
        ((function *)s->functions[0])(&number, &keyval, &value, &from, &to, &copied, &rc); \
        *flag = weft_is_true(copied);                                                  \
        /* Only a successful copy is stored. */                                        \
        *(void **)out = rc == MPI_SUCCESS && *flag ? weft_attribute_like(keyval, to, in) \
                                                   : (void *)(intptr_t)to;             \
        return rc;                                                                     \
    }
#define DELETE(name, type, handle, integer)                                            \
    int weft_##name(type object, int keyval, void *in, void *extra)                    \
    {                                                                                  \
        typedef void function(int *, int *, integer *, integer *, int *);              \
        state *s = extra;                                                              \
        int number = weft_##handle##_out(object), rc = MPI_SUCCESS;                    \
        integer value = (integer)s->state, from = (integer)weft_attribute(keyval, in); \
        ((function *)s->functions[1])(&number, &keyval, &from, &value, &rc);           \
        if (rc == MPI_SUCCESS)                                                         \
            weft_attribute_drop(keyval, in);                                           \
        return rc;                                                                     \
    }
COPY(Comm_copy_attr_function, MPI_Comm, Comm, MPI_Aint)
COPY(Type_copy_attr_function, MPI_Datatype, Type, MPI_Aint)
COPY(Win_copy_attr_function, MPI_Win, Win, MPI_Aint)
COPY(Copy_function, MPI_Comm, Comm, int)
DELETE(Comm_delete_attr_function, MPI_Comm, Comm, MPI_Aint)
DELETE(Type_delete_attr_function, MPI_Datatype, Type, MPI_Aint)
DELETE(Win_delete_attr_function, MPI_Win, Win, MPI_Aint)
DELETE(Delete_function, MPI_Comm, Comm, int)

/* Predefined ones, as Fortran calls them. */
#define PREDEFINED(kind, integer)                                                      \
    void mpi_##kind##null_copy_fn_(int *object, int *keyval, integer *extra, integer *in, \
                                   integer *out, weft_logical *flag, int *ierror)      \
    {                                                                                  \
        (void)object, (void)keyval, (void)extra, (void)in, (void)out;                  \
        *flag = weft_false;                                                            \
        *ierror = MPI_SUCCESS;                                                         \
    }                                                                                  \
    void mpi_##kind##dup_fn_(int *object, int *keyval, integer *extra, integer *in,    \
                             integer *out, weft_logical *flag, int *ierror)            \
    {                                                                                  \
        (void)object, (void)keyval, (void)extra;                                       \
        *out = *in;                                                                    \
        *flag = weft_true;                                                             \
        *ierror = MPI_SUCCESS;                                                         \
    }                                                                                  \
    void mpi_##kind##null_delete_fn_(int *object, int *keyval, integer *in, integer *extra, \
                                     int *ierror)                                      \
    {                                                                                  \
        (void)object, (void)keyval, (void)extra, (void)in;                             \
        *ierror = MPI_SUCCESS;                                                         \
    }
PREDEFINED(comm_, MPI_Aint)
PREDEFINED(type_, MPI_Aint)
PREDEFINED(win_, MPI_Aint)
PREDEFINED(, int)

/* Their addresses count: they are never called. */
void mpi_conversion_fn_null_(void)
{
}

void mpi_conversion_fn_null_c_(void)
{
}

int weft_Grequest_query_function(void *extra, MPI_Status *status)
{
    typedef void function(MPI_Aint *, MPI_Status *, int *);
    state *s = extra;
    int rc = MPI_SUCCESS;
    const MPI_Aint before = s->state;
    ((function *)s->functions[0])(&s->state, status, &rc);
    changed(s, before);
    return rc;
}

int weft_Grequest_free_function(void *extra)
{
    typedef void function(MPI_Aint *, int *);
    state *s = extra;
    int rc = MPI_SUCCESS;
    const MPI_Aint before = s->state;
    ((function *)s->functions[1])(&s->state, &rc);
    changed(s, before);
    free(s);
    return rc;
}

int weft_Grequest_cancel_function(void *extra, int complete)
{
    typedef void function(MPI_Aint *, weft_logical *, int *);
    state *s = extra;
    int rc = MPI_SUCCESS;
    weft_logical done = weft_truth(complete);
    const MPI_Aint before = s->state;
    ((function *)s->functions[2])(&s->state, &done, &rc);
    changed(s, before);
    return rc;
}

int weft_Datarep_extent_function(MPI_Datatype type, MPI_Aint *extent, void *extra)
{
    typedef void function(int *, MPI_Aint *, MPI_Aint *, int *);
    state *s = extra;
    int number = weft_Type_out(type), rc = MPI_SUCCESS;
    const MPI_Aint before = s->state;
    ((function *)s->functions[2])(&number, extent, &s->state, &rc);
    changed(s, before);
    return rc;
}

/* `extra` does not say which way: reading and writing are two functions. */
#define CONVERT(name, integer)                                                         \
    static int name(void *user, MPI_Datatype type, integer count, void *file,          \
                    MPI_Offset position, void *extra, int which)                       \
    {                                                                                  \
        typedef void function(void *, int *, integer *, void *, MPI_Offset *, MPI_Aint *, \
                              int *);                                                  \
        state *s = extra;                                                              \
        int number = weft_Type_out(type), rc = MPI_SUCCESS;                            \
        const MPI_Aint before = s->state;                                              \
        ((function *)s->functions[which])(user, &number, &count, file, &position, &s->state, \
                                          &rc);                                        \
        changed(s, before);                                                            \
        return rc;                                                                     \
    }
CONVERT(convert, int)
CONVERT(convert_large, MPI_Count)

int weft_read_conversion(void *user, MPI_Datatype type, int count, void *file, MPI_Offset position,
                         void *extra)
{
    return convert(user, type, count, file, position, extra, 0);
}

int weft_write_conversion(void *user, MPI_Datatype type, int count, void *file,
                          MPI_Offset position, void *extra)
{
    return convert(user, type, count, file, position, extra, 1);
}

int weft_read_conversion_c(void *user, MPI_Datatype type, MPI_Count count, void *file,
                           MPI_Offset position, void *extra)
{
    return convert_large(user, type, count, file, position, extra, 0);
}

int weft_write_conversion_c(void *user, MPI_Datatype type, MPI_Count count, void *file,
                            MPI_Offset position, void *extra)
{
    return convert_large(user, type, count, file, position, extra, 1);
}

/* Callbacks without a state: a C function for each Fortran function, from a store of them. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int slot(weft_function **taken, int slots, weft_function *function, const char *what)
{
    int i;
    pthread_mutex_lock(&lock);
    for (i = 0; i < slots && taken[i] && taken[i] != function; i++)
        ;
    if (i < slots)
        taken[i] = function;
    pthread_mutex_unlock(&lock);
    if (i == slots) {
        fprintf(stderr, "Fortran bindings: more than %d different functions for %s\n", slots, what);
        PMPI_Abort(MPI_COMM_WORLD, MPI_ERR_INTERN);
    }
    return i;
}

#define EIGHT(make, high)                                                              \
    make(high##0) make(high##1) make(high##2) make(high##3) make(high##4) make(high##5) \
        make(high##6) make(high##7)
#define ALL(make)                                                                      \
    EIGHT(make, 00) EIGHT(make, 01) EIGHT(make, 02) EIGHT(make, 03) EIGHT(make, 04)    \
        EIGHT(make, 05) EIGHT(make, 06) EIGHT(make, 07) EIGHT(make, 010)               \
            EIGHT(make, 011) EIGHT(make, 012) EIGHT(make, 013) EIGHT(make, 014)        \
                EIGHT(make, 015) EIGHT(make, 016) EIGHT(make, 017)
/* Numbers are octal: 128 slots. */
#define SLOTS 128

typedef void user(void *, void *, int *, int *);
typedef void user_large(void *, void *, MPI_Count *, int *);
typedef void handler(int *, int *);

static weft_function *users[SLOTS], *users_large[SLOTS];
static weft_function *comms[SLOTS], *files[SLOTS], *wins[SLOTS], *sessions[SLOTS];

#define NAME(n)                                                                        \
    static void user_##n(void *in, void *inout, int *len, MPI_Datatype *type)          \
    {                                                                                  \
        int number = weft_Type_out(*type);                                             \
        ((user *)users[n])(in, inout, len, &number);                                   \
    }                                                                                  \
    static void user_large_##n(void *in, void *inout, MPI_Count *len, MPI_Datatype *type) \
    {                                                                                  \
        int number = weft_Type_out(*type);                                             \
        ((user_large *)users_large[n])(in, inout, len, &number);                       \
    }                                                                                  \
    static void comm_##n(MPI_Comm *object, int *code, ...)                             \
    {                                                                                  \
        int number = weft_Comm_out(*object);                                           \
        ((handler *)comms[n])(&number, code);                                          \
    }                                                                                  \
    static void file_##n(MPI_File *object, int *code, ...)                             \
    {                                                                                  \
        int number = weft_File_out(*object);                                           \
        ((handler *)files[n])(&number, code);                                          \
    }                                                                                  \
    static void win_##n(MPI_Win *object, int *code, ...)                               \
    {                                                                                  \
        int number = weft_Win_out(*object);                                            \
        ((handler *)wins[n])(&number, code);                                           \
    }                                                                                  \
    static void session_##n(MPI_Session *object, int *code, ...)                       \
    {                                                                                  \
        int number = weft_Session_out(*object);                                        \
        ((handler *)sessions[n])(&number, code);                                       \
    }
ALL(NAME)

#define STORE(name, kind, taken, what)                                                 \
    MPI_##name *weft_slot_##name(weft_function *function)                              \
    {                                                                                  \
        static MPI_##name *const all[] = { ALL(kind) };                                \
        return all[slot(taken, SLOTS, function, what)];                                \
    }
#define USER(n) user_##n,
#define USER_LARGE(n) user_large_##n,
#define COMM(n) comm_##n,
#define FILE_(n) file_##n,
#define WIN(n) win_##n,
#define SESSION(n) session_##n,
STORE(User_function, USER, users, "MPI_Op_create")
STORE(User_function_c, USER_LARGE, users_large, "MPI_Op_create_c")
STORE(Comm_errhandler_function, COMM, comms, "MPI_Comm_create_errhandler")
STORE(File_errhandler_function, FILE_, files, "MPI_File_create_errhandler")
STORE(Win_errhandler_function, WIN, wins, "MPI_Win_create_errhandler")
STORE(Session_errhandler_function, SESSION, sessions, "MPI_Session_create_errhandler")
