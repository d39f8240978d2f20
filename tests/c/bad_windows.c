// ranks: 2
// env: | WEFT_CMA=0
// says: correct
//
// Mistakes with windows (MPI 5.0, section 12.6): the class, the window, the rank, the range; and nothing
// outside of a window is touched.
#include "bad.h"

#define WORLD MPI_COMM_WORLD

static long memory[16], data[32];

static void arguments(void)
{
    MPI_Win win = MPI_WIN_NULL;
    void *base;
    BAD(SIZE, "size = -1", MPI_Win_create(memory, -1, 1, MPI_INFO_NULL, WORLD, &win));
    BAD(DISP, "disp_unit = 0", MPI_Win_create(memory, 8, 0, MPI_INFO_NULL, WORLD, &win));
    BAD(BASE, "NULL|size = 8", MPI_Win_create(NULL, 8, 1, MPI_INFO_NULL, WORLD, &win));
    BAD(ARG, "win is NULL", MPI_Win_create(memory, 8, 1, MPI_INFO_NULL, WORLD, NULL));
    BAD(COMM, "null", MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_NULL, &base, &win));
    BAD(ARG, "baseptr", MPI_Win_allocate(8, 1, MPI_INFO_NULL, WORLD, NULL, &win));
    BAD(WIN, "null window", MPI_Win_fence(0, MPI_WIN_NULL));
    BAD(WIN, "null window", MPI_Win_free(&win));
}

static void operations(MPI_Win win)
{
    MPI_Datatype none;
    MPI_Request request;
    long one = 1;
    MPI_Type_contiguous(3, MPI_LONG, &none);
    BAD(RMA_SYNC, "ring|rank 1|outside", MPI_Put(data, 1, MPI_LONG, 1, 0, 1, MPI_LONG, win));
    BAD(RMA_SYNC, "ring|rank 0|outside", MPI_Fetch_and_op(&one, data, MPI_LONG, 0, 0, MPI_SUM, win));
    MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
    BAD(RMA_SYNC, "rank 0|other ranks are locked", MPI_Get(data, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win));
    BAD(RANK, "target_rank = 2|0 to 1", MPI_Put(data, 1, MPI_LONG, 2, 0, 1, MPI_LONG, win));
    BAD(DISP, "-1|rank 1|negative", MPI_Put(data, 1, MPI_LONG, 1, -1, 1, MPI_LONG, win));
    BAD(RMA_RANGE, "ring|rank 1|displacement 8|bytes 64 to 71|64 bytes",
        MPI_Put(data, 1, MPI_LONG, 1, 8, 1, MPI_LONG, win));
    BAD(RMA_RANGE, "bytes 56 to 71", MPI_Get(data, 2, MPI_LONG, 1, 7, 2, MPI_LONG, win));
    BAD(RMA_RANGE, "rank 1", MPI_Put(data, 1, MPI_LONG, 1, (MPI_Aint)1 << 62, 1, MPI_LONG, win));
    BAD(RMA_RANGE, "rank 1", MPI_Accumulate(data, 9, MPI_LONG, 1, 0, 9, MPI_LONG, MPI_SUM, win));
    BAD(COUNT, "origin_count = -1", MPI_Put(data, -1, MPI_LONG, 1, 0, 1, MPI_LONG, win));
    BAD(COUNT, "target_count = -1", MPI_Put(data, 1, MPI_LONG, 1, 0, -1, MPI_LONG, win));
    BAD(TYPE, "not committed", MPI_Put(data, 3, MPI_LONG, 1, 0, 1, none, win));
    BAD(BUFFER, "origin_addr is NULL", MPI_Put(NULL, 1, MPI_LONG, 1, 0, 1, MPI_LONG, win));
    BAD(TRUNCATE, "16 bytes|8", MPI_Put(data, 2, MPI_LONG, 1, 0, 1, MPI_LONG, win));
    BAD(OP, "MPI_NO_OP", MPI_Accumulate(data, 1, MPI_LONG, 1, 0, 1, MPI_LONG, MPI_NO_OP, win));
    BAD(OP, "MPI_BAND", MPI_Accumulate(data, 1, MPI_DOUBLE, 1, 0, 1, MPI_DOUBLE, MPI_BAND, win));
    BAD(TYPE, "MPI_Compare_and_swap",
        MPI_Compare_and_swap(data, data, data, MPI_DOUBLE, 1, 0, win));
    BAD(ARG, "request is NULL", MPI_Rput(data, 1, MPI_LONG, 1, 0, 1, MPI_LONG, win, NULL));
    BAD(RMA_RANGE, "rank 1", MPI_Rget(data, 9, MPI_LONG, 1, 0, 9, MPI_LONG, win, &request));
    MPI_Win_unlock(1, win);
    MPI_Type_free(&none);
}

static void epochs(MPI_Win *win)
{
    MPI_Group all, none = MPI_GROUP_EMPTY, other;
    int flag, mine = rank;
    BAD(LOCKTYPE, "lock_type = 7", MPI_Win_lock(7, 1, 0, *win));
    BAD(RANK, "rank = -9", MPI_Win_lock(MPI_LOCK_SHARED, -9, 0, *win));
    BAD(ASSERT, "assert = 0x1", MPI_Win_fence(1, *win));
    BAD(RMA_SYNC, "rank 1 is not locked", MPI_Win_unlock(1, *win));
    BAD(RMA_SYNC, "rank 1 is not locked", MPI_Win_flush(1, *win));
    BAD(RMA_SYNC, "no rank is locked", MPI_Win_flush_all(*win));
    BAD(RMA_SYNC, "without MPI_Win_lock_all", MPI_Win_unlock_all(*win));
    BAD(RMA_SYNC, "without MPI_Win_start", MPI_Win_complete(*win));
    BAD(RMA_SYNC, "without MPI_Win_post", MPI_Win_wait(*win));
    BAD(RMA_SYNC, "without MPI_Win_post", MPI_Win_test(*win, &flag));
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, *win);
    BAD(RMA_SYNC, "is locked already", MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, *win));
    BAD(RMA_SYNC, "MPI_Win_lock_all", MPI_Win_lock_all(0, *win));
    BAD(RMA_SYNC, "MPI_Win_free|MPI_Win_unlock", MPI_Win_free(win));
    BAD(RMA_SYNC, "MPI_Win_fence|is locked", MPI_Win_fence(0, *win));
    MPI_Win_unlock(rank, *win);
    MPI_Win_lock_all(0, *win);
    BAD(RMA_SYNC, "MPI_Win_lock_all", MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, *win));
    BAD(RMA_SYNC, "MPI_Win_free|MPI_Win_unlock_all", MPI_Win_free(win));
    MPI_Win_unlock_all(*win);
    MPI_Win_get_group(*win, &all);
    MPI_Group_incl(all, 1, &mine, &other);
    MPI_Win_post(other, 0, *win);
    BAD(RMA_SYNC, "an exposure epoch is open", MPI_Win_post(other, 0, *win));
    MPI_Win_start(other, 0, *win);
    BAD(RMA_SYNC, "MPI_Win_start", MPI_Win_start(other, 0, *win));
    BAD(RMA_SYNC, "1 others, not to it", MPI_Put(data, 1, MPI_LONG, 1 - rank, 0, 1, MPI_LONG, *win));
    BAD(RMA_SYNC, "MPI_Win_free|MPI_Win_complete", MPI_Win_free(win));
    MPI_Win_complete(*win);
    MPI_Win_wait(*win);
    MPI_Win_post(none, 0, *win);
    MPI_Win_wait(*win);
    MPI_Group_free(&other);
    MPI_Group_free(&all);
    MPI_Win_fence(0, *win);
    MPI_Put(data, 1, MPI_LONG, rank, 0, 1, MPI_LONG, *win);
    BAD(RMA_SYNC, "MPI_Win_free|MPI_Win_fence", MPI_Win_free(win));
    BAD(RMA_SYNC, "MPI_MODE_NOPRECEDE", MPI_Win_fence(MPI_MODE_NOPRECEDE, *win));
    BAD(RMA_SYNC, "MPI_Win_lock while", MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, *win));
    MPI_Win_fence(MPI_MODE_NOSUCCEED, *win);
    BAD(RMA_SYNC, "outside", MPI_Put(data, 1, MPI_LONG, rank, 0, 1, MPI_LONG, *win));
}

static void dynamic(void)
{
    MPI_Win win;
    MPI_Aint address;
    MPI_Win_create_dynamic(MPI_INFO_NULL, WORLD, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_set_name(win, "growing");
    MPI_Win_attach(win, memory + 4, 32);
    BAD(RMA_ATTACH, "growing|overlaps|32 bytes", MPI_Win_attach(win, memory + 7, 32));
    BAD(SIZE, "size = -4", MPI_Win_attach(win, memory, -4));
    BAD(BASE, "nothing is attached", MPI_Win_detach(win, memory + 5));
    MPI_Get_address(memory + 4, &address);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    BAD(RMA_RANGE, "growing|rank|attached", MPI_Put(data, 1, MPI_LONG, rank, address + 28, 1, MPI_LONG, win));
    BAD(RMA_RANGE, "growing", MPI_Put(data, 1, MPI_LONG, rank, 0, 1, MPI_LONG, win));
    MPI_Win_unlock(rank, win);
    MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
    MPI_Win win;
    begin_returning(&argc, &argv);
    for (int i = 0; i < 32; i++) data[i] = 77;
    arguments();
    for (int i = 0; i < 16; i++) memory[i] = i;
    MPI_Win_create(memory + 4, 64, 8, MPI_INFO_NULL, WORLD, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_set_name(win, "ring");
    BAD(RMA_FLAVOR, "ring|MPI_Win_create_dynamic", MPI_Win_attach(win, memory, 8));
    operations(win);
    MPI_Barrier(WORLD);
    for (int i = 0; i < 16; i++) CHECK(memory[i] == i, "long %d is %ld", i, memory[i]);
    epochs(&win);
    for (int i = 0; i < 16; i++) CHECK(memory[i] == (i == 4 ? 77 : i), "long %d is %ld", i, memory[i]);
    MPI_Win_free(&win);
    dynamic();
    works();
    return end();
}
