// ranks: 2
// says: correct
// env: WEFT_PROGRESS=handover | WEFT_PROGRESS=handover WEFT_CMA=0 | WEFT_PROGRESS=signal | WEFT_PROGRESS=signal WEFT_CMA=0 | WEFT_PROGRESS=signal WEFT_RENDEZVOUS=write WEFT_STAGING=0 | WEFT_PROGRESS=locked | WEFT_PROGRESS=handover WEFT_RENDEZVOUS=write WEFT_STAGING=0 | WEFT_PROGRESS=handover WEFT_FAULT=seed=3,message_delay=0.3,completion_delay=0.3
//
// What a rank that computes is asked for is answered by its helper thread. Each part has a rank that
// computes, outside of the library, until the other one has finished an operation that needs an
// answer of it; that one says so in memory that both map, not by MPI. Without a helper the program
// does not end (helper_none.c).
#define _GNU_SOURCE
#include "helper.h"

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 20;
    signal(SIGUSR1, count_signal);
    begin(&argc, &argv);
    share();
    for (int round = 0; round < rounds; round++) {
        large_to_posted();
        large_after_post();
        synchronous();
        to_the_sender();
        broadcast();
        /* On a network an algorithm may need the operator before a rank has sent all. */
        if (!getenv("WEFT_NODES")) operators();
    }
    /* A helper looks again and again while a fault holds something up. */
    if (!getenv("WEFT_FAULT")) quiet(0);
    /* On a network it may share the event that ends a sleep of the program's thread. */
    if (!getenv("WEFT_FAULT") && !getenv("WEFT_NODES")) quiet(1000);
    /* The locked design has nothing by which to ignore them. */
    if (!getenv("WEFT_FAULT") && strcmp(getenv("WEFT_PROGRESS"), "locked") != 0) unexpected();
    signals();
    return finish();
}
