/* busy: somebody else's work, not MPI: a loop that never rests, on one processor.
 *
 *     busy --cpu N [--seconds S]
 *
 * It ends after S seconds (default 600), or as soon as the process that started it ends. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static void time_is_up(int signal)
{
    (void)signal;
    _exit(0);
}

int main(int argc, char **argv)
{
    pid_t parent = getppid();
    int cpu = -1;
    unsigned seconds = 600;
    for (int i = 1; i < argc; i++) {
        if (i + 1 < argc && !strcmp(argv[i], "--cpu")) cpu = atoi(argv[++i]);
        else if (i + 1 < argc && !strcmp(argv[i], "--seconds")) seconds = (unsigned)atoi(argv[++i]);
        else return fprintf(stderr, "busy: unknown option '%s'; usage: busy --cpu N [--seconds S]\n", argv[i]), 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) return 0; /* it ended before we asked to be told */
    cpu_set_t set;
    CPU_ZERO(&set);
    if (cpu >= 0 && cpu < CPU_SETSIZE) CPU_SET(cpu, &set);
    if (cpu < 0 || cpu >= CPU_SETSIZE || sched_setaffinity(0, sizeof set, &set))
        return fprintf(stderr, "busy: cannot run on processor %d\n", cpu), 2;
    signal(SIGALRM, time_is_up);
    alarm(seconds > 0 ? seconds : 1);
    for (volatile unsigned long turns = 0;; turns++) {}
}
