// Windows: accesses that conflict.
#include "windows.h"

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
