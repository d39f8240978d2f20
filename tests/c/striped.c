// ranks: 1 2
// args: 4
// says: correct
//
// Long messages, puts and gets between the first two ranks, each byte of which is looked at: what is spread over several rails. With
// an argument so many steps. Says how fast messages were (the median), and what was repeated because a rail had failed.
#include "tools.h"

enum { N = 1 << 20, BYTES = N * 4 };

static unsigned *out, *in, *window;

static unsigned word(long step, int what, int i)
{
    return (unsigned)i * 2654435761u + (unsigned)step * 40503u + (unsigned)what * 977u;
}

static void fill(unsigned *at, long step, int what)
{
    for (int i = 0; i < N; i++) at[i] = word(step, what, i);
}

static void look(const unsigned *at, long step, int what)
{
    for (int i = 0; i < N; i++)
        CHECK(at[i] == word(step, what, i), "step %ld, part %d, word %d", step, what, i);
}

static int order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* A message to the next rank, and an empty one back: its seconds. */
static double message(long step, int to, int from)
{
    MPI_Request request;
    fill(out, step, rank);
    MPI_Barrier(MPI_COMM_WORLD);
    double began = MPI_Wtime();
    MPI_Irecv(in, N, MPI_UNSIGNED, from, 1, MPI_COMM_WORLD, &request);
    if (rank == 0 || size == 1) MPI_Send(out, N, MPI_UNSIGNED, to, 1, MPI_COMM_WORLD);
    if (rank == 1 || size == 1) MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    double took = MPI_Wtime() - began;
    if (rank == 0 && size > 1) MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(out, N, MPI_UNSIGNED, to, 1, MPI_COMM_WORLD);
    look(in, step, from);
    return took;
}

int main(int argc, char **argv)
{
    tool_begin();
    MPI_T_pvar_session session;
    OK(MPI_T_pvar_session_create(&session));
    MPI_T_pvar_handle repeated = counter(session, "weft.fabric.ofi.repeated");
    begin(&argc, &argv);
    CHECK(size <= 2);
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    long steps = argc > 1 ? atol(argv[1]) : 4;
    /* The first ones find the rails. */
    long first = steps / 4;
    double *seconds = calloc(steps + 1, sizeof *seconds);
    MPI_Win win;
    out = malloc(BYTES), in = malloc(BYTES);
    MPI_Win_allocate(2 * BYTES, sizeof *window, MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
    if (rank == 0) printf("running\n"), fflush(stdout);
    for (long step = 0; step < steps; step++) {
        seconds[step] = message(step, to, from);
        fill(window + N, step, 2 + rank);
        fill(out, step, 4 + rank);
        MPI_Win_fence(0, win);
        MPI_Put(out, N, MPI_UNSIGNED, to, 0, N, MPI_UNSIGNED, win);
        MPI_Get(in, N, MPI_UNSIGNED, to, N, N, MPI_UNSIGNED, win);
        MPI_Win_fence(0, win);
        look(window, step, 4 + from);
        look(in, step, 2 + to);
        MPI_Win_fence(0, win);
    }
    number all = total(session, repeated);
    qsort(seconds + first, steps - first, sizeof *seconds, order);
    if (rank == 0)
        printf("rate %.1f MB/s\nrepeated %llu\n", 1e-6 * BYTES / seconds[(first + steps) / 2], all);
    MPI_Win_free(&win);
    free(out), free(in), free(seconds);
    OK(MPI_T_pvar_session_free(&session));
    MPI_T_finalize();
    return end();
}
