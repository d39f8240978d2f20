// ranks: 1 2 3 5 8
// env: | WEFT_CMA=0 | WEFT_PROGRESS=handover
// says: correct
//
// Accumulates of all ranks on the same elements at the same time, of one element and of many, under shared locks and
// exclusive ones: no update is lost, and what is swapped as several bytes stays whole.
#include "check.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define WORLD MPI_COMM_WORLD
enum { N = 300, TIMES = 150, LONG = 20000 };

static int rank, size;

typedef struct {
    MPI_Win win;
    char *mine;
} Made;

static Made make(size_t bytes)
{
    Made made;
    MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, WORLD, &made.mine, &made.win);
    memset(made.mine, 0, bytes);
    MPI_Barrier(WORLD);
    return made;
}

static unsigned seed;

static int draw(int below)
{
    seed = seed * 1103515245u + 12345u;
    return (int)(seed >> 8) % below;
}

/* Adds 1 to some elements of each rank, counts how often each was, and compares the sums of all. */
#define SUMS(C, TYPE)                                                                             \
    static void sums_##C(int exclusive)                                                           \
    {                                                                                             \
        Made made = make(N * sizeof(C));                                                          \
        static C one[N], was[N];                                                                  \
        static int here[8 * N], all[8 * N];                                                       \
        memset(here, 0, sizeof here);                                                             \
        for (int i = 0; i < N; i++)                                                               \
            one[i] = 1;                                                                           \
        if (!exclusive)                                                                           \
            MPI_Win_lock_all(0, made.win);                                                        \
        for (int turn = 0; turn < TIMES; turn++) {                                                \
            int to = draw(size), from = draw(N), count = draw(3) ? 1 : 1 + draw(N - from);        \
            MPI_Aint at = from * (MPI_Aint)sizeof(C);                                             \
            MPI_Request request;                                                                  \
            if (exclusive && turn % 4)                                                            \
                MPI_Win_lock(turn % 2 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, to, 0, made.win);   \
            else if (exclusive)                                                                   \
                MPI_Win_lock(MPI_LOCK_SHARED, to, 0, made.win);                                   \
            switch (draw(4)) {                                                                    \
            case 0:                                                                               \
                count = 1;                                                                        \
                MPI_Fetch_and_op(one, was, TYPE, to, at, MPI_SUM, made.win);                      \
                break;                                                                            \
            case 1:                                                                               \
                MPI_Get_accumulate(one, count, TYPE, was, count, TYPE, to, at, count, TYPE,       \
                                   MPI_SUM, made.win);                                            \
                break;                                                                            \
            case 2:                                                                               \
                MPI_Raccumulate(one, count, TYPE, to, at, count, TYPE, MPI_SUM, made.win,         \
                                &request);                                                        \
                MPI_Wait(&request, MPI_STATUS_IGNORE);                                            \
                break;                                                                            \
            default:                                                                              \
                MPI_Accumulate(one, count, TYPE, to, at, count, TYPE, MPI_SUM, made.win);         \
            }                                                                                     \
            if (exclusive)                                                                        \
                MPI_Win_unlock(to, made.win);                                                     \
            for (int i = 0; i < count; i++)                                                       \
                here[to * N + from + i]++;                                                        \
        }                                                                                         \
        if (!exclusive)                                                                           \
            MPI_Win_unlock_all(made.win);                                                         \
        MPI_Allreduce(here, all, size * N, MPI_INT, MPI_SUM, WORLD);                              \
        MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, made.win);                                         \
        MPI_Get(was, N, TYPE, rank, 0, N, TYPE, made.win);                                        \
        MPI_Win_unlock(rank, made.win);                                                           \
        for (int i = 0; i < N; i++)                                                               \
            CHECK((C)all[rank * N + i] == was[i]);                                                \
        MPI_Win_free(&made.win);                                                                  \
    }

typedef unsigned char byte;
SUMS(byte, MPI_UNSIGNED_CHAR)
SUMS(short, MPI_SHORT)
SUMS(int, MPI_INT)
SUMS(int64_t, MPI_INT64_T)
SUMS(float, MPI_FLOAT)
SUMS(double, MPI_DOUBLE)

/* A rank and a number that belongs to it, swapped as bytes, off their alignment too: the two are never torn apart. */
static void structs(int offset)
{
    Made made = make(64);
    struct {
        uint64_t rank, number;
    } mine, was;
    CHECK(sizeof mine == 16);
    MPI_Win_lock_all(0, made.win);
    for (int turn = 1; turn <= 20 * TIMES; turn++) {
        mine.rank = (uint64_t)rank + 1;
        mine.number = ~mine.rank * 0x9e3779b97f4a7c15u;
        MPI_Op op = turn % 3 ? MPI_REPLACE : MPI_NO_OP;
        MPI_Get_accumulate(&mine, 16, MPI_BYTE, &was, 16, MPI_BYTE, 0, offset, 16, MPI_BYTE, op, made.win);
        MPI_Win_flush(0, made.win);
        CHECK(was.rank <= (uint64_t)size);
        CHECK(was.rank == 0 ? was.number == 0 : was.number == ~was.rank * 0x9e3779b97f4a7c15u);
    }
    MPI_Win_unlock_all(made.win);
    MPI_Win_free(&made.win);
}

/* Every other element, and single ones among them, by all ranks: long enough to meet. */
static void strided(void)
{
    Made made = make(LONG * sizeof(int));
    int *ones = malloc(LONG * sizeof(int)), one = 1, was;
    for (int i = 0; i < LONG; i++)
        ones[i] = 1;
    MPI_Datatype every_other;
    MPI_Type_vector(LONG / 2, 1, 2, MPI_INT, &every_other);
    MPI_Type_commit(&every_other);
    MPI_Win_lock_all(0, made.win);
    for (int turn = 0; turn < 50; turn++) {
        MPI_Accumulate(ones, LONG / 2, MPI_INT, 0, 0, 1, every_other, MPI_SUM, made.win);
        for (int i = 0; i < 20; i++)
            MPI_Fetch_and_op(&one, &was, MPI_INT, 0, 2 * i * (MPI_Aint)sizeof(int), MPI_SUM, made.win);
        MPI_Accumulate(ones, LONG, MPI_INT, 0, 0, LONG, MPI_INT, MPI_SUM, made.win);
    }
    MPI_Win_unlock_all(made.win);
    MPI_Barrier(WORLD);
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, made.win);
        MPI_Get(ones, LONG, MPI_INT, 0, 0, LONG, MPI_INT, made.win);
        MPI_Win_unlock(0, made.win);
        for (int i = 0; i < LONG; i++) {
            int even = i % 2 == 0;
            CHECK(ones[i] == 50 * size * (1 + even + (even && i < 40 ? 1 : 0)));
        }
    }
    MPI_Type_free(&every_other);
    free(ones);
    MPI_Win_free(&made.win);
}

/* Who draws the ticket, and compare-and-swap beside long accumulates of the same type. */
static void locks(void)
{
    Made made = make(64 * sizeof(int));
    int zero = 0, mine = rank + 1, was, nothing[64] = {0};
    MPI_Win_lock_all(0, made.win);
    for (int turn = 0; turn < TIMES; turn++) {
        do {
            MPI_Compare_and_swap(&mine, &zero, &was, MPI_INT, 0, 0, made.win);
            MPI_Win_flush(0, made.win);
        } while (was != 0);
        MPI_Accumulate(nothing, 64, MPI_INT, 0, 0, 64, MPI_INT, MPI_SUM, made.win);
        MPI_Win_flush(0, made.win);
        MPI_Compare_and_swap(&zero, &mine, &was, MPI_INT, 0, 0, made.win);
        MPI_Win_flush(0, made.win);
        CHECK(was == mine);
    }
    MPI_Win_unlock_all(made.win);
    MPI_Win_free(&made.win);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(WORLD, &rank);
    MPI_Comm_size(WORLD, &size);
    seed = 17u * (unsigned)rank + 5;
    CHECK(size <= 8);
    for (int exclusive = 0; exclusive < 2; exclusive++) {
        sums_byte(exclusive);
        sums_short(exclusive);
        sums_int(exclusive);
        sums_int64_t(exclusive);
        sums_float(exclusive);
        sums_double(exclusive);
    }
    structs(0);
    structs(5);
    strided();
    locks();
    MPI_Finalize();
    if (rank == 0)
        printf("correct\n");
    return 0;
}
