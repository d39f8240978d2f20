// ranks: 1 2 3
// says: correct
// env: | WEFT_CMA=0 | WEFT_ALLREDUCE=RGM WEFT_BARRIER=RGM WEFT_BCAST=MULTICAST | WEFT_PROGRESS=locked | WEFT_FABRIC=shm+ofi
//
// Processes that start others (MPI 5.0, section 11.8): what parents and children see of each other, messages, collectives and
// windows between and among them, errors, and that nothing is left behind. The program is its own child; what it is to do then
// stands in its arguments. With the argument "few" two spawns and the end are enough.
#define _GNU_SOURCE
#include "check.h"
#include <dirent.h>
#include <unistd.h>

static char *self;
static int few;

static int descriptors(void)
{
    DIR *all = opendir("/proc/self/fd");
    int n = 0;
    while (readdir(all))
        n++;
    closedir(all);
    return n;
}

/* Every pair of the two groups, both ways. */
static void pairs(MPI_Comm inter)
{
    int mine, theirs, me;
    MPI_Comm_size(inter, &mine);
    MPI_Comm_remote_size(inter, &theirs);
    MPI_Comm_rank(inter, &me);
    for (int bytes = 1; bytes < 3000000; bytes = 37 * bytes + 1) {
        char *out = malloc(bytes), *in = malloc(bytes);
        MPI_Request request;
        for (int at = 0; at < theirs; at++) {
            memset(out, me + 3 * at + bytes, bytes);
            MPI_Isend(out, bytes, MPI_CHAR, at, me, inter, &request);
            MPI_Status status;
            MPI_Recv(in, bytes, MPI_CHAR, at, MPI_ANY_TAG, inter, &status);
            CHECK(status.MPI_SOURCE == at && status.MPI_TAG == at);
            char right = (char)(at + 3 * me + bytes);
            int wrong = 0;
            for (int i = 0; i < bytes; i++)
                wrong += in[i] != right;
            CHECK(wrong == 0, "%d of %d bytes from %d", wrong, bytes, at);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        free(out);
        free(in);
    }
}

/* What the two groups do together, the same at both ends. */
static void together(MPI_Comm inter, int high)
{
    int mine, theirs, me, flag;
    MPI_Comm_test_inter(inter, &flag);
    CHECK(flag);
    MPI_Comm_size(inter, &mine);
    MPI_Comm_remote_size(inter, &theirs);
    MPI_Comm_rank(inter, &me);
    pairs(inter);
    int one = me + 1, sum = -1;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter);
    CHECK(sum == theirs * (theirs + 1) / 2, "%d", sum);
    MPI_Barrier(inter);

    MPI_Comm all, dup, part;
    MPI_Intercomm_merge(inter, high, &all);
    int size, rank_;
    MPI_Comm_size(all, &size);
    MPI_Comm_rank(all, &rank_);
    CHECK(size == mine + theirs && rank_ == (high ? theirs + me : me), "%d of %d", rank_, size);
    MPI_Comm_dup(all, &dup);
    for (int count = 1; count < 200000; count = 13 * count + 1) {
        int *in = malloc(sizeof(int) * count), *out = malloc(sizeof(int) * count);
        for (int i = 0; i < count; i++)
            in[i] = i + rank_;
        MPI_Allreduce(in, out, count, MPI_INT, MPI_SUM, dup);
        int wrong = 0;
        for (int i = 0; i < count; i++)
            wrong += out[i] != i * size + size * (size - 1) / 2;
        CHECK(wrong == 0, "%d of %d", wrong, count);
        free(in);
        free(out);
    }
    int *by_rank = malloc(sizeof(int) * size);
    MPI_Allgather(&rank_, 1, MPI_INT, by_rank, 1, MPI_INT, all);
    for (int i = 0; i < size; i++)
        CHECK(by_rank[i] == i);
    MPI_Comm_split(all, rank_ % 2, -rank_, &part);
    int count = -1, ones = 1;
    MPI_Allreduce(&ones, &count, 1, MPI_INT, MPI_SUM, part);
    CHECK(count == (size + 1 - rank_ % 2) / 2);

    /* Memory of the one is the other's, too. */
    MPI_Win win;
    long *memory;
    MPI_Win_allocate(size * sizeof *memory, sizeof *memory, MPI_INFO_NULL, dup, &memory, &win);
    for (int i = 0; i < size; i++)
        memory[i] = 0;
    MPI_Barrier(dup);
    MPI_Win_lock_all(0, win);
    long hundred = 100, before = -1;
    for (int to = 0; to < size; to++) {
        MPI_Accumulate(&hundred, 1, MPI_LONG, to, rank_, 1, MPI_LONG, MPI_SUM, win);
        MPI_Fetch_and_op(&hundred, &before, MPI_LONG, to, 0, MPI_SUM, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(dup);
    MPI_Win_lock_all(0, win);
    CHECK(memory[0] == 100 + 100L * size, "%ld", memory[0]);
    for (int i = 1; i < size; i++)
        CHECK(memory[i] == 100);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    free(by_rank);
    MPI_Comm_free(&part);
    MPI_Comm_free(&dup);
    MPI_Comm_free(&all);
}

static int child(MPI_Comm parent, int argc, char **argv)
{
    int app = -1, flag, *value;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &value, &flag);
    CHECK(flag);
    app = *value;
    if (argc > 1 && strcmp(argv[1], "quick") == 0) {
        MPI_Comm_disconnect(&parent);
        return end();
    }
    if (argc > 1 && strcmp(argv[1], "finalize") == 0)
        return end();
    if (argc > 1 && strcmp(argv[1], "keys") == 0) {
        const char *found = getenv("WEFT_SPAWN_KEY");
        CHECK(found && strcmp(found, "a value = b") == 0 && size == 2);
        CHECK(getenv("WEFT_PARENT") == NULL);
        MPI_Comm_disconnect(&parent);
        return end();
    }
    CHECK(argc == 3 && strcmp(argv[1], "together") == 0 && strcmp(argv[2], "an argument: \"'$") == 0);
    together(parent, 1);
    MPI_Send(&app, 1, MPI_INT, 0, 7, parent);
    char folder[4096];
    CHECK(getcwd(folder, sizeof folder));
    MPI_Send(folder, (int)strlen(folder) + 1, MPI_CHAR, 0, 8, parent);
    MPI_Comm_disconnect(&parent);
    CHECK(parent == MPI_COMM_NULL);
    MPI_Comm_get_parent(&parent);
    CHECK(parent == MPI_COMM_NULL);
    return end();
}

static void parents(void)
{
    char *argv[] = {"together", "an argument: \"'$", NULL};
    MPI_Comm inter;
    int codes[8];
    for (int root = 0; root < size; root += 2) {
        for (int n = few ? 2 : 1; n <= (few ? 2 : 3); n++) {
            memset(codes, 1, sizeof codes);
            MPI_Info info;
            MPI_Info_create(&info);
            MPI_Info_set(info, "wdir", "/");
            MPI_Comm_spawn(rank == root ? self : NULL, argv, n, info, root, MPI_COMM_WORLD, &inter, codes);
            MPI_Info_free(&info);
            for (int i = 0; i < n; i++)
                CHECK(codes[i] == MPI_SUCCESS);
            together(inter, 0);
            for (int i = 0; rank == 0 && i < n; i++) {
                int app = -1;
                char folder[4096];
                MPI_Recv(&app, 1, MPI_INT, i, 7, inter, MPI_STATUS_IGNORE);
                MPI_Recv(folder, sizeof folder, MPI_CHAR, i, 8, inter, MPI_STATUS_IGNORE);
                CHECK(app == 0 && strcmp(folder, "/") == 0, "%d %s", app, folder);
            }
            MPI_Comm_disconnect(&inter);
        }
    }
}

static void several(void)
{
    char *commands[] = {self, self};
    char *one[] = {"together", "an argument: \"'$", NULL};
    char **argvs[] = {one, one};
    int most[] = {1, 2};
    MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    MPI_Comm inter;
    MPI_Comm_spawn_multiple(2, commands, argvs, most, infos, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
    together(inter, 0);
    for (int i = 0; rank == 0 && i < 3; i++) {
        int app = -1;
        char folder[4096];
        MPI_Recv(&app, 1, MPI_INT, i, 7, inter, MPI_STATUS_IGNORE);
        MPI_Recv(folder, sizeof folder, MPI_CHAR, i, 8, inter, MPI_STATUS_IGNORE);
        CHECK(app == (i > 0));
    }
    MPI_Comm_disconnect(&inter);
}

/* Keys of info, but for wdir. */
static void keys(void)
{
    char *argv[] = {"keys", NULL}, folder[4096], *name;
    MPI_Comm inter;
    MPI_Info info;
    CHECK(realpath(self, folder));
    name = strrchr(folder, '/');
    *name++ = 0;
    MPI_Info_create(&info);
    MPI_Info_set(info, "path", folder);
    MPI_Info_set(info, "soft", "0:2");
    MPI_Info_set(info, "env", "WEFT_SPAWN_OTHER=1\nWEFT_SPAWN_KEY=a value = b");
    char here[MPI_MAX_PROCESSOR_NAME];
    int len;
    MPI_Get_processor_name(here, &len);
    MPI_Info_set(info, "host", here);
    MPI_Info_set(info, "file", "not used");
    int theirs, codes[10];
    memset(codes, 1, sizeof codes);
    MPI_Comm_spawn(name, argv, 5, info, 0, MPI_COMM_WORLD, &inter, codes);
    MPI_Comm_remote_size(inter, &theirs);
    CHECK(theirs == 2);
    MPI_Comm_disconnect(&inter);
    /* Processes that were not started have an error code. No code is left out. */
    for (int i = 0; i < 5; i++)
        CHECK(class_of(codes[i]) == (i < 2 ? MPI_SUCCESS : MPI_ERR_SPAWN), "%d: %d", i, codes[i]);
    /* With several programs, each has as many codes as processes were asked for. */
    char *commands[] = {name, name}, **argvs[] = {argv, argv};
    int most[] = {3, 4};
    MPI_Info infos[2];
    MPI_Info_set(info, "soft", "1");
    infos[0] = infos[1] = info;
    memset(codes, 1, sizeof codes);
    MPI_Comm_spawn_multiple(2, commands, argvs, most, infos, 0, MPI_COMM_WORLD, &inter, codes);
    for (int i = 0; i < 7; i++)
        CHECK(class_of(codes[i]) == (i == 0 || i == 3 ? MPI_SUCCESS : MPI_ERR_SPAWN), "%d: %d", i, codes[i]);
    MPI_Comm_disconnect(&inter);
    MPI_Info_free(&info);
}

/* What cannot be started is an error at all processes, and they go on. */
static void mistakes(void)
{
    MPI_Comm inter = MPI_COMM_NULL;
    int codes[2] = {-1, -1};
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    FAILS(MPI_Comm_spawn("/no/such/program", MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, codes),
          MPI_ERR_SPAWN);
    CHECK(inter == MPI_COMM_NULL && class_of(codes[0]) == MPI_ERR_SPAWN && class_of(codes[1]) == MPI_ERR_SPAWN);
    FAILS(MPI_Comm_spawn("/bin/true", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE),
          MPI_ERR_SPAWN);
    FAILS(MPI_Comm_spawn(self, MPI_ARGV_NULL, 0, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE),
          MPI_ERR_SPAWN);
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "soft", "7:9");
    codes[0] = codes[1] = -1;
    FAILS(MPI_Comm_spawn(self, MPI_ARGV_NULL, 2, info, 0, MPI_COMM_WORLD, &inter, codes), MPI_ERR_SPAWN);
    CHECK(class_of(codes[0]) == MPI_ERR_SPAWN && class_of(codes[1]) == MPI_ERR_SPAWN);
    MPI_Info_free(&info);
    FAILS(MPI_Comm_spawn(self, MPI_ARGV_NULL, 1 << 20, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE),
          MPI_ERR_SPAWN);
    FAILS(MPI_Comm_spawn(self, MPI_ARGV_NULL, 1, MPI_INFO_NULL, size, MPI_COMM_WORLD, &inter, codes), MPI_ERR_ROOT);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/* There are so many slots on all hosts together, and each rank is told the same. */
static void room(int slots)
{
    int flag, *universe;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &universe, &flag);
    CHECK(flag && *universe == slots, "%d slots, expected %d", flag ? *universe : -1, slots);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    self = argv[0];
    MPI_Comm parent;
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL)
        return child(parent, argc, argv);
    few = argc > 1 && strcmp(argv[1], "few") == 0;
    if (argc > 1 && !few)
        room(atoi(argv[1]));
    parents();
    several();
    if (!few) {
        keys();
        mistakes();
    }
    char *quick[] = {"quick", NULL}, *last[] = {"finalize", NULL};
    int open = 0, flag;
    for (int i = 0; i < 8 && !few; i++) {
        MPI_Comm inter;
        MPI_Comm_spawn(self, quick, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
        MPI_Comm_disconnect(&inter);
        if (i == 2) {
            for (int k = 0; k < 20; k++) {
                usleep(50000);
                MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
            }
            open = descriptors();
        }
    }
    /* Threads that served the last link may still be about to end. */
    for (int i = 0; i < 200 && !few && descriptors() > open; i++) {
        usleep(50000);
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
    CHECK(few || descriptors() <= open, "%d descriptors, %d before", descriptors(), open);
    /* Whoever does not disconnect ends together. */
    MPI_Comm inter;
    MPI_Comm_spawn(self, last, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
    return end();
}
