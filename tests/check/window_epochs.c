// Windows: accesses outside epochs, and epochs that do not match.
#include "windows.h"

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
