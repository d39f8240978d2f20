// ranks: 2
// args: send 65536 10
// says: correct
//
// moves WHAT BYTES TIMES: so many messages (send), puts or gets of so many bytes from rank 0 to rank 1 (a get: the other way),
// each checked at the end. For tools that count what they cost (xtask/src/test/counts.rs): the part that counts lies between
// two calls of getpgid that no process answers, and a message of 1 byte goes back after each, so that nobody sends ahead. A
// receiver comes late, so that it finds the payload, and does not look for the next part of it again and again.
#include "check.h"
#include <sys/syscall.h>
#include <unistd.h>

enum {
    NOBODY = 0x7eef7eef, /* no process has such a number */
    LATE = 20000,     /* microseconds */
    ROUND = 512 << 10 /* bytes of the buffers, at least: a payload is out of a small cache when its place is used again */
};

static int places;
static char *own, *memory;
static MPI_Win win = MPI_WIN_NULL;

/* What rank `seed` has at place `i`. */
static char byte(long i, int seed) { return (char)(i * 7 + (i >> 9) + seed); }

static void fill(char *at, long bytes, int seed)
{
    for (long i = 0; i < bytes; i++) at[i] = byte(i, seed);
}

static void same(const char *at, long first, long bytes, int seed)
{
    for (long i = 0; i < bytes; i++) CHECK(at[i] == byte(first + i, seed), "byte %ld", first + i);
}

/* One payload, and the word that it has come. */
static void move(const char *what, int bytes, int turn)
{
    char word = 0, *data = own + (size_t)(turn % places) * (size_t)bytes;
    MPI_Aint at = data - own;
    if (*what == 's' && rank == 0) MPI_Send(data, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
    if (*what == 's' && rank == 1) usleep(LATE);
    if (*what == 's' && rank == 1) MPI_Recv(data, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (*what == 'p' && rank == 0) MPI_Put(data, bytes, MPI_CHAR, 1, at, bytes, MPI_CHAR, win);
    if (*what == 'g' && rank == 0) MPI_Get(data, bytes, MPI_CHAR, 1, at, bytes, MPI_CHAR, win);
    if (*what != 's' && rank == 0) MPI_Win_flush(1, win);
    if (*what == 's' && rank == 0) MPI_Recv(&word, 1, MPI_CHAR, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (*what == 's' && rank == 1) MPI_Send(&word, 1, MPI_CHAR, 0, 2, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    CHECK(argc == 4 && size == 2, "moves WHAT BYTES TIMES on 2 ranks");
    const char *what = argv[1];
    int bytes = atoi(argv[2]), times = atoi(argv[3]);
    CHECK(strchr("spg", *what) && bytes > 0 && times >= 0);
    places = (ROUND + bytes - 1) / bytes;
    int all = places * bytes;
    own = malloc((size_t)all);
    if (*what != 's') {
        MPI_Win_allocate(all, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
        MPI_Win_lock_all(0, win);
        fill(memory, all, rank);
        MPI_Win_sync(win);
    }
    fill(own, all, 10 + rank);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 4; i++) move(what, bytes, i); /* connections */
    MPI_Barrier(MPI_COMM_WORLD);
    syscall(SYS_getpgid, NOBODY);
    for (int i = 0; i < times; i++) move(what, bytes, i);
    syscall(SYS_getpgid, NOBODY);
    MPI_Barrier(MPI_COMM_WORLD);
    if (win != MPI_WIN_NULL) MPI_Win_sync(win);
    for (int i = 0; i < times && i < places; i++) {
        long at = (long)i * bytes;
        if (*what == 's' && rank == 1) same(own + at, at, bytes, 10);
        if (*what == 'p' && rank == 1) same(memory + at, at, bytes, 10);
        if (*what == 'g' && rank == 0) same(own + at, at, bytes, 1);
    }
    if (win != MPI_WIN_NULL) {
        MPI_Win_unlock_all(win);
        MPI_Win_free(&win);
    }
    free(own);
    return end();
}
