// ranks: 1 2 3
// says: correct
// env: | WEFT_CMA=0 | WEFT_FENCE=2S | WEFT_FENCE=RI WEFT_FAULT=seed=3,completion_delay=0.5 | WEFT_RMA_ORDER=turns WEFT_CMA=0
//
// Data that lie in several attached regions (MPI 5.0, section 12.2.4): every operation, in every kind of epoch, on
// memory of the program and of MPI_Alloc_mem, with gaps, and with elements that lie across two regions. What is not
// attached is refused, and nothing is changed then.
#include "check.h"

#define WORLD MPI_COMM_WORLD

enum { LONGS = 24, BYTES = 8 * LONGS };

static MPI_Win win;
static char *memory;        /* this rank's: BYTES, 8-aligned */
static MPI_Aint bases[64];  /* where it is at each rank */
static int target;

static long at(int i)
{
    long value;
    memcpy(&value, memory + 8 * i, 8);
    return value;
}

static void set(int i, long value) { memcpy(memory + 8 * i, &value, 8); }

static void fill(void)
{
    for (int i = 0; i < LONGS; i++) set(i, 1000 * rank + i);
    MPI_Barrier(WORLD);
}

static MPI_Aint there(int byte) { return MPI_Aint_add(bases[target], byte); }

enum { LOCK, LOCK_ALL, FENCE, START, EPOCHS };

static void open(int epoch)
{
    MPI_Group all;
    if (epoch == LOCK) MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
    if (epoch == LOCK_ALL) MPI_Win_lock_all(0, win);
    if (epoch == FENCE) MPI_Win_fence(0, win);
    if (epoch == START) {
        MPI_Comm_group(WORLD, &all);
        MPI_Win_post(all, 0, win);
        MPI_Win_start(all, 0, win);
        MPI_Group_free(&all);
    }
}

static void shut(int epoch)
{
    if (epoch == LOCK) MPI_Win_unlock(target, win);
    if (epoch == LOCK_ALL) MPI_Win_flush(target, win), MPI_Win_unlock_all(win);
    if (epoch == FENCE) MPI_Win_fence(0, win);
    if (epoch == START) MPI_Win_complete(win), MPI_Win_wait(win);
    MPI_Barrier(WORLD);
}

/* The regions: lengths in bytes, negative for a gap. Attached from the last to the first. */
static void attach(const int *lengths, int n)
{
    int from = BYTES;
    for (int i = n - 1; i >= 0; i--) {
        from -= abs(lengths[i]);
        if (lengths[i] > 0) CHECK(!MPI_Win_attach(win, memory + from, lengths[i]));
    }
    CHECK(from == 0, "%d", from);
    MPI_Barrier(WORLD);
}

static void detach(const int *lengths, int n)
{
    MPI_Barrier(WORLD);
    for (int i = 0, from = 0; i < n; from += abs(lengths[i++]))
        if (lengths[i] > 0) CHECK(!MPI_Win_detach(win, memory + from));
}

/* All data that `type` takes of the 24 longs: 12 of them, which ones says `which`. Who writes here is `left`. */
static void operations(int epoch, MPI_Datatype type, const int *which)
{
    long out[12], in[12], add[12], zero = 0;
    MPI_Request requests[2];
    int left = (rank + size - 1) % size, byrequest = epoch == LOCK || epoch == LOCK_ALL;
    for (int i = 0; i < 12; i++) out[i] = -100 * rank - i, add[i] = i + 1, in[i] = 0;

    fill(), open(epoch);
    CHECK(!MPI_Get(in, 12, MPI_LONG, target, there(0), 1, type, win));
    shut(epoch);
    for (int i = 0; i < 12; i++) CHECK(in[i] == 1000 * target + which[i], "%d: %ld", i, in[i]);

    fill(), open(epoch);
    CHECK(!MPI_Put(out, 12, MPI_LONG, target, there(0), 1, type, win));
    shut(epoch);
    for (int i = 0; i < 12; i++) CHECK(at(which[i]) == -100 * left - i, "%d: %ld", i, at(which[i]));

    fill(), open(epoch);
    CHECK(!MPI_Accumulate(add, 12, MPI_LONG, target, there(0), 1, type, MPI_SUM, win));
    shut(epoch);
    for (int i = 0; i < 12; i++) CHECK(at(which[i]) == 1000 * rank + which[i] + i + 1);

    fill(), open(epoch);
    CHECK(!MPI_Get_accumulate(out, 12, MPI_LONG, in, 12, MPI_LONG, target, there(0), 1, type, MPI_REPLACE, win));
    shut(epoch);
    for (int i = 0; i < 12; i++)
        CHECK(in[i] == 1000 * target + which[i] && at(which[i]) == -100 * left - i, "%d: %ld", i, in[i]);

    fill(), open(epoch);
    CHECK(!MPI_Get_accumulate(NULL, 0, MPI_LONG, in, 12, MPI_LONG, target, there(0), 1, type, MPI_NO_OP, win));
    shut(epoch);
    for (int i = 0; i < 12; i++) CHECK(in[i] == 1000 * target + which[i]);

    fill(), open(epoch);
    for (int i = 0; i < 12; i++)
        CHECK(!MPI_Fetch_and_op(&add[i], &in[i], MPI_LONG, target, there(8 * which[i]), MPI_SUM, win));
    shut(epoch);
    for (int i = 0; i < 12; i++)
        CHECK(in[i] == 1000 * target + which[i] && at(which[i]) == 1000 * rank + which[i] + i + 1);

    fill(), open(epoch);
    for (int i = 0; i < 12; i++) {
        long old = 1000 * target + which[i];
        CHECK(!MPI_Compare_and_swap(&out[i], i % 2 ? &old : &zero, &in[i], MPI_LONG, target, there(8 * which[i]), win));
        if (epoch == FENCE) MPI_Win_fence(0, win);  /* `old` is read until then */
        else if (byrequest) MPI_Win_flush(target, win);
        else shut(epoch), open(epoch);
    }
    shut(epoch);
    for (int i = 0; i < 12; i++) {
        CHECK(in[i] == 1000 * target + which[i] || (target == 0 && which[i] == 0), "%d: %ld", i, in[i]);
        if (i % 2) CHECK(at(which[i]) == -100 * left - i);
    }

    if (byrequest) {
        fill(), open(epoch);
        CHECK(!MPI_Rput(out, 12, MPI_LONG, target, there(0), 1, type, win, &requests[0]));
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        MPI_Win_flush(target, win);
        CHECK(!MPI_Rget(in, 12, MPI_LONG, target, there(0), 1, type, win, &requests[0]));
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        for (int i = 0; i < 12; i++) CHECK(in[i] == out[i]);
        CHECK(!MPI_Raccumulate(add, 12, MPI_LONG, target, there(0), 1, type, MPI_SUM, win, &requests[0]));
        CHECK(!MPI_Rget_accumulate(add, 12, MPI_LONG, in, 12, MPI_LONG, target, there(0), 1, type, MPI_SUM, win,
                                   &requests[1]));
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < 12; i++) CHECK(in[i] == out[i] + i + 1);
        shut(epoch);
        for (int i = 0; i < 12; i++) CHECK(at(which[i]) == -100 * left - i + 2 * (i + 1));
    }
}

/* Everybody adds to the same elements of rank 0, each in another way: alone or together, across borders or not. */
static void together(MPI_Datatype type, const int *which)
{
    long one[12], got[12];
    enum { TIMES = 50 };
    for (int i = 0; i < 12; i++) one[i] = 1;
    for (int i = 0; i < LONGS; i++) set(i, 0);
    MPI_Barrier(WORLD);
    MPI_Win_lock_all(0, win);
    for (int k = 0; k < TIMES; k++) {
        MPI_Accumulate(one, 12, MPI_LONG, 0, bases[0], 1, type, MPI_SUM, win);
        MPI_Fetch_and_op(one, got, MPI_LONG, 0, MPI_Aint_add(bases[0], 8 * which[k % 12]), MPI_SUM, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(WORLD);
    if (rank == 0)
        for (int i = 0; i < 12; i++)
            CHECK(at(which[i]) == size * (TIMES + TIMES / 12 + (i < TIMES % 12)), "%d: %ld", i, at(which[i]));
    MPI_Barrier(WORLD);
}

static void refused(MPI_Datatype type, MPI_Datatype holes)
{
    static const int three[] = {32, 40, 120};
    long out[12] = {0}, in[12];
    MPI_Request request;
    attach(three, 3), fill();
    CHECK(!MPI_Win_detach(win, memory + 32));
    MPI_Barrier(WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
    FAILS(MPI_Put(out, 12, MPI_LONG, target, there(0), 1, type, win), MPI_ERR_RMA_RANGE);
    FAILS(MPI_Get(in, 12, MPI_LONG, target, there(0), 1, type, win), MPI_ERR_RMA_RANGE);
    FAILS(MPI_Accumulate(out, 12, MPI_LONG, target, there(0), 1, type, MPI_REPLACE, win), MPI_ERR_RMA_RANGE);
    FAILS(MPI_Get_accumulate(out, 12, MPI_LONG, in, 12, MPI_LONG, target, there(0), 1, type, MPI_REPLACE, win),
          MPI_ERR_RMA_RANGE);
    FAILS(MPI_Rput(out, 12, MPI_LONG, target, there(0), 1, type, win, &request), MPI_ERR_RMA_RANGE);
    FAILS(MPI_Put(out, 1, MPI_LONG, target, there(28), 1, MPI_LONG, win), MPI_ERR_RMA_RANGE);
    FAILS(MPI_Put(out, 1, MPI_LONG, target, there(68), 1, MPI_LONG, win), MPI_ERR_RMA_RANGE);
    FAILS(MPI_Fetch_and_op(out, in, MPI_LONG, target, there(28), MPI_REPLACE, win), MPI_ERR_RMA_RANGE);
    FAILS(MPI_Compare_and_swap(out, out, in, MPI_LONG, target, there(32), win), MPI_ERR_RMA_RANGE);
    FAILS(MPI_Put(out, 1, MPI_LONG, target, there(BYTES - 4), 1, MPI_LONG, win), MPI_ERR_RMA_RANGE);
    /* What has its gap there touches nothing that is not attached. */
    CHECK(!MPI_Get(in, 8, MPI_LONG, target, there(0), 1, holes, win));
    MPI_Win_unlock(target, win);
    for (int i = 0; i < 8; i++) CHECK(in[i] == 1000 * target + (i < 4 ? i : i + 8), "%ld", in[i]);
    MPI_Barrier(WORLD);
    for (int i = 0; i < LONGS; i++) CHECK(at(i) == 1000 * rank + i);
    MPI_Win_attach(win, memory + 32, 40);
    MPI_Barrier(WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
    CHECK(!MPI_Put(out, 12, MPI_LONG, target, there(0), 1, type, win));
    MPI_Win_unlock(target, win);
    MPI_Barrier(WORLD);
    CHECK(at(0) == 0 && at(11) == 0 && at(12) == 1000 * rank + 12);
    detach(three, 3);
}

int main(int argc, char **argv)
{
    /* Borders between elements, within them, and gaps that no data lie in. */
    static const int layouts[][5] = {{96, 96}, {64, 128}, {20, 41, 131}, {44, 4, 144}, {8, 24, 36, 60, 64}};
    static const int counts[] = {2, 2, 3, 3, 5};
    static const int gaps[][5] = {{32, -64, 96}, {8, 24, -64, 4, 92}};
    static const int gap_counts[] = {3, 5};
    int dense[12], holed[12], lengths[] = {4, 8}, places[] = {0, 12}, short_lengths[] = {4, 4};
    MPI_Datatype whole, holes, some;
    begin(&argc, &argv);
    target = (rank + 1) % size;
    for (int i = 0; i < 12; i++) dense[i] = i, holed[i] = i < 4 ? i : i + 8;
    MPI_Type_contiguous(12, MPI_LONG, &whole);
    MPI_Type_indexed(2, lengths, places, MPI_LONG, &holes);
    MPI_Type_indexed(2, short_lengths, places, MPI_LONG, &some);
    MPI_Type_commit(&whole), MPI_Type_commit(&holes), MPI_Type_commit(&some);
    for (int allocated = 0; allocated < 2; allocated++) {
        MPI_Aint base;
        if (allocated) MPI_Alloc_mem(BYTES, MPI_INFO_NULL, &memory);
        else memory = malloc(BYTES);
        MPI_Win_create_dynamic(MPI_INFO_NULL, WORLD, &win);
        MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
        MPI_Get_address(memory, &base);
        MPI_Allgather(&base, 1, MPI_AINT, bases, 1, MPI_AINT, WORLD);
        for (int epoch = 0; epoch < EPOCHS; epoch++) {
            for (int l = 0; l < 5; l++) {
                attach(layouts[l], counts[l]);
                operations(epoch, whole, dense);
                if (epoch == 0) together(whole, dense);
                detach(layouts[l], counts[l]);
            }
            for (int l = 0; l < 2; l++) {
                attach(gaps[l], gap_counts[l]);
                operations(epoch, holes, holed);
                if (epoch == 0) together(holes, holed);
                detach(gaps[l], gap_counts[l]);
            }
        }
        refused(whole, some);
        MPI_Win_free(&win);
        if (allocated) MPI_Free_mem(memory);
        else free(memory);
    }
    MPI_Type_free(&whole), MPI_Type_free(&holes), MPI_Type_free(&some);
    return end();
}
