// ranks: 1 3
// says: correct
// env: | WEFT_CMA=0
//
// Windows of several threads: each thread with a window of its own, of every kind; several threads on the same window; windows that are
// made and freed while other threads use theirs; more windows than have a lock of their own; and errors, which are as with one thread.
#include "check.h"
#include <pthread.h>

enum { THREADS = 3, ROUNDS = 64, LONG = 40, KINDS = 5, MANY = 300, ELEMENTS = 512 };

/* Elements of a rank's part of a window. */
enum { TICKET, SWAPPED, LOCKED, PAIR, SUMS = 8, SLOTS = SUMS + LONG };

static MPI_Comm comms[THREADS];
static MPI_Win common;
static int64_t *common_part;

static int right(void) { return (rank + 1) % size; }

/* Makes a window of one of the kinds. */
static MPI_Win make(int kind, MPI_Comm comm, int64_t **part, MPI_Aint *firsts)
{
    MPI_Win win;
    MPI_Aint bytes = ELEMENTS * sizeof **part, first = 0;
    switch (kind) {
    case 0: MPI_Win_allocate(bytes, 8, MPI_INFO_NULL, comm, part, &win); break;
    case 1: MPI_Win_allocate_shared(bytes, 8, MPI_INFO_NULL, comm, part, &win); break;
    case 2:
        MPI_Alloc_mem(bytes, MPI_INFO_NULL, part);
        MPI_Win_create(*part, bytes, 8, MPI_INFO_NULL, comm, &win);
        break;
    case 3:
        *part = malloc(bytes);
        MPI_Win_create(*part, bytes, 8, MPI_INFO_NULL, comm, &win);
        break;
    default:
        *part = malloc(bytes);
        MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &win);
        MPI_Win_attach(win, *part, bytes);
        MPI_Get_address(*part, &first);
    }
    memset(*part, 0, bytes);
    MPI_Allgather(&first, 1, MPI_AINT, firsts, 1, MPI_AINT, comm);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Barrier(comm);
    return win;
}

static void unmake(int kind, MPI_Win *win, int64_t *part)
{
    if (kind == 4) MPI_Win_detach(*win, part);
    MPI_Win_free(win);
    CHECK(*win == MPI_WIN_NULL);
    if (kind == 2) MPI_Free_mem(part);
    if (kind >= 3) free(part);
}

/* The displacement of an element. In a dynamic window it is an address. */
#define AT(to, element) (firsts[to] ? firsts[to] + 8 * (element) : (element))

/* Atomic updates of elements of all ranks. `slot` is the thread's own number. */
static void update(MPI_Win win, const MPI_Aint *firsts, int slot)
{
    int64_t one = 1, old, last = -1, ones[LONG], olds[LONG];
    for (int k = 0; k < LONG; k++) ones[k] = k;
    for (int i = 0; i < ROUNDS; i++) {
        int to = (rank + i) % size;
        MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 0, AT(0, TICKET), MPI_SUM, win);
        MPI_Win_flush(0, win);
        CHECK(old > last, "a ticket is given twice: %lld after %lld", (long long)old, (long long)last);
        last = old;
        MPI_Accumulate(ones, LONG, MPI_INT64_T, to, AT(to, SUMS), LONG, MPI_INT64_T, MPI_SUM, win);
        if (i % 8 == 0) {
            MPI_Get_accumulate(ones, LONG, MPI_INT64_T, olds, LONG, MPI_INT64_T, to, AT(to, SUMS), LONG, MPI_INT64_T, MPI_SUM, win);
            MPI_Win_flush_local(to, win);
            for (int k = 1; k < LONG; k++) CHECK(olds[k] == k * olds[1], "an update in parts, element %d", k);
        }
        for (int64_t was = 0, next;; was = old) {
            next = was + 1;
            MPI_Compare_and_swap(&next, &was, &old, MPI_INT64_T, 0, AT(0, SWAPPED), win);
            MPI_Win_flush(0, win);
            if (old == was) break;
        }
        /* A slot of this thread at its right neighbor. */
        int64_t word = 1000 * i + slot, back = -1;
        int place = SLOTS + slot;
        MPI_Put(&word, 1, MPI_INT64_T, right(), AT(right(), place), 1, MPI_INT64_T, win);
        MPI_Win_flush(right(), win);
        MPI_Get(&back, 1, MPI_INT64_T, right(), AT(right(), place), 1, MPI_INT64_T, win);
        i % 2 ? MPI_Win_flush_local(right(), win) : MPI_Win_flush_all(win);
        CHECK(back == word, "%lld", (long long)back);
    }
}

/* Operations with requests, in arrays with null requests. */
static void requested(MPI_Win win, const MPI_Aint *firsts, int slot)
{
    int place = SLOTS + slot, flag = 0;
    for (int64_t i = 0; i < ROUNDS; i++) {
        int64_t word = 7 * i + slot, one = 1, back = -1, old = -1;
        MPI_Request three[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        MPI_Status status[3];
        MPI_Rput(&word, 1, MPI_INT64_T, right(), AT(right(), place), 1, MPI_INT64_T, win, &three[0]);
        CHECK(three[0] != MPI_REQUEST_NULL);
        i % 2 ? MPI_Wait(&three[0], &status[0]) : MPI_Waitall(3, three, status);
        CHECK(three[0] == MPI_REQUEST_NULL);
        MPI_Win_flush(right(), win);
        MPI_Rget(&back, 1, MPI_INT64_T, right(), AT(right(), place), 1, MPI_INT64_T, win, &three[0]);
        MPI_Raccumulate(&one, 1, MPI_INT64_T, 0, AT(0, SUMS), 1, MPI_INT64_T, MPI_SUM, win, &three[1]);
        MPI_Rget_accumulate(&one, 1, MPI_INT64_T, &old, 1, MPI_INT64_T, 0, AT(0, SUMS), 1, MPI_INT64_T, MPI_NO_OP, win, &three[2]);
        switch (i % 4) {
        case 0: MPI_Waitall(3, three, MPI_STATUSES_IGNORE); break;
        case 1: MPI_Waitall(3, three, status); break;
        case 2:
            for (flag = 0; !flag;) MPI_Testall(3, three, &flag, status);
            break;
        default:
            for (int k = 0; k < 3; k++) {
                for (flag = 0; !flag;) MPI_Test(&three[k], &flag, MPI_STATUS_IGNORE);
            }
        }
        for (int k = 0; k < 3; k++) CHECK(three[k] == MPI_REQUEST_NULL);
        CHECK(back == word && old >= 0, "%lld", (long long)back);
    }
}

/* Locks of one rank: the holder is alone. */
static void locked(MPI_Win win, const MPI_Aint *firsts)
{
    for (int i = 0; i < ROUNDS; i++) {
        int64_t word;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Get(&word, 1, MPI_INT64_T, 0, AT(0, LOCKED), 1, MPI_INT64_T, win);
        MPI_Win_flush(0, win);
        word++;
        MPI_Put(&word, 1, MPI_INT64_T, 0, AT(0, LOCKED), 1, MPI_INT64_T, win);
        MPI_Win_unlock(0, win);
    }
}

/* Epochs of fences and of groups. */
static void active(MPI_Win win, const MPI_Aint *firsts, MPI_Comm comm, const int64_t *part)
{
    MPI_Group all;
    MPI_Comm_group(comm, &all);
    MPI_Win_fence(0, win);
    for (int64_t i = 0; i < 8; i++) {
        int64_t word = 100 * i + rank;
        MPI_Put(&word, 1, MPI_INT64_T, right(), AT(right(), PAIR), 1, MPI_INT64_T, win);
        MPI_Win_fence(0, win);
        CHECK(part[PAIR] == 100 * i + (rank + size - 1) % size, "%lld", (long long)part[PAIR]);
        MPI_Win_fence(0, win);
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    for (int64_t i = 0; i < 8; i++) {
        int64_t word = 200 * i + rank;
        MPI_Win_post(all, 0, win);
        MPI_Win_start(all, 0, win);
        MPI_Put(&word, 1, MPI_INT64_T, right(), AT(right(), PAIR), 1, MPI_INT64_T, win);
        MPI_Win_complete(win);
        MPI_Win_wait(win);
        CHECK(part[PAIR] == 200 * i + (rank + size - 1) % size, "%lld", (long long)part[PAIR]);
        MPI_Barrier(comm);
    }
    MPI_Group_free(&all);
}

/* Calls that must be refused, as with one thread. */
static void refused(MPI_Win win)
{
    int64_t word = 0, old;
    MPI_Request request;
    FAILS(MPI_Put(&word, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Fetch_and_op(&word, &old, MPI_INT64_T, 0, 0, MPI_SUM, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_flush(0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_flush_all(win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_unlock(0, win), MPI_ERR_RMA_SYNC);
    MPI_Win_lock_all(0, win);
    FAILS(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Put(&word, 1, MPI_INT64_T, size, 0, 1, MPI_INT64_T, win), MPI_ERR_RANK);
    FAILS(MPI_Get(&word, -1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win), MPI_ERR_COUNT);
    FAILS(MPI_Put(&word, 1, MPI_DATATYPE_NULL, 0, 0, 1, MPI_INT64_T, win), MPI_ERR_TYPE);
    FAILS(MPI_Accumulate(&word, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, MPI_NO_OP, win), MPI_ERR_OP);
    FAILS(MPI_Rput(&word, 1, MPI_INT64_T, size + 1, 0, 1, MPI_INT64_T, win, &request), MPI_ERR_RANK);
    FAILS(MPI_Win_flush(size, win), MPI_ERR_RANK);
    CHECK(!MPI_Put(&word, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, win));
    CHECK(!MPI_Rget(&word, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, win, &request));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    FAILS(MPI_Win_free(&win), MPI_ERR_RMA_SYNC);
    MPI_Win_unlock_all(win);
}

/* A thread with windows of its own, of all kinds. */
static void *own(void *number)
{
    int me = (int)(intptr_t)number;
    MPI_Aint *firsts = malloc(size * sizeof *firsts);
    for (int i = 0; i < KINDS; i++) {
        int kind = (me + i) % KINDS;
        int64_t *part;
        MPI_Win win = make(kind, comms[me], &part, firsts);
        refused(win);
        MPI_Win_lock_all(me % 2 ? MPI_MODE_NOCHECK : 0, win);
        update(win, firsts, 0);
        MPI_Barrier(comms[me]);
        MPI_Win_sync(win);
        if (rank == 0) {
            CHECK(part[TICKET] == (int64_t)ROUNDS * size && part[SWAPPED] == (int64_t)ROUNDS * size, "kind %d: %lld, %lld", kind,
                  (long long)part[TICKET], (long long)part[SWAPPED]);
        }
        requested(win, firsts, 0);
        MPI_Win_unlock_all(win);
        MPI_Barrier(comms[me]);
        locked(win, firsts);
        MPI_Barrier(comms[me]);
        MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
        CHECK(rank != 0 || part[LOCKED] == (int64_t)ROUNDS * size, "kind %d: %lld", kind, (long long)part[LOCKED]);
        MPI_Win_unlock(rank, win);
        active(win, firsts, comms[me], part);
        unmake(kind, &win, part);
    }
    free(firsts);
    return NULL;
}

/* A thread that shares a window with others. */
static void *shared(void *number)
{
    MPI_Aint *firsts = calloc(size, sizeof *firsts);
    int me = (int)(intptr_t)number;
    update(common, firsts, me);
    requested(common, firsts, me);
    free(firsts);
    return NULL;
}

/* A thread that makes and frees windows, while others use theirs. */
static void *renewed(void *number)
{
    int me = (int)(intptr_t)number;
    MPI_Win past = MPI_WIN_NULL;
    for (int i = 0; i < 20; i++) {
        int64_t *part, word = i, back = -1;
        MPI_Win win;
        MPI_Win_allocate(ELEMENTS * 8, 8, MPI_INFO_NULL, comms[me], &part, &win);
        CHECK(win != past);
        MPI_Win_lock_all(0, win);
        MPI_Put(&word, 1, MPI_INT64_T, right(), 0, 1, MPI_INT64_T, win);
        MPI_Win_flush(right(), win);
        MPI_Get(&back, 1, MPI_INT64_T, right(), 0, 1, MPI_INT64_T, win);
        MPI_Win_unlock_all(win);
        CHECK(back == i);
        past = win;
        MPI_Win_free(&win);
        FAILS(MPI_Put(&word, 1, MPI_INT64_T, right(), 0, 1, MPI_INT64_T, past), MPI_ERR_WIN);
        FAILS(MPI_Win_flush(0, past), MPI_ERR_WIN);
    }
    return NULL;
}

static void together(void *(*run)(void *), void *(*last)(void *))
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        CHECK(!pthread_create(&threads[i], NULL, i < THREADS - 1 ? run : last, (void *)(intptr_t)i));
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

/* More windows than have a lock of their own. */
static void many(void)
{
    static MPI_Win wins[MANY];
    int64_t *parts[MANY], word, back;
    for (int i = 0; i < MANY; i++) {
        MPI_Win_allocate(8, 8, MPI_INFO_NULL, MPI_COMM_SELF, &parts[i], &wins[i]);
        MPI_Win_lock_all(0, wins[i]);
    }
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < MANY; i++) {
            word = 10 * i + turn;
            MPI_Put(&word, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, wins[i]);
            MPI_Win_flush(0, wins[i]);
        }
        for (int i = 0; i < MANY; i++) {
            MPI_Get(&back, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, wins[i]);
            MPI_Win_flush_local(0, wins[i]);
            CHECK(back == 10 * i + turn && *parts[i] == back);
        }
    }
    for (int i = 0; i < MANY; i++) {
        MPI_Win_unlock_all(wins[i]);
        MPI_Win_free(&wins[i]);
    }
}

/* A rank that looks at its memory by MPI_Win_sync, until its left neighbor has written. */
static void awaited(void)
{
    int64_t *part, word = 5;
    MPI_Win win;
    MPI_Win_allocate(8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &part, &win);
    *part = 0;
    MPI_Win_lock_all(0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Accumulate(&word, 1, MPI_INT64_T, right(), 0, 1, MPI_INT64_T, MPI_REPLACE, win);
    MPI_Win_flush(right(), win);
    while (__atomic_load_n(part, __ATOMIC_RELAXED) != 5) MPI_Win_sync(win);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(provided == MPI_THREAD_MULTIPLE);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < THREADS; i++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    together(own, own);
    together(own, renewed);

    MPI_Win_allocate(ELEMENTS * 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &common_part, &common);
    memset(common_part, 0, ELEMENTS * 8);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, common);
    together(shared, shared);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(common);
    int64_t all = (int64_t)ROUNDS * size * THREADS;
    CHECK(rank != 0 || (common_part[TICKET] == all && common_part[SWAPPED] == all && common_part[SUMS] == all),
          "%lld of %lld tickets, %lld swaps, %lld sums", (long long)common_part[TICKET], (long long)all, (long long)common_part[SWAPPED],
          (long long)common_part[SUMS]);
    /* Every round adds once, and every eighth round twice. */
    int64_t sum = 0, mine = common_part[SUMS + 1], expected = (int64_t)size * THREADS * (ROUNDS + ROUNDS / 8);
    MPI_Allreduce(&mine, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == expected, "%lld of %lld", (long long)sum, (long long)expected);
    MPI_Win_unlock_all(common);
    MPI_Win_free(&common);
    many();
    awaited();
    for (int i = 0; i < THREADS; i++) MPI_Comm_free(&comms[i]);
    return end();
}
