/* A hash table over all ranks, millions of insertions and lookups a second, all ranks added up: what hash_onesided and
 * hash_twosided have in common, which is all but how a rank gets at the part of another.
 *
 *   key ── scrambled ──┬── modulo ranks: the owner           part of a rank:  key value | key value | 0 0 | key value ...
 *                      └── the rest: the first slot to try   taken slots are passed over; key 0: the slot is free
 *
 * A round: each rank inserts ROUND random keys one after another, all wait for all, each looks its keys up again, all wait.
 * A key is there once; its value counts how often it was inserted. The keys are as many as half of all slots, so no part
 * gets full. The size is that of one rank's part in bytes, 16 a slot. Every rank can name the keys of all others: so the
 * whole table is checked before and after the timed part. */
#ifndef HASH_H
#define HASH_H
#include "bench.h"

enum { ROUND = 128 };

struct slot {
    uint64_t key, value;
};

struct hash {
    struct bench *b;
    struct slot *part;       /* this rank's */
    uint64_t slots, keys;    /* slots of a part; keys are 1 to `keys` */
    long per_round, rounds;  /* insertions of a rank; rounds done */
    long lost;               /* keys looked up that were not there though they had been inserted */
    void *way;               /* what the including program keeps */
};

/* Defined by each program: one operation on whatever rank has the key, over when it returns. A lookup returns the value, 0 if
 * the key is not there; none runs beside an insertion. */
static void insert(struct hash *h, uint64_t key);
static uint64_t look_up(struct hash *h, uint64_t key);

/* Returns when all ranks have called it. */
static void wait_for_all(struct hash *h);

/* Sets up `part`, all free, and takes it away. */
static void open_way(struct hash *h);
static void close_way(struct hash *h);

/* The finalizer of SplitMix64 (Steele et al., 2014). */
static inline uint64_t hash_scramble(uint64_t x)
{
    x += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

static inline int hash_owner(const struct hash *h, uint64_t key) { return (int)(hash_scramble(key) % (uint64_t)h->b->ranks); }

static inline uint64_t hash_first(const struct hash *h, uint64_t key)
{
    return hash_scramble(key) / (uint64_t)h->b->ranks % h->slots;
}

/* The slot to try after `tries` that held other keys. */
static inline uint64_t hash_slot(const struct hash *h, uint64_t first, uint64_t tries)
{
    if (tries == h->slots) bench_fail(h->b, "a part of the table is full, slots", (long)h->slots);
    return (first + tries) % h->slots;
}

/* The key that `rank` inserts as its number `i`. */
static inline uint64_t hash_key(const struct hash *h, int rank, long i)
{
    return 1 + hash_scramble((uint64_t)i * 1000003 + (uint64_t)rank) % h->keys;
}

static void rounds(void *opaque, long iterations)
{
    struct hash *h = opaque;
    for (long r = 0; r < iterations; r++, h->rounds++) {
        long first = h->rounds * h->per_round;
        for (long i = 0; i < h->per_round; i++) insert(h, hash_key(h, h->b->rank, first + i));
        wait_for_all(h);
        for (long i = 0; i < h->per_round; i++) h->lost += look_up(h, hash_key(h, h->b->rank, first + i)) == 0;
        wait_for_all(h);
    }
}

/* Compares the table with what all ranks inserted: this rank's part slot by slot, the others' through lookups. */
static inline void hash_check(struct hash *h)
{
    if (h->lost) bench_fail(h->b, "keys not found that were inserted", h->lost);
    uint64_t *counts = bench_buffer(h->b, (h->keys + 1) * sizeof *counts), mine = 0, found = 0;
    for (int rank = 0; rank < h->b->ranks; rank++)
        for (long i = 0; i < h->rounds * h->per_round; i++) counts[hash_key(h, rank, i)]++;
    for (uint64_t key = 1; key <= h->keys; key++) mine += counts[key] > 0 && hash_owner(h, key) == h->b->rank;
    for (uint64_t s = 0; s < h->slots; s++) {
        uint64_t key = h->part[s].key;
        found += key != 0;
        if (key > h->keys || (key && hash_owner(h, key) != h->b->rank)) bench_fail(h->b, "a key in the wrong part", (long)key);
        if (key ? h->part[s].value != counts[key] : h->part[s].value) bench_fail(h->b, "a wrong value of key", (long)key);
    }
    if (found != mine) bench_fail(h->b, "slots taken that should not be, or free that should", (long)found - (long)mine);
    /* Every 16th key of all, and one that nobody inserts. */
    for (uint64_t key = 1 + (uint64_t)h->b->rank % 16; key <= h->keys; key += 16)
        if (look_up(h, key) != counts[key]) bench_fail(h->b, "a wrong value looked up of key", (long)key);
    if (look_up(h, h->keys + 1)) bench_fail(h->b, "a key found that nobody inserted", (long)h->keys + 1);
    wait_for_all(h);
    free(counts);
}

/* On as many ranks as there are; --window is the number of insertions in a round. */
static inline int hash_main(const char *name, int argc, char **argv)
{
    struct bench b;
    bench_begin(&b, name, "64K,1M", &argc, &argv);
    for (int i = 0; i < b.size_count; i++) {
        struct hash h = {.b = &b, .per_round = b.window ? b.window : ROUND};
        h.slots = (uint64_t)fmax(64, (double)(b.sizes[i] / sizeof(struct slot)));
        h.keys = h.slots * (uint64_t)b.ranks / 2;
        open_way(&h);
        rounds(&h, 1);
        hash_check(&h);
        struct timing t = bench_measure(&b, rounds, &h);
        hash_check(&h);
        bench_report(&b, h.slots * sizeof(struct slot), t, 2e-6 * (double)h.per_round * b.ranks, "M/s");
        close_way(&h);
    }
    MPI_Finalize();
    return 0;
}

#endif
