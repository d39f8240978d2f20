// ranks: 1 2 5
// says: correct
// env: | WEFT_COPY_MODEL=generic | WEFT_COPY_MODEL=measure WEFT_CMA=0 | HOME=/none XDG_CACHE_HOME=/proc/none
//
// What copies cost is the same for all ranks of a machine, each number above 0. With "forbid", the system refuses to read another
// process's memory. Rank 0 prints the numbers, and how long MPI_Init took.
#define _GNU_SOURCE
#include "tools.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { COSTS = 36, LONG = 1000 };

/* From here on process_vm_readv and process_vm_writev are refused, to children, too. */
static void forbid(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
        printf("cannot forbid\n");
        exit(0);
    }
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}

/* As many threads as this process has. */
static int threads(void)
{
    char line[LONG];
    int count = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (fgets(line, LONG, file)) sscanf(line, "Threads: %d", &count);
    fclose(file);
    return count;
}

/* A thread that has ended is counted until the system has put it away, which takes a moment where there is one processor. */
static int threads_left(void)
{
    int count = threads();
    for (int i = 0; i < 1000 && count > 1; i++, count = threads()) usleep(1000);
    return count;
}

int main(int argc, char **argv)
{
    cpu_set_t before, after;
    if (argc > 1 && !strcmp(argv[1], "forbid")) forbid();
    sched_getaffinity(0, sizeof before, &before);
    double start = now();
    begin(&argc, &argv);
    double took = now() - start;
    sched_getaffinity(0, sizeof after, &after);
    CHECK(CPU_EQUAL(&before, &after) && threads_left() == 1, "%d threads", threads());

    MPI_T_pvar_session session;
    number own[COSTS], first[COSTS];
    int num, count = 0;
    tool_begin();
    OK(MPI_T_pvar_session_create(&session));
    OK(MPI_T_pvar_get_num(&num));
    for (int i = 0; i < num; i++) {
        char name[LONG];
        int length = LONG, class;
        OK(MPI_T_pvar_get_info(i, name, &length, NULL, &class, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
        if (strncmp(name, "weft.fabric.shm.copy_", 21)) continue;
        CHECK(count < COSTS, "%s", name);
        own[count] = value(session, gauge(session, name, class, NULL));
        CHECK(own[count] > 0, "%s", name);
        if (rank == 0) printf("%s %llu\n", name + 16, own[count]);
        count++;
    }
    CHECK(count == COSTS, "%d", count);
    memcpy(first, own, sizeof own);
    MPI_Bcast(first, COSTS, MPI_UNSIGNED_LONG_LONG, 0, MPI_COMM_WORLD);
    CHECK(!memcmp(first, own, sizeof own));
    if (rank == 0) printf("init %.0f us\n", took);
    OK(MPI_T_pvar_session_free(&session));
    OK(MPI_T_finalize());
    return end();
}
