/* hash_twosided: the hash table of hash.h by messages. A rank that wants something of another sends a request and, until the
 * answer is there, answers the requests that MPI_Iprobe finds; to its own part it goes directly.
 *
 *   request: what, key     answer: value */
#include "hash.h"

enum { REQUEST = 1, ANSWER = 2 };
enum { INSERT = 1, LOOK_UP = 2 };

/* A communicator of its own: requests never meet the messages of bench.h. */
static MPI_Comm messages(const struct hash *h) { return *(MPI_Comm *)h->way; }

static uint64_t apply(struct hash *h, uint64_t what, uint64_t key)
{
    uint64_t first = hash_first(h, key), tries = 0;
    struct slot *slot = h->part + first;
    while (slot->key != 0 && slot->key != key) slot = h->part + hash_slot(h, first, ++tries);
    if (what == INSERT) slot->key = key, slot->value++;
    return slot->value;
}

/* Answers one request, if there is one. */
static void serve(struct hash *h)
{
    int there;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, REQUEST, messages(h), &there, &status);
    if (there) {
        uint64_t request[2];
        MPI_Recv(request, 2, MPI_UINT64_T, status.MPI_SOURCE, REQUEST, messages(h), MPI_STATUS_IGNORE);
        uint64_t answer = apply(h, request[0], request[1]);
        /* Its receive was posted before the request was sent: it waits for nobody. */
        MPI_Send(&answer, 1, MPI_UINT64_T, status.MPI_SOURCE, ANSWER, messages(h));
    } else if (h->b->crowded) {
        sched_yield(); /* another rank may need this processor to answer */
    }
}

static uint64_t ask(struct hash *h, uint64_t what, uint64_t key)
{
    int owner = hash_owner(h, key), done = 0;
    uint64_t request[2] = {what, key}, answer;
    MPI_Request both[2];
    if (owner == h->b->rank) return apply(h, what, key);
    MPI_Irecv(&answer, 1, MPI_UINT64_T, owner, ANSWER, messages(h), &both[0]);
    MPI_Isend(request, 2, MPI_UINT64_T, owner, REQUEST, messages(h), &both[1]);
    for (;;) {
        MPI_Testall(2, both, &done, MPI_STATUSES_IGNORE);
        if (done) return answer;
        serve(h);
    }
}

static void insert(struct hash *h, uint64_t key) { ask(h, INSERT, key); }

static uint64_t look_up(struct hash *h, uint64_t key) { return ask(h, LOOK_UP, key); }

/* Who waits goes on to answer those who are still asking. */
static void wait_for_all(struct hash *h)
{
    int done = 0;
    MPI_Request all;
    MPI_Ibarrier(messages(h), &all);
    for (;;) {
        MPI_Test(&all, &done, MPI_STATUS_IGNORE);
        if (done) return;
        serve(h);
    }
}

static void open_way(struct hash *h)
{
    static MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    h->way = &comm;
    h->part = bench_buffer(h->b, h->slots * sizeof(struct slot));
}

static void close_way(struct hash *h)
{
    MPI_Comm_free(h->way);
    free(h->part);
}

int main(int argc, char **argv) { return hash_main("hash_twosided", argc, argv); }
