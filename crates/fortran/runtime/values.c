/* Truth, strings, lengths of arrays, and the few procedures that have no function in C. */
#include "weft_fortran.h"

#include <stdio.h>

weft_logical weft_true = 1, weft_false = 0;

/* The values that this compiler writes: compiled by it, in logicals.f90. */
void weft_logicals(weft_logical *yes, weft_logical *no);

uintptr_t weft_special, weft_special_span;

__attribute__((constructor)) static void learn(void)
{
    const uintptr_t all[] = { (uintptr_t)&weft_in_place_, (uintptr_t)&weft_bottom_,
                              (uintptr_t)&weft_buffer_automatic_ };
    uintptr_t first = all[0], last = all[0];
    for (size_t i = 1; i < sizeof(all) / sizeof(all[0]); i++) {
        first = all[i] < first ? all[i] : first;
        last = all[i] > last ? all[i] : last;
    }
    weft_special = first;
    weft_special_span = last - first;
    weft_logicals(&weft_true, &weft_false);
}

void weft_begin(void)
{
    weft_logical yes, no;
    int known = 0;
    if (!PMPI_Abi_get_fortran_booleans || !PMPI_Abi_set_fortran_booleans)
        return;
    int rc = PMPI_Abi_get_fortran_booleans(sizeof(weft_logical), &yes, &no, &known);
    if (rc == MPI_SUCCESS && !known)
        PMPI_Abi_set_fortran_booleans(sizeof(weft_logical), &weft_true, &weft_false);
}

int weft_lacks(const char *function)
{
    fprintf(stderr, "%s: this MPI library does not have it\n", function + (*function == 'P'));
    return MPI_ERR_UNSUPPORTED_OPERATION;
}

int *weft_truths_in(const weft_logical *from, int n, int *few)
{
    int *to = weft_room(few, n, sizeof(int));
    for (int i = 0; i < n; i++)
        to[i] = weft_is_true(from[i]);
    return to;
}

void weft_truths_out(weft_logical *to, int n, const int *from)
{
    for (int i = 0; i < n; i++)
        to[i] = weft_truth(from[i]);
}

/* Blanks behind are no part of the string, those in front by `front`. */
static const char *stripped(const char *from, size_t *length, int front)
{
    while (*length > 0 && from[*length - 1] == ' ')
        --*length;
    for (; front == WEFT_TRIMMED && *length > 0 && *from == ' '; from++)
        --*length;
    return from;
}

char *weft_string_in(const char *from, size_t length, int front, char *few)
{
    from = stripped(from, &length, front);
    char *to = length < WEFT_SHORT ? few : malloc(length + 1);
    memcpy(to, from, length);
    to[length] = '\0';
    return to;
}

char *weft_string_room(char *few, int size)
{
    char *to = size <= WEFT_SHORT ? few : malloc((size_t)size);
    *to = '\0';
    return to;
}

void weft_string_out(char *to, size_t length, const char *from)
{
    size_t used = strlen(from);
    if (used > length)
        used = length;
    memcpy(to, from, used);
    memset(to + used, ' ', length - used);
}

/* `count` strings, or as many as stand before a blank one. All is one piece of memory. */
char **weft_argv(const char *from, size_t length, size_t step, int count)
{
    if (from == weft_argv_null_)
        return MPI_ARGV_NULL;
    size_t n = 0, blanks;
    for (; count < 0 || n < (size_t)count; n++) {
        const char *one = from + n * step * length;
        for (blanks = 0; blanks < length && one[blanks] == ' '; blanks++)
            ;
        if (count < 0 && blanks == length)
            break;
    }
    char **argv = malloc((n + 1) * sizeof(char *) + n * (length + 1));
    char *text = (char *)(argv + n + 1);
    for (size_t i = 0; i < n; i++, text += length + 1) {
        size_t used = length;
        const char *one = stripped(from + i * step * length, &used, WEFT_TRIMMED);
        memcpy(text, one, used);
        text[used] = '\0';
        argv[i] = text;
    }
    argv[n] = NULL;
    return argv;
}

/* A list for each command: the first index is the command's. */
char ***weft_argvs(const char *from, size_t length, int count)
{
    if (from == weft_argvs_null_)
        return MPI_ARGVS_NULL;
    char ***argvs = malloc(((size_t)count + 1) * sizeof(char **));
    for (int i = 0; i < count; i++)
        argvs[i] = weft_argv(from + (size_t)i * length, length, (size_t)count, -1);
    argvs[count] = NULL;
    return argvs;
}

void weft_argvs_drop(char ***argvs)
{
    for (char ***one = argvs; one && *one; one++)
        free(*one);
    free(argvs);
}

void weft_from_one(int *places, int count)
{
    for (int i = 0; i < count; i++)
        places[i]++;
}

int weft_dimensions(MPI_Comm comm)
{
    int n = 0;
    return PMPI_Cartdim_get(comm, &n) == MPI_SUCCESS ? n : 0;
}

int weft_peers(MPI_Comm comm, int which, const void *buffer)
{
    int n = 0, topology = MPI_UNDEFINED, out = 0, weighted = 0;
    if (buffer == MPI_IN_PLACE || comm == MPI_COMM_NULL)
        return 0;
    if (which == WEFT_ALL) {
        PMPI_Comm_test_inter(comm, &out);
        return (out ? PMPI_Comm_remote_size(comm, &n) : PMPI_Comm_size(comm, &n)) ? 0 : n;
    }
    PMPI_Topo_test(comm, &topology);
    if (topology == MPI_CART)
        return 2 * weft_dimensions(comm);
    if (topology == MPI_GRAPH) {
        int rank;
        PMPI_Comm_rank(comm, &rank);
        return PMPI_Graph_neighbors_count(comm, rank, &n) ? 0 : n;
    }
    if (topology == MPI_DIST_GRAPH)
        PMPI_Dist_graph_neighbors_count(comm, &n, &out, &weighted);
    return which == WEFT_SOURCES ? n : out;
}

/* The size of an element stands in the descriptor. */
#define SIZEOF(name)                                                                   \
    WEFT_ALONE(name, (CFI_cdesc_t *x, int *size, int *ierror))                         \
    {                                                                                  \
        *size = (int)x->elem_len;                                                      \
        weft_ierror(ierror, MPI_SUCCESS);                                              \
    }
SIZEOF(mpi_sizeof)
SIZEOF(mpi_sizeof_f08ts)

/* Its call alone makes the compiler forget what it keeps in registers. */
#define SYNC_REG(name)                                                                 \
    WEFT_ALONE(name, (void *buf))                                                      \
    {                                                                                  \
        (void)buf;                                                                     \
    }
SYNC_REG(mpi_f_sync_reg)
SYNC_REG(mpi_f_sync_reg_f08ts)

#define STATUS(name)                                                                   \
    WEFT_ALONE(name, (const MPI_Status *from, MPI_Status *to, int *ierror))            \
    {                                                                                  \
        *to = *from;                                                                   \
        weft_ierror(ierror, MPI_SUCCESS);                                              \
    }
STATUS(mpi_status_f082f)
STATUS(mpi_status_f082f_f08)
STATUS(mpi_status_f2f08)
STATUS(mpi_status_f2f08_f08)

/* Addresses as C_PTR, in the module mpi. */
#define POINTER(name, arguments, given)                                                \
    void mpi_##name##_ arguments;                                                      \
    void pmpi_##name##_ arguments;                                                     \
    void mpi_##name##_cptr_ arguments                                                  \
    {                                                                                  \
        mpi_##name##_ given;                                                           \
    }                                                                                  \
    void pmpi_##name##_cptr_ arguments                                                 \
    {                                                                                  \
        pmpi_##name##_ given;                                                          \
    }
POINTER(alloc_mem, (const MPI_Aint *size, const int *info, void **at, int *ierror),
        (size, info, at, ierror))
POINTER(win_allocate,
        (const MPI_Aint *size, const int *unit, const int *info, const int *comm, void **at,
         int *win, int *ierror),
        (size, unit, info, comm, at, win, ierror))
POINTER(win_allocate_shared,
        (const MPI_Aint *size, const int *unit, const int *info, const int *comm, void **at,
         int *win, int *ierror),
        (size, unit, info, comm, at, win, ierror))
POINTER(win_shared_query,
        (const int *win, const int *rank, MPI_Aint *size, int *unit, void **at, int *ierror),
        (win, rank, size, unit, at, ierror))
