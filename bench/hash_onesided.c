/* hash_onesided: the hash table of hash.h in a window, within MPI_Win_lock_all; its owner does nothing. A slot is taken by
 * MPI_Compare_and_swap, its value counted up by MPI_Fetch_and_op, a lookup is an MPI_Get; each is flushed at once. */
#include "hash.h"

static MPI_Win window(const struct hash *h) { return *(MPI_Win *)h->way; }

static void insert(struct hash *h, uint64_t key)
{
    int owner = hash_owner(h, key);
    uint64_t first = hash_first(h, key), free_key = 0, one = 1, there;
    MPI_Aint at;
    for (uint64_t tries = 0;; tries++) {
        at = (MPI_Aint)(2 * hash_slot(h, first, tries));
        MPI_Compare_and_swap(&key, &free_key, &there, MPI_UINT64_T, owner, at, window(h));
        MPI_Win_flush(owner, window(h));
        if (there == 0 || there == key) break;
    }
    MPI_Fetch_and_op(&one, &there, MPI_UINT64_T, owner, at + 1, MPI_SUM, window(h));
    MPI_Win_flush(owner, window(h));
}

static uint64_t look_up(struct hash *h, uint64_t key)
{
    int owner = hash_owner(h, key);
    uint64_t first = hash_first(h, key);
    struct slot slot;
    for (uint64_t tries = 0;; tries++) {
        MPI_Get(&slot, 2, MPI_UINT64_T, owner, (MPI_Aint)(2 * hash_slot(h, first, tries)), 2, MPI_UINT64_T, window(h));
        MPI_Win_flush(owner, window(h));
        if (slot.key == 0 || slot.key == key) return slot.value;
    }
}

/* All is flushed; what others left in this rank's part is seen after MPI_Win_sync. */
static void wait_for_all(struct hash *h)
{
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(window(h));
}

static void open_way(struct hash *h)
{
    static MPI_Win win;
    MPI_Aint room = (MPI_Aint)(h->slots * sizeof(struct slot));
    MPI_Win_allocate(room, sizeof(uint64_t), MPI_INFO_NULL, MPI_COMM_WORLD, &h->part, &win);
    memset(h->part, 0, (size_t)room);
    h->way = &win;
    MPI_Win_lock_all(0, win);
    wait_for_all(h);
}

static void close_way(struct hash *h)
{
    MPI_Win_unlock_all(window(h));
    MPI_Win_free(h->way);
}

int main(int argc, char **argv) { return hash_main("hash_onesided", argc, argv); }
