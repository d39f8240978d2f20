// ranks: 1 3
// says: correct
//
// MPI_REPLACE and MPI_NO_OP are for accumulates alone (MPI 5.0, section 12.3.4): every reduction refuses them, with
// MPI_ERR_OP and their names, and takes what it takes. A sweep of operators over reductions.
#include "check.h"

#define WORLD MPI_COMM_WORLD
enum { N = 4 };

static int out[3 * N], in[3 * N], counts[3];
static MPI_Count large[3];
static MPI_Request request;

#define BLOCKING(X)                                                                    \
    X(MPI_Reduce(out, in, N, MPI_INT, op, 0, comm))                                    \
    X(MPI_Reduce_c(out, in, N, MPI_INT, op, 0, comm))                                  \
    X(MPI_Allreduce(out, in, N, MPI_INT, op, comm))                                    \
    X(MPI_Allreduce_c(out, in, N, MPI_INT, op, comm))                                  \
    X(MPI_Reduce_scatter(out, in, counts, MPI_INT, op, comm))                          \
    X(MPI_Reduce_scatter_c(out, in, large, MPI_INT, op, comm))                         \
    X(MPI_Reduce_scatter_block(out, in, 1, MPI_INT, op, comm))                         \
    X(MPI_Reduce_scatter_block_c(out, in, 1, MPI_INT, op, comm))                       \
    X(MPI_Scan(out, in, N, MPI_INT, op, comm))                                         \
    X(MPI_Scan_c(out, in, N, MPI_INT, op, comm))                                       \
    X(MPI_Exscan(out, in, N, MPI_INT, op, comm))                                       \
    X(MPI_Exscan_c(out, in, N, MPI_INT, op, comm))                                     \
    X(MPI_Reduce_local(out, in, N, MPI_INT, op))                                       \
    X(MPI_Reduce_local_c(out, in, N, MPI_INT, op))
#define NONBLOCKING(X)                                                                 \
    X(MPI_Ireduce(out, in, N, MPI_INT, op, 0, comm, &request))                         \
    X(MPI_Ireduce_c(out, in, N, MPI_INT, op, 0, comm, &request))                       \
    X(MPI_Iallreduce(out, in, N, MPI_INT, op, comm, &request))                         \
    X(MPI_Iallreduce_c(out, in, N, MPI_INT, op, comm, &request))                       \
    X(MPI_Ireduce_scatter(out, in, counts, MPI_INT, op, comm, &request))               \
    X(MPI_Ireduce_scatter_c(out, in, large, MPI_INT, op, comm, &request))              \
    X(MPI_Ireduce_scatter_block(out, in, 1, MPI_INT, op, comm, &request))              \
    X(MPI_Ireduce_scatter_block_c(out, in, 1, MPI_INT, op, comm, &request))            \
    X(MPI_Iscan(out, in, N, MPI_INT, op, comm, &request))                              \
    X(MPI_Iscan_c(out, in, N, MPI_INT, op, comm, &request))                            \
    X(MPI_Iexscan(out, in, N, MPI_INT, op, comm, &request))                            \
    X(MPI_Iexscan_c(out, in, N, MPI_INT, op, comm, &request))
#define PERSISTENT(X)                                                                  \
    X(MPI_Reduce_init(out, in, N, MPI_INT, op, 0, comm, MPI_INFO_NULL, &request))      \
    X(MPI_Reduce_init_c(out, in, N, MPI_INT, op, 0, comm, MPI_INFO_NULL, &request))    \
    X(MPI_Allreduce_init(out, in, N, MPI_INT, op, comm, MPI_INFO_NULL, &request))      \
    X(MPI_Allreduce_init_c(out, in, N, MPI_INT, op, comm, MPI_INFO_NULL, &request))    \
    X(MPI_Reduce_scatter_init(out, in, counts, MPI_INT, op, comm, MPI_INFO_NULL, &request))       \
    X(MPI_Reduce_scatter_init_c(out, in, large, MPI_INT, op, comm, MPI_INFO_NULL, &request))      \
    X(MPI_Reduce_scatter_block_init(out, in, 1, MPI_INT, op, comm, MPI_INFO_NULL, &request))      \
    X(MPI_Reduce_scatter_block_init_c(out, in, 1, MPI_INT, op, comm, MPI_INFO_NULL, &request))    \
    X(MPI_Scan_init(out, in, N, MPI_INT, op, comm, MPI_INFO_NULL, &request))           \
    X(MPI_Scan_init_c(out, in, N, MPI_INT, op, comm, MPI_INFO_NULL, &request))         \
    X(MPI_Exscan_init(out, in, N, MPI_INT, op, comm, MPI_INFO_NULL, &request))         \
    X(MPI_Exscan_init_c(out, in, N, MPI_INT, op, comm, MPI_INFO_NULL, &request))

static void reductions(MPI_Op op, const char *name, MPI_Comm comm)
{
    int code, length, taken = name == NULL;
    char text[MPI_MAX_ERROR_STRING];
    memset(in, 0, sizeof in);
#define JUDGE(call)                                                          \
    code = call;                                                             \
    if (taken) CHECK(code == MPI_SUCCESS, "%s", #call);                      \
    else {                                                                   \
        CHECK(class_of(code) == MPI_ERR_OP, "%s with %s", #call, name);      \
        MPI_Error_string(code, text, &length);                               \
        CHECK(strstr(text, name), "%s: %s", #call, text);                    \
    }
#define NOW(call) JUDGE(call)
#define LATER(call)                                                          \
    JUDGE(call)                                                              \
    if (taken) MPI_Wait(&request, MPI_STATUS_IGNORE);
#define OFTEN(call)                                                          \
    JUDGE(call)                                                              \
    if (taken) MPI_Start(&request), MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_Request_free(&request);
    BLOCKING(NOW)
    NONBLOCKING(LATER)
    PERSISTENT(OFTEN)
    for (int i = 0; !taken && i < N; i++) CHECK(in[i] == 0);
}

int main(int argc, char **argv)
{
    MPI_Op good[] = {MPI_MAX, MPI_MIN, MPI_SUM, MPI_PROD, MPI_LAND, MPI_BAND, MPI_LOR, MPI_BOR, MPI_LXOR, MPI_BXOR};
    MPI_Comm comm;
    MPI_Win win;
    begin(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (int i = 0; i < 3; i++) counts[i] = 1, large[i] = 1;
    for (int i = 0; i < 3 * N; i++) out[i] = rank + i;
    for (int world = 0; world < 2; world++) {
        MPI_Comm of = world ? WORLD : comm;
        for (int i = 0; i < 10; i++) reductions(good[i], NULL, of);
        reductions(MPI_REPLACE, "MPI_REPLACE", of);
        reductions(MPI_NO_OP, "MPI_NO_OP", of);
        reductions(MPI_SUM, NULL, of);
    }
    /* Where they belong. */
    in[0] = -1;
    MPI_Win_create(in, sizeof in, sizeof(int), MPI_INFO_NULL, comm, &win);
    MPI_Win_fence(0, win);
    CHECK(!MPI_Accumulate(out, 1, MPI_INT, rank, 0, 1, MPI_INT, MPI_REPLACE, win));
    MPI_Win_fence(0, win);
    CHECK(in[0] == out[0]);
    CHECK(!MPI_Fetch_and_op(NULL, &in[2], MPI_INT, rank, 0, MPI_NO_OP, win));
    MPI_Win_fence(0, win);
    CHECK(in[2] == out[0]);
    MPI_Win_free(&win);
    MPI_Comm_free(&comm);
    return end();
}
