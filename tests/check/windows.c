// Windows: accesses outside epochs, conflicts, memory in use, and epochs that do not match.
#include "catalogue.h"

static int memory[64];

// Returns a window over `memory`.
static MPI_Win window(void) {
    MPI_Win win;
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, world, &win);
    return win;
}
// Returns a group of one rank of the world.
static MPI_Group one(int member) {
    MPI_Group all, group;
    MPI_Comm_group(world, &all);
    MPI_Group_incl(all, 1, &member, &group);
    MPI_Group_free(&all);
    return group;
}
static void put(int target, int place, MPI_Win win) { MPI_Put(ints, 1, MPI_INT, target, place, 1, MPI_INT, win); }
static void get(int target, int place, MPI_Win win) { MPI_Get(more, 1, MPI_INT, target, place, 1, MPI_INT, win); }

// Epochs.

ERRONEOUS(put_without_epoch, "access outside an epoch", 2) {
    MPI_Win win = window();
    if (rank == 0) MPI_Put(ints, 1, MPI_INT, 1, 0, 1, MPI_INT, win);  // named
    MPI_Win_free(&win);
}
ERRONEOUS(get_without_epoch, "access outside an epoch", 2) {
    MPI_Win win = window();
    if (rank == 0) MPI_Get(ints, 1, MPI_INT, 1, 0, 1, MPI_INT, win);  // named
    MPI_Win_free(&win);
}
ERRONEOUS(accumulate_without_epoch, "access outside an epoch", 2) {
    MPI_Win win = window();
    if (rank == 0) MPI_Accumulate(ints, 1, MPI_INT, 1, 0, 1, MPI_INT, MPI_SUM, win);  // named
    MPI_Win_free(&win);
}
ERRONEOUS(put_after_the_last_fence, "access outside an epoch", 2) {
    MPI_Win win = window();
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    if (rank == 0) MPI_Put(ints, 1, MPI_INT, 1, 0, 1, MPI_INT, win);  // named
    MPI_Win_free(&win);
}
CORRECT(put_between_fences, 2) {
    MPI_Win win = window();
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
    put(1 - rank, 0, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    MPI_Win_free(&win);
}
ERRONEOUS(put_to_a_rank_that_is_not_locked, "access outside an epoch", 2) {
    MPI_Win win = window();
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        MPI_Put(ints, 1, MPI_INT, 1, 0, 1, MPI_INT, win);  // named
        MPI_Win_unlock(0, win);
    }
    MPI_Win_free(&win);
}
CORRECT(put_to_locked_ranks, 2) {
    MPI_Win win = window();
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
        put(0, 0, win), put(1, 0, win);
        MPI_Win_unlock(1, win);
        MPI_Win_unlock(0, win);
    }
    MPI_Win_free(&win);
}
ERRONEOUS(put_after_unlock, "access outside an epoch", 2) {
    MPI_Win win = window();
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
    MPI_Win_unlock(1, win);
    if (rank == 0) MPI_Put(ints, 1, MPI_INT, 1, 0, 1, MPI_INT, win);  // named
    MPI_Win_free(&win);
}
ERRONEOUS(put_after_unlock_all, "access outside an epoch", 2) {
    MPI_Win win = window();
    MPI_Win_lock_all(0, win);
    MPI_Win_unlock_all(win);
    if (rank == 0) MPI_Fetch_and_op(ints, more, MPI_INT, 1, 0, MPI_SUM, win);  // named
    MPI_Win_free(&win);
}
CORRECT(put_under_lock_all, 2) {
    MPI_Win win = window();
    MPI_Win_lock_all(0, win);
    MPI_Fetch_and_op(ints, more, MPI_INT, 1, 0, MPI_SUM, win);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}
ERRONEOUS(put_to_a_rank_outside_the_group, "access outside an epoch", 3) {
    MPI_Win win = window();
    MPI_Group group = one(rank == 0 ? 1 : 0);
    if (rank == 0) {
        MPI_Win_start(group, 0, win);
        MPI_Put(ints, 1, MPI_INT, 2, 0, 1, MPI_INT, win);  // named
        MPI_Win_complete(win);
    } else if (rank == 1) {
        MPI_Win_post(group, 0, win);
        MPI_Win_wait(win);
    }
    MPI_Group_free(&group);
    MPI_Win_free(&win);
}
ERRONEOUS(request_access_between_fences, "access outside an epoch", 2) {
    MPI_Request request;
    MPI_Win win = window();
    MPI_Win_fence(0, win);
    MPI_Rput(ints, 1, MPI_INT, 1 - rank, 0, 1, MPI_INT, win, &request);  // named
    MPI_Wait(&request, no_status);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}
CORRECT(request_access_under_a_lock, 2) {
    MPI_Request request;
    MPI_Win win = window();
    MPI_Win_lock(MPI_LOCK_SHARED, 1 - rank, 0, win);
    MPI_Rput(ints, 1, MPI_INT, 1 - rank, 0, 1, MPI_INT, win, &request);
    MPI_Wait(&request, no_status);
    ints[0] = 7;
    MPI_Win_unlock(1 - rank, win);
    MPI_Win_free(&win);
}

ERRONEOUS(lock_twice, "epoch mismatch", 2) {
    MPI_Win win = window();
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);  // named
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);  // named
        MPI_Win_unlock(1, win);
    }
    MPI_Win_free(&win);
}
CORRECT(lock_again_after_unlock, 2) {
    MPI_Win win = window();
    for (int i = 0; i < 2; i++) {
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
        MPI_Win_unlock(1, win);
    }
    MPI_Win_free(&win);
}
ERRONEOUS(lock_under_lock_all, "epoch mismatch", 2) {
    MPI_Win win = window();
    if (rank == 0) {
        MPI_Win_lock_all(0, win);  // named
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);  // named
        MPI_Win_unlock(1, win);
        MPI_Win_unlock_all(win);
    }
    MPI_Win_free(&win);
}
ERRONEOUS(lock_all_twice, "epoch mismatch", 2) {
    MPI_Win win = window();
    if (rank == 0) {
        MPI_Win_lock_all(0, win);  // named
        MPI_Win_lock_all(0, win);  // named
        MPI_Win_unlock_all(win);
    }
    MPI_Win_free(&win);
}
CORRECT(lock_all_again_after_unlock_all, 2) {
    MPI_Win win = window();
    for (int i = 0; i < 2; i++) {
        MPI_Win_lock_all(0, win);
        MPI_Win_unlock_all(win);
    }
    MPI_Win_free(&win);
}
ERRONEOUS(unlock_without_lock, "epoch mismatch", 2) {
    MPI_Win win = window();
    if (rank == 0) MPI_Win_unlock(1, win);  // named
    MPI_Win_free(&win);
}
ERRONEOUS(unlock_of_another_rank, "epoch mismatch", 2) {
    MPI_Win win = window();
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
        MPI_Win_unlock(0, win);  // named
    }
    MPI_Win_free(&win);
}
ERRONEOUS(unlock_all_without_lock_all, "epoch mismatch", 2) {
    MPI_Win win = window();
    if (rank == 0) MPI_Win_unlock_all(win);  // named
    MPI_Win_free(&win);
}
ERRONEOUS(unlock_all_after_lock, "epoch mismatch", 2) {
    MPI_Win win = window();
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
        MPI_Win_unlock_all(win);  // named
    }
    MPI_Win_free(&win);
}
ERRONEOUS(flush_between_fences, "epoch mismatch", 2) {
    MPI_Win win = window();
    MPI_Win_fence(0, win);
    if (rank == 0) MPI_Win_flush(1, win);  // named
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}
ERRONEOUS(flush_of_a_rank_that_is_not_locked, "epoch mismatch", 2) {
    MPI_Win win = window();
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        MPI_Win_flush(1, win);  // named
        MPI_Win_unlock(0, win);
    }
    MPI_Win_free(&win);
}
ERRONEOUS(flush_local_without_epoch, "epoch mismatch", 2) {
    MPI_Win win = window();
    if (rank == 0) MPI_Win_flush_local(1, win);  // named
    MPI_Win_free(&win);
}
ERRONEOUS(flush_all_without_epoch, "epoch mismatch", 2) {
    MPI_Win win = window();
    if (rank == 0) MPI_Win_flush_all(win);  // named
    MPI_Win_free(&win);
}
ERRONEOUS(flush_local_all_without_epoch, "epoch mismatch", 2) {
    MPI_Win win = window();
    if (rank == 0) MPI_Win_flush_local_all(win);  // named
    MPI_Win_free(&win);
}
CORRECT(flushes_under_locks, 2) {
    MPI_Win win = window();
    MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
    MPI_Win_flush(1, win);
    MPI_Win_flush_local(1, win);
    MPI_Win_flush_all(win);
    MPI_Win_flush_local_all(win);
    MPI_Win_unlock(1, win);
    MPI_Win_lock_all(0, win);
    MPI_Win_flush(0, win);
    MPI_Win_flush_all(win);
    MPI_Win_sync(win);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}
ERRONEOUS(complete_without_start, "epoch mismatch", 2) {
    MPI_Win win = window();
    if (rank == 0) MPI_Win_complete(win);  // named
    MPI_Win_free(&win);
}
ERRONEOUS(wait_without_post, "epoch mismatch", 2) {
    MPI_Win win = window();
    if (rank == 0) MPI_Win_wait(win);  // named
    MPI_Win_free(&win);
}
ERRONEOUS(test_without_post, "epoch mismatch", 2) {
    int flag;
    MPI_Win win = window();
    if (rank == 0) MPI_Win_test(win, &flag);  // named
    MPI_Win_free(&win);
}
ERRONEOUS(complete_twice, "epoch mismatch", 2) {
    MPI_Win win = window();
    MPI_Group group = one(1 - rank);
    if (rank == 0) {
        MPI_Win_start(group, 0, win);
        MPI_Win_complete(win);
        MPI_Win_complete(win);  // named
    } else {
        MPI_Win_post(group, 0, win);
        MPI_Win_wait(win);
    }
    MPI_Group_free(&group);
    MPI_Win_free(&win);
}
ERRONEOUS(post_twice, "epoch mismatch", 2) {
    MPI_Win win = window();
    MPI_Group group = one(1 - rank);
    if (rank == 1) {
        MPI_Win_post(group, 0, win);  // named
        MPI_Win_post(group, 0, win);  // named
    }
    MPI_Group_free(&group);
    MPI_Win_free(&win);
}
CORRECT(post_start_complete_wait, 2) {
    MPI_Win win = window();
    MPI_Group group = one(1 - rank);
    for (int i = 0; i < 3; i++) {
        if (rank == 0) {
            MPI_Win_start(group, 0, win);
            put(1, i, win);
            MPI_Win_complete(win);
        } else {
            MPI_Win_post(group, 0, win);
            MPI_Win_wait(win);
            memory[i] = 5;
        }
    }
    MPI_Group_free(&group);
    MPI_Win_free(&win);
}
CORRECT(both_ranks_post_and_start, 2) {
    MPI_Win win = window();
    MPI_Group group = one(1 - rank);
    int flag = 0;
    MPI_Win_post(group, 0, win);
    MPI_Win_start(group, 0, win);
    put(1 - rank, 3, win);
    MPI_Win_complete(win);
    while (!flag) MPI_Win_test(win, &flag);
    MPI_Group_free(&group);
    MPI_Win_free(&win);
}
ERRONEOUS(start_under_a_lock, "epoch mismatch", 2) {
    MPI_Win win = window();
    MPI_Group group = one(1 - rank);
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);  // named
        MPI_Win_start(group, 0, win);  // named
    }
    MPI_Group_free(&group);
    MPI_Win_free(&win);
}
ERRONEOUS(fence_under_a_lock, "epoch mismatch", 2) {
    MPI_Win win = window();
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);  // named
    MPI_Win_fence(0, win);  // named
    MPI_Win_unlock(rank, win);
    MPI_Win_free(&win);
}
ERRONEOUS(lock_after_put_between_fences, "epoch mismatch", 2) {
    MPI_Win win = window();
    MPI_Win_fence(0, win);  // named
    if (rank == 0) {
        put(1, 0, win);
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);  // named
        MPI_Win_unlock(0, win);
    }
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}
CORRECT(lock_after_a_fence_without_accesses, 2) {
    MPI_Win win = window();
    MPI_Win_fence(0, win);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    put(0, 0, win);
    MPI_Win_unlock(0, win);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}
ERRONEOUS(freed_under_a_lock, "epoch mismatch", 2) {
    MPI_Win win = window();
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);  // named
    MPI_Win_free(&win);  // named
}
ERRONEOUS(freed_under_lock_all, "epoch mismatch", 2) {
    MPI_Win win = window();
    MPI_Win_lock_all(0, win);  // named
    MPI_Win_free(&win);  // named
}
ERRONEOUS(freed_before_the_closing_fence, "epoch mismatch", 2) {
    MPI_Win win = window();
    MPI_Win_fence(0, win);  // named
    put(1 - rank, 0, win);
    MPI_Win_free(&win);  // named
}
CORRECT(freed_after_a_fence, 2) {
    MPI_Win win = window();
    MPI_Win_fence(0, win);
    put(1 - rank, 0, win);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}
ERRONEOUS(no_precede_after_put, "false assertion", 2) {
    MPI_Win win = window();
    MPI_Win_fence(0, win);
    MPI_Put(ints, 1, MPI_INT, 1 - rank, 0, 1, MPI_INT, win);  // named
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win);  // named
    MPI_Win_free(&win);
}
ERRONEOUS(no_put_before_put, "false assertion", 2) {
    MPI_Win win = window();
    MPI_Win_fence(MPI_MODE_NOPUT, win);  // named
    if (rank == 0) MPI_Put(ints, 1, MPI_INT, 1, 0, 1, MPI_INT, win);  // named
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}
CORRECT(no_put_before_get, 2) {
    MPI_Win win = window();
    MPI_Win_fence(MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE, win);
    get(1 - rank, 0, win);
    MPI_Win_fence(MPI_MODE_NOSTORE | MPI_MODE_NOSUCCEED, win);
    MPI_Win_free(&win);
}
ERRONEOUS(no_put_at_post, "false assertion", 2) {
    MPI_Win win = window();
    MPI_Group group = one(1 - rank);
    if (rank == 0) {
        MPI_Win_start(group, 0, win);
        MPI_Put(ints, 1, MPI_INT, 1, 0, 1, MPI_INT, win);  // named
        MPI_Win_complete(win);
    } else {
        MPI_Win_post(group, MPI_MODE_NOPUT, win);  // named
        MPI_Win_wait(win);
    }
    MPI_Group_free(&group);
    MPI_Win_free(&win);
}
ERRONEOUS(no_store_after_store, "false assertion", 2) {
    MPI_Win win = window();
    MPI_Win_fence(0, win);
    memory[9]++;
    MPI_Win_fence(MPI_MODE_NOSTORE, win);  // named
    MPI_Win_free(&win);
}
CORRECT(store_between_fences, 2) {
    MPI_Win win = window();
    MPI_Win_fence(0, win);
    memory[9]++;
    put(1 - rank, 0, win);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}

// Conflicts.

ERRONEOUS(two_origins_put, "conflicting accesses", 3) {
    MPI_Win win = window();
    MPI_Win_fence(0, win);
    if (rank == 1) MPI_Put(ints, 2, MPI_INT, 0, 0, 2, MPI_INT, win);  // named
    if (rank == 2) MPI_Put(ints, 2, MPI_INT, 0, 1, 2, MPI_INT, win);  // named
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}
CORRECT(two_origins_put_beside_each_other, 3) {
    MPI_Win win = window();
    MPI_Win_fence(0, win);
    put(0, rank, win);
    MPI_Win_fence(0, win);
    put(0, size - rank, win);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}
ERRONEOUS(put_and_get, "conflicting accesses", 3) {
    MPI_Win win = window();
    MPI_Win_fence(0, win);
    if (rank == 1) MPI_Put(ints, 1, MPI_INT, 0, 4, 1, MPI_INT, win);  // named
    if (rank == 2) MPI_Get(ints, 8, MPI_INT, 0, 0, 8, MPI_INT, win);  // named
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}
CORRECT(two_gets, 3) {
    MPI_Win win = window();
    MPI_Win_fence(0, win);
    MPI_Get(ints, 8, MPI_INT, 0, 0, 8, MPI_INT, win);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}
ERRONEOUS(put_and_accumulate, "conflicting accesses", 3) {
    MPI_Win win = window();
    MPI_Win_fence(0, win);
    if (rank == 1) MPI_Put(ints, 1, MPI_INT, 0, 4, 1, MPI_INT, win);  // named
    if (rank == 2) MPI_Accumulate(ints, 1, MPI_INT, 0, 4, 1, MPI_INT, MPI_SUM, win);  // named
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}
ERRONEOUS(get_and_accumulate, "conflicting accesses", 3) {
    MPI_Win win = window();
    MPI_Win_fence(0, win);
    if (rank == 1) MPI_Get(ints, 1, MPI_INT, 0, 4, 1, MPI_INT, win);  // named
    if (rank == 2) MPI_Accumulate(ints, 1, MPI_INT, 0, 4, 1, MPI_INT, MPI_SUM, win);  // named
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}
ERRONEOUS(two_operators, "conflicting accesses", 3) {
    MPI_Win win = window();
    MPI_Win_fence(0, win);
    if (rank == 1) MPI_Accumulate(ints, 1, MPI_INT, 0, 4, 1, MPI_INT, MPI_MAX, win);  // named
    if (rank == 2) MPI_Accumulate(ints, 1, MPI_INT, 0, 4, 1, MPI_INT, MPI_SUM, win);  // named
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}
CORRECT(one_operator, 3) {
    MPI_Win win = window();
    MPI_Win_fence(0, win);
    MPI_Accumulate(ints, 1, MPI_INT, 0, 4, 1, MPI_INT, MPI_SUM, win);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}
CORRECT(atomic_reads_beside_sums, 3) {
    MPI_Win win = window();
    MPI_Win_lock_all(0, win);
    if (rank == 1) MPI_Fetch_and_op(NULL, more, MPI_INT, 0, 4, MPI_NO_OP, win);
    if (rank == 2) MPI_Fetch_and_op(ints, more, MPI_INT, 0, 4, MPI_SUM, win);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}
CORRECT(compare_and_swap_beside_replace, 3) {
    int expected = 0;
    MPI_Win win = window();
    MPI_Win_lock_all(0, win);
    if (rank == 1) MPI_Compare_and_swap(ints, &expected, more, MPI_INT, 0, 4, win);
    if (rank == 2) MPI_Accumulate(ints, 1, MPI_INT, 0, 4, 1, MPI_INT, MPI_REPLACE, win);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}
ERRONEOUS(two_puts_of_one_origin, "conflicting accesses", 2) {
    MPI_Win win = window();
    MPI_Win_fence(0, win);
    if (rank == 0) {
        MPI_Put(ints, 4, MPI_INT, 1, 0, 4, MPI_INT, win);  // named
        MPI_Put(ints, 4, MPI_INT, 1, 2, 4, MPI_INT, win);  // named
    }
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}
ERRONEOUS(get_after_put_without_flush, "conflicting accesses", 2) {
    MPI_Win win = window();
    MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
    if (rank == 0) {
        MPI_Put(ints, 1, MPI_INT, 1, 0, 1, MPI_INT, win);  // named
        MPI_Get(more, 1, MPI_INT, 1, 0, 1, MPI_INT, win);  // named
    }
    MPI_Win_unlock(1, win);
    MPI_Win_free(&win);
}
ERRONEOUS(get_after_put_with_local_flush, "conflicting accesses", 2) {
    MPI_Win win = window();
    MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
    if (rank == 0) {
        MPI_Put(ints, 1, MPI_INT, 1, 0, 1, MPI_INT, win);  // named
        MPI_Win_flush_local(1, win);
        MPI_Get(more, 1, MPI_INT, 1, 0, 1, MPI_INT, win);  // named
    }
    MPI_Win_unlock(1, win);
    MPI_Win_free(&win);
}
CORRECT(get_after_put_with_flush, 2) {
    MPI_Win win = window();
    MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
    if (rank == 0) {
        put(1, 0, win);
        MPI_Win_flush(1, win);
        get(1, 0, win);
    }
    MPI_Win_unlock(1, win);
    MPI_Win_free(&win);
}
ERRONEOUS(put_after_accumulate_of_one_origin, "conflicting accesses", 2) {
    MPI_Win win = window();
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPI_Accumulate(ints, 1, MPI_INT, 1, 0, 1, MPI_INT, MPI_SUM, win);  // named
        MPI_Put(ints, 1, MPI_INT, 1, 0, 1, MPI_INT, win);  // named
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}
CORRECT(accumulates_of_one_origin_are_ordered, 2) {
    MPI_Win win = window();
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPI_Accumulate(ints, 1, MPI_INT, 1, 0, 1, MPI_INT, MPI_SUM, win);
        MPI_Accumulate(ints, 1, MPI_INT, 1, 0, 1, MPI_INT, MPI_MAX, win);
        MPI_Get_accumulate(NULL, 0, MPI_INT, more, 1, MPI_INT, 1, 0, 1, MPI_INT, MPI_NO_OP, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}
ERRONEOUS(two_origins_in_one_exposure, "conflicting accesses", 3) {
    MPI_Win win = window();
    int origins[2] = {1, 2};
    MPI_Group all, both, target = one(0);
    MPI_Comm_group(world, &all);
    MPI_Group_incl(all, 2, origins, &both);
    if (rank == 0) {
        MPI_Win_post(both, 0, win);
        MPI_Win_wait(win);
    } else {
        MPI_Win_start(target, 0, win);
        if (rank == 1) MPI_Put(ints, 1, MPI_INT, 0, 0, 1, MPI_INT, win);  // named
        if (rank == 2) MPI_Put(ints, 1, MPI_INT, 0, 0, 1, MPI_INT, win);  // named
        MPI_Win_complete(win);
    }
    MPI_Group_free(&all);
    MPI_Group_free(&both);
    MPI_Group_free(&target);
    MPI_Win_free(&win);
}
CORRECT(two_origins_in_two_exposures, 3) {
    MPI_Win win = window();
    for (int origin = 1; origin < 3; origin++) {
        MPI_Group group = one(rank == 0 ? origin : 0);
        if (rank == 0) {
            MPI_Win_post(group, 0, win);
            MPI_Win_wait(win);
        } else if (rank == origin) {
            MPI_Win_start(group, 0, win);
            put(0, 0, win);
            MPI_Win_complete(win);
        }
        MPI_Group_free(&group);
    }
    MPI_Win_free(&win);
}
ERRONEOUS(two_origins_under_shared_locks, "conflicting accesses", 3) {
    MPI_Win win = window();
    MPI_Barrier(world);
    if (rank > 0) MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    if (rank == 1) MPI_Put(ints, 1, MPI_INT, 0, 0, 1, MPI_INT, win);  // named
    if (rank == 2) MPI_Put(ints, 1, MPI_INT, 0, 0, 1, MPI_INT, win);  // named
    if (rank > 0) MPI_Win_unlock(0, win);
    MPI_Barrier(world);
    MPI_Win_free(&win);
}
ERRONEOUS(put_and_get_under_lock_all, "conflicting accesses", 3) {
    MPI_Win win = window();
    MPI_Win_lock_all(0, win);
    if (rank == 1) MPI_Put(ints, 1, MPI_INT, 0, 0, 1, MPI_INT, win);  // named
    if (rank == 2) MPI_Get(more, 1, MPI_INT, 0, 0, 1, MPI_INT, win);  // named
    MPI_Win_flush_all(win);
    MPI_Barrier(world);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}
CORRECT(two_origins_under_exclusive_locks, 3) {
    MPI_Win win = window();
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    get(0, 0, win);
    MPI_Win_flush(0, win);
    ints[0] = more[0] + 1;
    put(0, 0, win);
    MPI_Win_unlock(0, win);
    MPI_Barrier(world);
    MPI_Win_free(&win);
}
CORRECT(a_barrier_between_two_origins, 3) {
    MPI_Win win = window();
    MPI_Win_lock_all(0, win);
    for (int origin = 1; origin < 3; origin++) {
        if (rank == origin) put(0, 0, win), MPI_Win_flush(0, win);
        MPI_Barrier(world);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}
CORRECT(a_message_between_two_origins, 3) {
    MPI_Win win = window();
    MPI_Win_lock_all(0, win);
    if (rank == 1) {
        put(0, 0, win);
        MPI_Win_flush(0, win);
        MPI_Send(NULL, 0, MPI_INT, 2, 1, world);
    } else if (rank == 2) {
        MPI_Recv(NULL, 0, MPI_INT, 1, 1, world, no_status);
        put(0, 0, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}
CORRECT(a_flag_between_two_origins, 3) {
    int zero = 0, value = 0, one = 1;
    MPI_Win win = window();
    memset(memory, 0, sizeof memory);
    MPI_Barrier(world);
    MPI_Win_lock_all(0, win);
    if (rank == 1) {
        put(0, 0, win);
        MPI_Win_flush(0, win);
        MPI_Accumulate(&one, 1, MPI_INT, 0, 8, 1, MPI_INT, MPI_REPLACE, win);
    } else if (rank == 2) {
        while (value == 0) {
            MPI_Fetch_and_op(&zero, &value, MPI_INT, 0, 8, MPI_NO_OP, win);
            MPI_Win_flush(0, win);
        }
        put(0, 0, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}
ERRONEOUS(store_into_bytes_that_are_read, "conflicting accesses", 2) {
    MPI_Win win = window();
    MPI_Win_fence(0, win);  // named
    if (rank == 0) MPI_Get(more, 4, MPI_INT, 1, 0, 4, MPI_INT, win);  // named
    if (rank == 1) memory[2] += 7;
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}
CORRECT(store_beside_bytes_that_are_read, 2) {
    MPI_Win win = window();
    MPI_Win_fence(0, win);
    MPI_Get(more, 4, MPI_INT, 1 - rank, 0, 4, MPI_INT, win);
    memory[4] += 7;
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}
ERRONEOUS(store_during_an_exposure, "conflicting accesses", 2) {
    MPI_Win win = window();
    MPI_Group group = one(1 - rank);
    if (rank == 0) {
        MPI_Win_start(group, 0, win);
        MPI_Get(more, 4, MPI_INT, 1, 0, 4, MPI_INT, win);  // named
        MPI_Win_complete(win);
    } else {
        MPI_Win_post(group, 0, win);  // named
        memory[1] += 3;
        MPI_Win_wait(win);
    }
    MPI_Group_free(&group);
    MPI_Win_free(&win);
}
ERRONEOUS(store_over_a_put, "conflicting accesses", 2) {
    MPI_Win win = window();
    MPI_Group group = one(1 - rank);
    if (rank == 0) {
        MPI_Win_start(group, 0, win);
        MPI_Put(ints, 4, MPI_INT, 1, 0, 4, MPI_INT, win);  // named
        MPI_Win_complete(win);
        MPI_Send(NULL, 0, MPI_INT, 1, 1, world);
    } else {
        MPI_Win_post(group, 0, win);
        MPI_Recv(NULL, 0, MPI_INT, 0, 1, world, no_status);
        // Puts are complete at the latest now in practice, but the epoch is open.
        for (volatile int i = 0; i < 10000000; i++) memory[1] = 99;
        MPI_Win_wait(win);
    }
    MPI_Group_free(&group);
    MPI_Win_free(&win);
}
CORRECT(store_after_an_exposure, 2) {
    MPI_Win win = window();
    MPI_Win_fence(0, win);
    put(1 - rank, 0, win);
    MPI_Win_fence(0, win);
    memory[0] = 99;
    MPI_Win_fence(0, win);
    get(1 - rank, 0, win);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}

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
