// ranks: 2 4
// env: | WEFT_CMA=0 | WEFT_PROGRESS=handover | WEFT_FAULT=seed=7,completion_delay=0.3
// says: correct
//
// The target does nothing: it sleeps outside of MPI until the last operation of the others has told it to
// stop, by a put into its memory. Whatever needed a call of the target's would wait for ever.
#include "check.h"
#include <time.h>
#include <unistd.h>

#define WORLD MPI_COMM_WORLD
enum { LONGS = 40000 }; /* more than a message carries at once */

static long data[LONGS], got[LONGS];

static void sleep_until(volatile long *word, long value)
{
    time_t start = time(NULL);
    while (*word != value) {
        usleep(500);
        CHECK(time(NULL) - start < 60, "asleep for a minute: the others need this rank");
    }
}

static void work(MPI_Win win, MPI_Aint first, MPI_Aint unit)
{
    long one = 1, was, last = LONGS + 2;
    MPI_Aint word = first + LONGS * unit, done = first + last * unit;
    /* Locks that others want too. */
    for (int i = 0; i < 20; i++) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Get(&was, 1, MPI_LONG, 0, word + unit, 1, MPI_LONG, win);
        MPI_Win_flush(0, win);
        was++;
        MPI_Put(&was, 1, MPI_LONG, 0, word + unit, 1, MPI_LONG, win);
        MPI_Win_unlock(0, win);
    }
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    if (rank == 1) {
        MPI_Put(data, LONGS, MPI_LONG, 0, first, LONGS, MPI_LONG, win);
        MPI_Win_flush(0, win);
        MPI_Get(got, LONGS, MPI_LONG, 0, first, LONGS, MPI_LONG, win);
        MPI_Win_flush(0, win);
        CHECK(!memcmp(data, got, sizeof data));
        MPI_Accumulate(data, LONGS, MPI_LONG, 0, first, LONGS, MPI_LONG, MPI_SUM, win);
        MPI_Win_flush(0, win);
        MPI_Get_accumulate(NULL, 0, MPI_LONG, got, LONGS, MPI_LONG, 0, first, LONGS, MPI_LONG, MPI_NO_OP, win);
        MPI_Win_flush(0, win);
        for (int i = 0; i < LONGS; i++) CHECK(got[i] == 2 * data[i], "long %d is %ld", i, got[i]);
    }
    for (int i = 0; i < 20; i++) {
        MPI_Fetch_and_op(&one, &was, MPI_LONG, 0, word, MPI_SUM, win);
        MPI_Win_flush(0, win);
    }
    MPI_Compare_and_swap(&one, &one, &was, MPI_LONG, 0, word, win);
    MPI_Win_unlock(0, win);
    /* The last one ends the target's sleep. */
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Fetch_and_op(&one, &was, MPI_LONG, 0, done, MPI_SUM, win);
    MPI_Win_unlock(0, win);
}

static void target(volatile long *mine)
{
    sleep_until(&mine[LONGS + 2], size - 1);
    CHECK(mine[LONGS] == 20 * (size - 1), "%ld", mine[LONGS]);
    CHECK(mine[LONGS + 1] == 20 * (size - 1), "%ld", mine[LONGS + 1]);
}

int main(int argc, char **argv)
{
    size_t bytes = (LONGS + 3) * sizeof(long);
    long *mine, *own;
    MPI_Aint address = 0;
    MPI_Win win;
    begin(&argc, &argv);
    own = malloc(bytes);
    for (int i = 0; i < LONGS; i++) data[i] = i + 1;
    for (int kind = 0; kind < 3; kind++) {
        MPI_Aint unit = kind == 2 ? sizeof(long) : 1;
        mine = own;
        if (kind == 0) MPI_Win_create(own, bytes, sizeof(long), MPI_INFO_NULL, WORLD, &win);
        if (kind == 1) MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, WORLD, &mine, &win);
        if (kind == 2) {
            MPI_Win_create_dynamic(MPI_INFO_NULL, WORLD, &win);
            MPI_Win_attach(win, own, bytes);
            MPI_Get_address(own, &address);
            MPI_Bcast(&address, 1, MPI_AINT, 0, WORLD);
        }
        memset(mine, 0, bytes);
        MPI_Barrier(WORLD);
        if (rank == 0) target(mine);
        else work(win, address, unit);
        MPI_Barrier(WORLD);
        MPI_Win_free(&win);
    }
    free(own);
    return end();
}
