// ranks: 2 3
// alone: it keeps both processors busy with millions of messages
// says: correct
//
// A flood of unexpected messages to a rank that sleeps: payload beyond the credit (WEFT_CREDIT, for
// each sender) waits at the sender, a further envelope costs at most 64 bytes, none is lost, and
// order is kept. The memory of the receiver is what the kernel says, so it counts everything.
#include "check.h"
#include <unistd.h>

enum { MILLION = 1000000, WINDOW = 1000 };

static long credit(void)
{
    const char *text = getenv("WEFT_CREDIT");
    return text ? atol(text) : 1 << 20;
}

/* Resident bytes of this process that it shares with nobody. */
static long resident(void)
{
    char line[256];
    long kb = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file)) sscanf(line, "RssAnon: %ld", &kb);
    if (file) fclose(file);
    CHECK(kb >= 0, "no RssAnon in /proc/self/status");
    return kb * 1024;
}

/* The n-th message carries n in its first word and its inverse in the last. */
static void stamp(long *words, int bytes, long n)
{
    words[0] = n;
    words[bytes / 8 - 1] = ~n;
}

static void send_all(int bytes, int count, int blocking, MPI_Comm comm)
{
    static MPI_Request request[WINDOW];
    long *data = malloc((size_t)WINDOW * bytes);
    for (int first = 0; first < count; first += WINDOW) {
        for (int i = 0; i < WINDOW; i++) {
            long *words = data + (size_t)i * bytes / 8;
            stamp(words, bytes, first + i);
            if (blocking) MPI_Send(words, bytes, MPI_BYTE, 0, 1, comm);
            else MPI_Isend(words, bytes, MPI_BYTE, 0, 1, comm, &request[i]);
        }
        if (!blocking) MPI_Waitall(WINDOW, request, MPI_STATUSES_IGNORE);
    }
    free(data);
}

/* All at once: no request is waited for before the last is started, and a message with tag 2 comes
 * behind them. */
static void send_open(int bytes, int count, MPI_Comm comm)
{
    long *data = malloc((size_t)count * bytes);
    MPI_Request *request = malloc((count + 1L) * sizeof *request);
    for (int i = 0; i < count; i++) {
        long *words = data + (size_t)i * bytes / 8;
        stamp(words, bytes, i);
        MPI_Isend(words, bytes, MPI_BYTE, 0, 1, comm, &request[i]);
    }
    MPI_Isend(NULL, 0, MPI_BYTE, 0, 2, comm, &request[count]);
    MPI_Waitall(count + 1, request, MPI_STATUSES_IGNORE);
    free(data), free(request);
}

static void receive_all(int bytes, int count, MPI_Comm comm)
{
    long next[16] = {0}, words[128];
    for (long left = (long)count * (size - 1); left > 0; left--) {
        MPI_Status status;
        int got;
        MPI_Recv(words, sizeof words, MPI_BYTE, MPI_ANY_SOURCE, 1, comm, &status);
        MPI_Get_count(&status, MPI_BYTE, &got);
        long n = next[status.MPI_SOURCE]++;
        CHECK(got == bytes && (bytes == 8 || words[0] == n) && words[bytes / 8 - 1] == ~n,
              "message %ld of rank %d: %d bytes, %ld", n, status.MPI_SOURCE, got, words[0]);
    }
    for (int i = 1; i < size; i++) CHECK(next[i] == count);
}

/* Lets an open flood come in to its end: progress is made, but nothing of it is received. */
static void let_in(MPI_Comm comm)
{
    for (int source = 1; source < size; source++)
        MPI_Recv(NULL, 0, MPI_BYTE, source, 2, comm, MPI_STATUS_IGNORE);
}

enum Way { BLOCKING, WINDOWS, OPEN };

static void flood(enum Way way, int bytes, int count)
{
    static const char *const names[] = {"blocking", "in windows", "open"};
    const char *how = names[way];
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Barrier(comm);
    double start = MPI_Wtime();
    if (rank != 0) {
        if (way == OPEN) send_open(bytes, count, comm);
        else send_all(bytes, count, way == BLOCKING, comm);
    } else {
        int flag;
        long before = resident(), senders = size - 1;
        usleep(200000);
        MPI_Iprobe(MPI_ANY_SOURCE, 3, comm, &flag, MPI_STATUS_IGNORE);
        if (way == OPEN) let_in(comm);
        long grown = resident() - before;
        /* What is held with its payload has a small buffer besides; 1 MiB for all else. */
        long held = credit() / bytes < count ? credit() / bytes : count;
        long bound = senders * (credit() + 64L * count + 64 * held) + (1 << 20);
        CHECK(grown <= bound, "%s, %d bytes: %ld bytes, more than %ld", how, bytes, grown, bound);
        receive_all(bytes, count, comm);
        long after = resident() - before;
        /* Lists of what is free again: a number for each envelope, a pointer for each buffer. */
        bound += senders * (8L * count + 32 * held);
        CHECK(after <= bound, "%s, %d bytes: %ld bytes, more than %ld", how, bytes, after, bound);
        printf("%d messages of %d bytes from each, %s: %.1f MiB before the first receive, %.1f "
               "after the last; %.1f s\n",
               count, bytes, how, grown / 1048576.0, after / 1048576.0, MPI_Wtime() - start);
    }
    MPI_Comm_free(&comm);
}

static void warm_up(void)
{
    enum { MANY = 4 * WINDOW };
    if (rank != 0) {
        send_all(1024, MANY, 0, MPI_COMM_WORLD);
    } else {
        usleep(200000);
        receive_all(1024, MANY, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    int count = argc > 1 ? atoi(argv[1]) : MILLION;
    /* A network's library below takes its pools once, when they are first needed: not counted. */
    if (argc > 2) warm_up();
    flood(WINDOWS, 8, count);
    flood(WINDOWS, 1024, count);
    flood(BLOCKING, 8, count);
    flood(BLOCKING, 1024, count / 4);
    flood(OPEN, 8, count);
    return end();
}
