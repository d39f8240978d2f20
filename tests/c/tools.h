/* What the tests of the tool interface share. */
#ifndef TOOLS_H
#define TOOLS_H
#include "check.h"

typedef unsigned long long number;

/* A call that must return `code`. */
#define IS(code, call)                                            \
    do {                                                          \
        int got_ = (call);                                        \
        CHECK(got_ == (code), "%d instead of %d", got_, (int)(code)); \
    } while (0)
#define OK(call) IS(MPI_SUCCESS, call)

static inline int tool_begin(void)
{
    int provided = -1;
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    return provided;
}

static inline int cvar(const char *name)
{
    int index = -1;
    OK(MPI_T_cvar_get_index(name, &index));
    return index;
}

/* A handle of a control variable, and the elements of a buffer for it. */
static inline MPI_T_cvar_handle control(const char *name, int *count)
{
    MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
    OK(MPI_T_cvar_handle_alloc(cvar(name), NULL, &handle, count));
    CHECK(handle != MPI_T_CVAR_HANDLE_NULL);
    return handle;
}

/* A handle of a performance variable. */
static inline MPI_T_pvar_handle gauge(MPI_T_pvar_session session, const char *name, int var_class,
                                      void *object)
{
    int index = -1, count = -1;
    MPI_T_pvar_handle handle = MPI_T_PVAR_HANDLE_NULL;
    OK(MPI_T_pvar_get_index(name, var_class, &index));
    OK(MPI_T_pvar_handle_alloc(session, index, object, &handle, &count));
    CHECK(handle != MPI_T_PVAR_HANDLE_NULL && count == 1);
    return handle;
}

static inline MPI_T_pvar_handle counter(MPI_T_pvar_session session, const char *name)
{
    MPI_T_pvar_handle handle = gauge(session, name, MPI_T_PVAR_CLASS_COUNTER, NULL);
    OK(MPI_T_pvar_start(session, handle));
    return handle;
}

static inline number value(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    number n = 12345678;
    OK(MPI_T_pvar_read(session, handle, &n));
    return n;
}

/* The sum of a performance variable over all ranks, at rank 0; by messages, which no collective counts. */
static inline number total(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    number mine = value(session, handle), sum = mine;
    if (rank > 0) {
        MPI_Send(&mine, 1, MPI_UNSIGNED_LONG_LONG, 0, 9, MPI_COMM_WORLD);
        return 0;
    }
    for (int from = 1; from < size; from++) {
        MPI_Recv(&mine, 1, MPI_UNSIGNED_LONG_LONG, from, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        sum += mine;
    }
    return sum;
}

#endif
