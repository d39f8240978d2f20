// With --clocks the clocks of the system and a sleep follow virtual time, and a loop until a time ends.
#include <mpi.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static double now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    double wall = now(CLOCK_REALTIME), steady = now(CLOCK_MONOTONIC), mpi = MPI_Wtime();
    // An hour, which takes no real time.
    sleep(3600);
    wall = now(CLOCK_REALTIME) - wall, steady = now(CLOCK_MONOTONIC) - steady, mpi = MPI_Wtime() - mpi;
    int good = wall > 3599.9 && wall < 3601 && steady > 3599.9 && steady < 3601 && mpi > 3599.9 && mpi < 3601;
    for (double until = now(CLOCK_MONOTONIC) + 0.01; now(CLOCK_MONOTONIC) < until;) continue;
    printf(good ? "correct\n" : "WRONG: %g, %g and %g s\n", wall, steady, mpi);
    MPI_Finalize();
    return !good;
}
