// ranks: 1 3
// says: correct
// env: | WEFT_PROGRESS=handover
//
// Ranks that start other processes: system(), popen, fork with _exit and with exit, an MPI call in
// the child, another MPI program (a world of one), and another job. After each of them the ranks
// still reach each other, and a receive posted before it is good after it.
#include "check.h"
#include <sys/wait.h>
#include <unistd.h>

static char self[4096];

/* Posted before something happens, and ended after it. */
static int token, got;
static MPI_Request pending;

static void before(void)
{
    got = -1;
    MPI_Irecv(&got, 1, MPI_INT, (rank + size - 1) % size, 5, MPI_COMM_WORLD, &pending);
}

static void after(const char *what)
{
    static double big[20000], other[20000];
    int right = (rank + 1) % size, left = (rank + size - 1) % size, sum;
    token++;
    MPI_Send(&token, 1, MPI_INT, right, 5, MPI_COMM_WORLD);
    MPI_Wait(&pending, MPI_STATUS_IGNORE);
    CHECK(got == token, "after %s: %d", what, got);
    for (int i = 0; i < 20000; i++) big[i] = rank + i + token;
    MPI_Sendrecv(big, 20000, MPI_DOUBLE, right, 6, other, 20000, MPI_DOUBLE, left, 6,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 20000; i++) CHECK(other[i] == left + i + token, "after %s", what);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == size * (size - 1) / 2, "after %s: %d", what, sum);
}

static void shell(const char *arguments, int expected)
{
    char line[5000];
    snprintf(line, sizeof line, arguments, self);
    before();
    int status = system(line);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == expected, "%s: %#x", line, status);
    after(line);
}

static int in_parent = 1;

/* What a binding does that ends MPI at exit. */
static void at_exit(void)
{
    int initialized, finalized;
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    if (initialized && !finalized) MPI_Finalize();
    if (!in_parent) MPI_Finalize(); /* and one that does not look */
}

static void child(const char *what, void (*run)(void), int expected)
{
    int status;
    before();
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        in_parent = 0;
        run();
        exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == expected, "%s: %#x", what, status);
    after(what);
}

static void leaves_quickly(void) { _exit(7); }
static void leaves(void) { exit(8); }

/* Under MPI_ERRORS_RETURN every call gets an error; those that answer without MPI still do. */
static void calls(void)
{
    int word = 0, flag;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Request request;
    MPI_Status status;
    int codes[] = {
        MPI_Send(&word, 1, MPI_INT, rank, 1, MPI_COMM_WORLD),
        MPI_Recv(&word, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &status),
        MPI_Isend(&word, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, &request),
        MPI_Barrier(MPI_COMM_WORLD),
        MPI_Allreduce(&word, &word, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF),
        MPI_Iprobe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &flag, &status),
        MPI_Test(&pending, &flag, &status),
        MPI_Wait(&pending, &status),
        MPI_Cancel(&pending),
        MPI_Init(NULL, NULL),
    };
    for (unsigned i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i] == MPI_SUCCESS) _exit(100 + i);
    MPI_Error_string(codes[0], text, &word);
    _exit(strstr(text, "fork") ? 9 : 99);
}

/* Under the default handler the child alone ends, with a message. */
static void dies(void)
{
    freopen("/dev/null", "w", stderr);
    MPI_Barrier(MPI_COMM_WORLD);
    _exit(98);
}

static void aborts(void)
{
    freopen("/dev/null", "w", stderr);
    MPI_Abort(MPI_COMM_WORLD, 11);
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "plain")) return 4;
    atexit(at_exit);
    begin(&argc, &argv);
    if (argc > 1) { /* started by a rank: argv[1] says how many we must be */
        int sum, one = 1;
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        CHECK(sum == atoi(argv[1]) && sum == size, "%d", sum);
        return 0; /* the exit handler finalizes */
    }
    CHECK(realpath(argv[0], self) != NULL);
    shell("true", 0);
    shell("'%s' plain", 4);
    shell("'%s' 1", 0);
    if (rank == 0) shell("mpiexec -n 2 '%s' 2", 0);
    else before(), after("another job of rank 0");
    child("_exit", leaves_quickly, 7);
    child("exit", leaves, 8);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    child("MPI calls", calls, 9);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    child("a fatal error", dies, MPI_ERR_OTHER);
    child("MPI_Abort", aborts, 11);
    return end();
}
