// ranks: 4
// says: correct
//
// Four ranks share two processors. What a small scatter or broadcast from one root costs then is switches between them, which
// the kernel counts. A root that runs ahead, and readers that find much when their turn comes, need much less than one an
// operation. With a barrier between any two, two ranks have to go before the other two come, there and back: four switches, as
// many again for the barrier. Who waits in another way (asleep, woken by each message) needs several times that. The least of
// several rounds counts, since foreign load switches, too.
#define _GNU_SOURCE
#include "check.h"
#include <sched.h>
#include <sys/resource.h>

enum { ROUNDS = 7, OPERATIONS = 2000 };

static void share_two(void)
{
    cpu_set_t all, two;
    CPU_ZERO(&two);
    if (sched_getaffinity(0, sizeof all, &all)) exit(2);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&two) < 2; cpu++)
        if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &two);
    if (sched_setaffinity(0, sizeof two, &two)) exit(2);
}

static double switches(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_nvcsw + r.ru_nivcsw);
}

static void scatter(int i)
{
    long out[4] = {i, i + 1, i + 2, i + 3}, in = -1;
    MPI_Scatter(out, 1, MPI_LONG, &in, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    CHECK(in == i + rank, "%ld", in);
}

static void broadcast(int i)
{
    long value = rank == 0 ? i : -1;
    MPI_Bcast(&value, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    CHECK(value == i, "%ld", value);
}

static void scatter_and_barrier(int i)
{
    scatter(i);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void broadcast_and_barrier(int i)
{
    broadcast(i);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Of all ranks together, an operation; `most` is a generous bound. */
static void count(const char *name, void (*operation)(int), double most)
{
    double least = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double mine = -switches(), all;
        for (int i = 0; i < OPERATIONS; i++) operation(i);
        MPI_Barrier(MPI_COMM_WORLD);
        mine += switches();
        MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        if (all / OPERATIONS < least) least = all / OPERATIONS;
    }
    if (rank == 0) printf("%s: %.2f switches\n", name, least);
    CHECK(least <= most, "%s: %.2f switches an operation", name, least);
}

int main(int argc, char **argv)
{
    share_two(); /* before the library looks */
    begin(&argc, &argv);
    CHECK(size == 4);
    count("scatter", scatter, 1);
    count("broadcast", broadcast, 1);
    count("scatter and barrier", scatter_and_barrier, 8);
    count("broadcast and barrier", broadcast_and_barrier, 8);
    return end();
}
