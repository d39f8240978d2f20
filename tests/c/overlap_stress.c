// ranks: 2
// args: 1250
// says: correct
// env: WEFT_EAGER=1000 WEFT_STAGING=0 WEFT_PROGRESS=none | WEFT_EAGER=1000 WEFT_STAGING=0 WEFT_PROGRESS=locked | WEFT_EAGER=1000 WEFT_STAGING=0 WEFT_PROGRESS=signal | WEFT_EAGER=1000 WEFT_STAGING=0 WEFT_PROGRESS=signal WEFT_RENDEZVOUS=write | WEFT_EAGER=1000 WEFT_STAGING=0 WEFT_PROGRESS=handover | WEFT_EAGER=1000 WEFT_STAGING=0 WEFT_PROGRESS=handover WEFT_RENDEZVOUS=write
//
// A program that has other things to do while its messages move: it computes, allocates, prints, takes signals of a
// timer of its own, and runs other programs. 8 rendezvous each way an iteration, 10,000 in all; the data of every one
// are checked. How many of them had arrived before the program asked for them is told, and except with `none` there
// must be some: otherwise nothing was stressed.
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WINDOW = 8, LARGEST = 60000 };

static volatile sig_atomic_t ticks;
static unsigned char *in[WINDOW], *out[WINDOW];
static FILE *paper;

static void tick(int signal)
{
    (void)signal;
    ticks++;
}

static int length(int iteration, int i) { return 2000 + (iteration * 7919 + i * 104729) % (LARGEST - 2000); }

static unsigned char byte(int from, int iteration, int i, int k)
{
    return (unsigned char)((k * 31) ^ (iteration * 13 + i * 5 + from * 101));
}

/* malloc, printf and arithmetic, at whatever point a signal comes. */
static double compute(int iteration)
{
    static char *kept[64];
    double x = 1;
    for (int turn = 0; turn < 60; turn++) {
        int place = (iteration + turn * 7) % 64;
        size_t bytes = (size_t)(16 + (iteration * 977 + turn * 331) % 20000);
        free(kept[place]);
        kept[place] = malloc(bytes);
        CHECK(kept[place] != NULL);
        memset(kept[place], turn, bytes);
        fprintf(paper, "%d %d %.17g %s\n", iteration, turn, x, "a line that is written while messages move");
        for (int k = 0; k < 2000; k++) x = x * 1.0000001 + 1e-9;
    }
    return x;
}

static void run_another(void)
{
    int status = -1;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(127);
    }
    while (waitpid(child, &status, 0) < 0) CHECK(errno == EINTR);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%d", status);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    int iterations = argc > 1 ? atoi(argv[1]) : 100, other = 1 - rank;
    long arrived = 0;
    volatile double sum = 0;
    struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
    struct itimerval every = {{0, 1000}, {0, 1000}};
    paper = fopen("/dev/null", "w");
    CHECK(paper != NULL);
    for (int i = 0; i < WINDOW; i++) in[i] = malloc(LARGEST), out[i] = malloc(LARGEST);
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    CHECK(setitimer(ITIMER_REAL, &every, NULL) == 0);
    for (int iteration = 0; iteration < iterations; iteration++) {
        MPI_Request requests[2 * WINDOW];
        for (int i = 0; i < WINDOW; i++) {
            int bytes = length(iteration, i);
            memset(in[i], ~byte(other, iteration, i, bytes - 1), (size_t)bytes);
            MPI_Irecv(in[i], bytes, MPI_BYTE, other, i, MPI_COMM_WORLD, &requests[i]);
        }
        for (int i = 0; i < WINDOW; i++) {
            int bytes = length(iteration, i);
            for (int k = 0; k < bytes; k++) out[i][k] = byte(rank, iteration, i, k);
            MPI_Isend(out[i], bytes, MPI_BYTE, other, i, MPI_COMM_WORLD, &requests[WINDOW + i]);
        }
        sum += compute(iteration);
        if (iteration % 125 == 0) run_another();
        for (int i = 0; i < WINDOW; i++) {
            int last = length(iteration, i) - 1;
            arrived += ((volatile unsigned char *)in[i])[last] == byte(other, iteration, i, last);
        }
        MPI_Waitall(2 * WINDOW, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < WINDOW; i++)
            for (int k = 0; k < length(iteration, i); k++)
                CHECK(in[i][k] == byte(other, iteration, i, k), "iteration %d, message %d, byte %d", iteration, i, k);
    }
    memset(&every, 0, sizeof every);
    setitimer(ITIMER_REAL, &every, NULL);
    CHECK(ticks > 0);
    const char *design = getenv("WEFT_PROGRESS");
    if (design && strcmp(design, "none") != 0)
        CHECK(arrived > iterations / 4, "%ld of %d had arrived", arrived, WINDOW * iterations);
    if (rank == 0) printf("%ld of %d had arrived before they were asked for\n", arrived, WINDOW * iterations);
    return end();
}
