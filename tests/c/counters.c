// ranks: 1 2 4
// env: | WEFT_FAULT=seed=7,completion_delay=0.3 | WEFT_FAULT=seed=7,completion_delay=0.3 WEFT_RMA_ATOMICS=guarded | WEFT_FAULT=seed=3,completion_delay=0.5 WEFT_FENCE=2S
// says: correct
//
// Words of one rank that all update, itself too: each update is as if alone, whoever carries it out, and whatever
// lies beside them. On one node processors do it; between nodes adapters, or who holds a lock.
#include "check.h"

#define WORLD MPI_COMM_WORLD
enum { MOST_TIMES = 50, WORDS = 16 };

/* Words of the window: a sum, the greatest, a lock, what it guards, replaced, what was taken out, a double; a long at an
 * odd place; the rest is added to as a whole. */
enum { SUM, MOST, LOCK, GUARDED, REPLACED, TAKEN, DOUBLE, ODD, REST = ODD + 2 };

static int at, times = MOST_TIMES;

static long fetch(MPI_Win win, MPI_Op op, long value, int word)
{
    long was;
    MPI_Fetch_and_op(&value, &was, MPI_LONG, at, 8 * word, op, win);
    MPI_Win_flush(at, win);
    return was;
}

static void counts(MPI_Win win)
{
    static long was[MOST_TIMES], all[64 * MOST_TIMES];
    static char seen[64 * MOST_TIMES];
    for (int i = 0; i < times; i++) was[i] = fetch(win, MPI_SUM, 1, SUM);
    MPI_Allgather(was, times, MPI_LONG, all, times, MPI_LONG, WORLD);
    memset(seen, 0, sizeof seen);
    for (int i = 0; i < size * times; i++) {
        CHECK(all[i] >= 0 && all[i] < size * times && !seen[all[i]], "%ld comes twice", all[i]);
        seen[all[i]] = 1;
    }
}

static void work(MPI_Win win)
{
    long last = 0, taken = 0, zero = 0, mine = rank + 1, was, rest[WORDS - REST], one = 1;
    double half = 0.5;
    MPI_Win_lock_all(0, win);
    counts(win);
    for (long i = 0; i < times; i++) {
        long value = i * size + rank, before = fetch(win, MPI_MAX, value, MOST);
        CHECK(before >= last, "%ld after %ld", before, last);
        last = before > value ? before : value;
        taken += 1 - fetch(win, MPI_REPLACE, 1, REPLACED);
        MPI_Accumulate(&half, 1, MPI_DOUBLE, at, 8 * DOUBLE, 1, MPI_DOUBLE, MPI_SUM, win);
        MPI_Accumulate(&one, 1, MPI_LONG, at, 8 * ODD + 4, 1, MPI_LONG, MPI_SUM, win);
        for (int j = 0; j < WORDS - REST; j++) rest[j] = j;
        MPI_Accumulate(rest, WORDS - REST, MPI_LONG, at, 8 * REST, WORDS - REST, MPI_LONG, MPI_SUM, win);
        MPI_Accumulate(&one, 1, MPI_LONG, at, 8 * REST, 1, MPI_LONG, MPI_SUM, win);
        MPI_Win_flush(at, win);
    }
    fetch(win, MPI_SUM, taken, TAKEN);
    for (int i = 0; i < times; i++) {
        do {
            MPI_Compare_and_swap(&mine, &zero, &was, MPI_LONG, at, 8 * LOCK, win);
            MPI_Win_flush(at, win);
        } while (was != 0);
        MPI_Get(&was, 1, MPI_LONG, at, 8 * GUARDED, 1, MPI_LONG, win);
        MPI_Win_flush(at, win);
        was++;
        MPI_Put(&was, 1, MPI_LONG, at, 8 * GUARDED, 1, MPI_LONG, win);
        MPI_Win_flush(at, win);
        CHECK(fetch(win, MPI_REPLACE, 0, LOCK) == mine);
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(WORLD);
    /* The same in an epoch of a fence. */
    MPI_Win_fence(0, win);
    for (int i = 0; i < times; i++) {
        MPI_Accumulate(&one, 1, MPI_LONG, at, 8 * SUM, 1, MPI_LONG, MPI_SUM, win);
        MPI_Accumulate(&one, 1, MPI_LONG, at, 8 * ODD + 4, 1, MPI_LONG, MPI_SUM, win);
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
}

static void check(const char *memory)
{
    long words[WORDS], odd, all = (long)size * times;
    double halves;
    memcpy(words, memory, sizeof words);
    memcpy(&odd, memory + 8 * ODD + 4, sizeof odd);
    memcpy(&halves, memory + 8 * DOUBLE, sizeof halves);
    CHECK(words[SUM] == 2 * all, "%ld", words[SUM]);
    CHECK(words[MOST] == all - 1, "%ld", words[MOST]);
    CHECK(words[LOCK] == 0 && words[GUARDED] == all, "%ld", words[GUARDED]);
    CHECK(words[REPLACED] == 1 && words[TAKEN] == 1, "%ld", words[TAKEN]);
    CHECK(halves == all / 2.0, "%f", halves);
    CHECK(odd == 2 * all, "%ld", odd);
    for (int j = 0; j < WORDS - REST; j++) {
        CHECK(words[REST + j] == j * all + (j == 0 ? all : 0), "%d: %ld", j, words[REST + j]);
    }
}

int main(int argc, char **argv)
{
    const char *granularities[] = {NULL, "8", "4096"};
    begin(&argc, &argv);
    if (argc > 1) times = atoi(argv[1]);
    CHECK(size <= 64 && times > 0 && times <= MOST_TIMES);
    for (int i = 0; i < 3; i++) {
        char *memory;
        MPI_Win win;
        MPI_Info info = MPI_INFO_NULL;
        if (granularities[i] != NULL) {
            MPI_Info_create(&info);
            MPI_Info_set(info, "mpi_accumulate_granularity", granularities[i]);
        }
        MPI_Win_allocate(8 * WORDS, 1, info, WORLD, &memory, &win);
        if (info != MPI_INFO_NULL) MPI_Info_free(&info);
        memset(memory, 0, 8 * WORDS);
        MPI_Barrier(WORLD);
        at = i % size;
        work(win);
        MPI_Barrier(WORLD);
        if (rank == at) check(memory);
        MPI_Barrier(WORLD);
        MPI_Win_free(&win);
    }
    return end();
}
