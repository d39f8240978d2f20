// Windows: memory that accesses use, and calls of all ranks.
#include "windows.h"

// Memory of the origin.

ERRONEOUS(receive_into_a_put_buffer, "buffer in use", 2) {
    MPI_Win win = window();
    MPI_Win_fence(0, win);
    MPI_Put(ints, 4, MPI_INT, 1 - rank, 0, 4, MPI_INT, win);  // named
    MPI_Sendrecv(more, 1, MPI_INT, 1 - rank, 1, ints, 1, MPI_INT, 1 - rank, 1, world, no_status);  // named
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}
ERRONEOUS(send_from_a_get_buffer, "buffer in use", 2) {
    MPI_Win win = window();
    MPI_Win_lock(MPI_LOCK_SHARED, 1 - rank, 0, win);
    MPI_Get(ints, 4, MPI_INT, 1 - rank, 0, 4, MPI_INT, win);  // named
    MPI_Sendrecv(ints, 1, MPI_INT, 1 - rank, 1, more, 1, MPI_INT, 1 - rank, 1, world, no_status);  // named
    MPI_Win_unlock(1 - rank, win);
    MPI_Win_free(&win);
}
CORRECT(send_from_a_get_buffer_after_flush, 2) {
    MPI_Win win = window();
    MPI_Win_lock(MPI_LOCK_SHARED, 1 - rank, 0, win);
    MPI_Get(ints, 4, MPI_INT, 1 - rank, 0, 4, MPI_INT, win);
    MPI_Win_flush_local(1 - rank, win);
    MPI_Sendrecv(ints, 1, MPI_INT, 1 - rank, 1, more, 1, MPI_INT, 1 - rank, 1, world, no_status);
    MPI_Win_unlock(1 - rank, win);
    MPI_Win_free(&win);
}
ERRONEOUS(two_gets_into_one_buffer, "buffer in use", 2) {
    MPI_Win win = window();
    MPI_Win_fence(0, win);
    MPI_Get(ints, 4, MPI_INT, 1 - rank, 0, 4, MPI_INT, win);  // named
    MPI_Get(ints + 2, 4, MPI_INT, 1 - rank, 8, 4, MPI_INT, win);  // named
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}
CORRECT(two_gets_into_two_buffers, 2) {
    MPI_Win win = window();
    MPI_Win_fence(0, win);
    MPI_Get(ints, 4, MPI_INT, 1 - rank, 0, 4, MPI_INT, win);
    MPI_Get(ints + 4, 4, MPI_INT, 1 - rank, 8, 4, MPI_INT, win);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}
ERRONEOUS(put_of_bytes_that_a_get_fills, "buffer in use", 2) {
    MPI_Win win = window();
    MPI_Win_fence(0, win);
    MPI_Get(ints, 4, MPI_INT, 1 - rank, 0, 4, MPI_INT, win);  // named
    MPI_Put(ints, 4, MPI_INT, 1 - rank, 8, 4, MPI_INT, win);  // named
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}
ERRONEOUS(fetch_into_its_operand, "buffer in use", 2) {
    MPI_Win win = window();
    MPI_Win_lock_all(0, win);
    MPI_Fetch_and_op(ints, ints, MPI_INT, 1, 0, MPI_SUM, win);  // named
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}
ERRONEOUS(put_buffer_changed_before_fence, "buffer changed", 2) {
    MPI_Win win = window();
    MPI_Win_fence(0, win);
    MPI_Put(ints, 4, MPI_INT, 1 - rank, 0, 4, MPI_INT, win);  // named
    ints[1] = 77;
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}
ERRONEOUS(put_buffer_changed_before_unlock, "buffer changed", 2) {
    MPI_Win win = window();
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Put(ints, 4, MPI_INT, 0, 0, 4, MPI_INT, win);  // named
    ints[1] = 77;
    MPI_Win_unlock(0, win);
    MPI_Win_free(&win);
}
ERRONEOUS(put_buffer_changed_before_complete, "buffer changed", 2) {
    MPI_Win win = window();
    MPI_Group group = one(1 - rank);
    if (rank == 0) {
        MPI_Win_start(group, 0, win);
        MPI_Put(ints, 4, MPI_INT, 1, 0, 4, MPI_INT, win);  // named
        ints[1] = 77;
        MPI_Win_complete(win);
    } else {
        MPI_Win_post(group, 0, win);
        MPI_Win_wait(win);
    }
    MPI_Group_free(&group);
    MPI_Win_free(&win);
}
ERRONEOUS(accumulate_buffer_changed_before_flush, "buffer changed", 2) {
    MPI_Win win = window();
    MPI_Win_lock_all(0, win);
    MPI_Accumulate(ints, 4, MPI_INT, 0, 0, 4, MPI_INT, MPI_SUM, win);  // named
    ints[1] = 77;
    MPI_Win_flush(0, win);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}
ERRONEOUS(rput_buffer_changed_before_wait, "buffer changed", 2) {
    MPI_Request request;
    MPI_Win win = window();
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    MPI_Rput(ints, 4, MPI_INT, rank, 0, 4, MPI_INT, win, &request);  // named
    ints[1] = 77;
    MPI_Wait(&request, no_status);
    MPI_Win_unlock(rank, win);
    MPI_Win_free(&win);
}
CORRECT(buffers_changed_after_completion, 2) {
    MPI_Request request;
    MPI_Win win = window();
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    put(0, 0, win);
    MPI_Win_flush_local(0, win);
    ints[0]++;
    MPI_Rput(ints, 4, MPI_INT, 0, 4, 4, MPI_INT, win, &request);
    MPI_Win_flush(0, win);
    ints[1]++;
    MPI_Wait(&request, no_status);
    MPI_Win_unlock(0, win);
    MPI_Win_free(&win);
}
ERRONEOUS(rget_not_completed, "request not completed", 2) {
    MPI_Request request;
    MPI_Win win = window();
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    MPI_Rget(ints, 4, MPI_INT, rank, 0, 4, MPI_INT, win, &request);  // named
    MPI_Win_unlock(rank, win);
    MPI_Win_free(&win);
}

// Collective calls on windows.

ERRONEOUS(fence_and_free, "collective mismatch", 2) {
    MPI_Win win = window();
    if (rank == 0) MPI_Win_fence(0, win);  // named
    MPI_Win_free(&win);  // named
}
ERRONEOUS(assertions_differ, "collective mismatch", 2) {
    MPI_Win win = window();
    MPI_Win_fence(rank ? MPI_MODE_NOPRECEDE : 0, win);  // named
    MPI_Win_free(&win);
}
CORRECT(local_assertions_differ, 2) {
    MPI_Win win = window();
    MPI_Win_fence(MPI_MODE_NOPRECEDE | (rank ? MPI_MODE_NOPUT : 0), win);
    if (rank == 1) put(0, 0, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED | (rank ? MPI_MODE_NOSTORE : 0), win);
    MPI_Win_free(&win);
}
ERRONEOUS(create_and_allocate, "collective mismatch", 2) {
    MPI_Win win;
    int *base;
    if (rank == 0) MPI_Win_create(memory, 8, 1, MPI_INFO_NULL, world, &win);  // named
    if (rank == 1) MPI_Win_allocate(8, 1, MPI_INFO_NULL, world, &base, &win);  // named
    MPI_Win_free(&win);
}
CORRECT(units_and_sizes_differ, 2) {
    MPI_Win win;
    MPI_Win_create(memory, rank ? 64 : 128, rank ? 1 : 4, MPI_INFO_NULL, world, &win);
    MPI_Win_fence(0, win);
    // The same byte of different ranks, and different bytes of one rank.
    MPI_Put(ints, 1, MPI_INT, 0, rank, 1, MPI_INT, win);
    MPI_Put(ints, 1, MPI_INT, 1, 4 * rank, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}
ERRONEOUS(units_make_accesses_overlap, "conflicting accesses", 2) {
    MPI_Win win;
    MPI_Win_create(memory, 64, 1, MPI_INFO_NULL, world, &win);
    MPI_Win_fence(0, win);
    MPI_Put(ints, 1, MPI_INT, 1, rank, 1, MPI_INT, win);  // named
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}
CORRECT(allocated_windows, 2) {
    MPI_Win win;
    int *base;
    MPI_Win_allocate(64, 4, MPI_INFO_NULL, world, &base, &win);
    MPI_Win_fence(0, win);
    put(1 - rank, 2, win);
    MPI_Win_fence(0, win);
    base[2]++;
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}
CORRECT(shared_windows, 2) {
    MPI_Win win;
    int *base, *theirs, unit;
    MPI_Aint bytes;
    MPI_Win_allocate_shared(64, 4, MPI_INFO_NULL, world, &base, &win);
    MPI_Win_shared_query(win, 1 - rank, &bytes, &unit, &theirs);
    MPI_Win_fence(0, win);
    theirs[rank]++;
    MPI_Win_fence(0, win);
    base[3] = theirs[0];
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}
CORRECT(dynamic_windows, 2) {
    MPI_Win win;
    MPI_Aint own, theirs;
    MPI_Win_create_dynamic(MPI_INFO_NULL, world, &win);
    MPI_Win_attach(win, memory, sizeof memory);
    MPI_Get_address(memory, &own);
    MPI_Sendrecv(&own, 1, MPI_AINT, 1 - rank, 1, &theirs, 1, MPI_AINT, 1 - rank, 1, world, no_status);
    MPI_Win_fence(0, win);
    MPI_Put(ints, 1, MPI_INT, 1 - rank, theirs, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    MPI_Win_detach(win, memory);
    MPI_Win_free(&win);
}
CORRECT(two_columns_of_a_window, 2) {
    MPI_Datatype column;
    MPI_Type_vector(8, 1, 8, MPI_INT, &column);
    MPI_Type_commit(&column);
    MPI_Win win = window();
    MPI_Win_fence(0, win);
    MPI_Put(ints, 8, MPI_INT, 0, rank, 1, column, win);
    MPI_Win_fence(0, win);
    MPI_Type_free(&column);
    MPI_Win_free(&win);
}
ERRONEOUS(a_row_crosses_a_column, "conflicting accesses", 2) {
    MPI_Datatype column;
    MPI_Type_vector(8, 1, 8, MPI_INT, &column);
    MPI_Type_commit(&column);
    MPI_Win win = window();
    MPI_Win_fence(0, win);
    if (rank == 0) MPI_Put(ints, 8, MPI_INT, 0, 3, 1, column, win);  // named
    if (rank == 1) MPI_Put(ints, 8, MPI_INT, 0, 16, 8, MPI_INT, win);  // named
    MPI_Win_fence(0, win);
    MPI_Type_free(&column);
    MPI_Win_free(&win);
}
CORRECT(an_access_to_no_process, 2) {
    MPI_Win win = window();
    MPI_Win_fence(0, win);
    put(MPI_PROC_NULL, 0, win), put(MPI_PROC_NULL, 0, win);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}
ERRONEOUS(conflict_in_a_window_of_one_rank, "conflicting accesses", 2) {
    MPI_Win win;
    MPI_Win_create(memory, sizeof memory, 4, MPI_INFO_NULL, MPI_COMM_SELF, &win);
    MPI_Win_fence(0, win);
    MPI_Put(ints, 2, MPI_INT, 0, 0, 2, MPI_INT, win);  // named
    MPI_Put(ints, 2, MPI_INT, 0, 1, 2, MPI_INT, win);  // named
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}
CORRECT(a_window_of_one_rank, 2) {
    MPI_Win win;
    MPI_Win_create(memory, sizeof memory, 4, MPI_INFO_NULL, MPI_COMM_SELF, &win);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    for (int i = 0; i < 3000; i++) put(0, i % 16, win), MPI_Win_flush(0, win);
    MPI_Win_unlock(0, win);
    MPI_Win_free(&win);
}
CORRECT(many_passive_accesses, 3) {
    MPI_Win win = window();
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < 20000; i++) MPI_Accumulate(ints, 1, MPI_INT, 0, 5, 1, MPI_INT, MPI_SUM, win);
    for (int i = 0; i < 5000; i++) MPI_Fetch_and_op(ints, more, MPI_INT, 0, 0, MPI_SUM, win), MPI_Win_flush(0, win);
    MPI_Win_unlock_all(win);
    MPI_Barrier(world);
    MPI_Win_free(&win);
}
static void *fences(void *argument) {
    MPI_Win win = *(MPI_Win *)argument;
    static __thread int value[4];
    for (int i = 0; i < 20; i++) {
        MPI_Win_fence(0, win);
        MPI_Put(value, 1, MPI_INT, 1 - rank, i, 1, MPI_INT, win);
    }
    MPI_Win_fence(0, win);
    return NULL;
}
CORRECT(threads_with_windows_of_their_own, 2) {
    pthread_t threads[3];
    MPI_Win wins[3];
    int *base;
    for (int i = 0; i < 3; i++) MPI_Win_allocate(400, 4, MPI_INFO_NULL, world, &base, &wins[i]);
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, fences, &wins[i]);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < 3; i++) MPI_Win_free(&wins[i]);
}
CORRECT(a_halo_exchange_in_a_loop, 3) {
    MPI_Win win = window();
    int left = (rank + size - 1) % size, right = (rank + 1) % size;
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
    for (int i = 0; i < 5; i++) {
        MPI_Put(&memory[1], 1, MPI_INT, left, 9, 1, MPI_INT, win);
        MPI_Put(&memory[8], 1, MPI_INT, right, 0, 1, MPI_INT, win);
        MPI_Win_fence(0, win);
        memory[1] += memory[0], memory[8] += memory[9];
        MPI_Win_fence(0, win);
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    MPI_Win_free(&win);
}
CORRECT(a_counter_for_all_ranks, 3) {
    int one = 1, ticket;
    MPI_Win win = window();
    for (int i = 0; i < 5; i++) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        MPI_Fetch_and_op(&one, &ticket, MPI_INT, 0, 0, MPI_SUM, win);
        MPI_Win_unlock(0, win);
    }
    MPI_Barrier(world);
    MPI_Win_free(&win);
}
