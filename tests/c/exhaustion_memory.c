/* Objects are made until the memory that the process may have is used up: an error says so before anything fails for want of
 * it, and when some are freed there is room again, also for others. */
// ranks: 1 2
// says: correct

#include "check.h"
#include <sys/resource.h>

#define MOST 1000000
#define ROOM (48L << 20)

static void *some[MOST];

/* Leaves `ROOM` bytes of address space. */
static void narrow(void)
{
    struct rlimit limit;
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%ld", &pages) == 1);
    fclose(file);
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = (rlim_t)(pages * 4096 + ROOM);
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
}

static void full(int code, int made, int least)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    CHECK(made >= least && made < MOST, "%d", made);
    CHECK(class_of(code) == MPI_ERR_NO_MEM, "class %d", class_of(code));
    MPI_Error_string(code, text, &length);
    CHECK(strstr(text, "and no memory for more"), "'%s'", text);
}

/* Makes objects of one kind until there is no memory, frees half of them, makes others, and frees all. */
#define UNTIL_FULL(kind, make, take, least)                     \
    do {                                                        \
        int made = 0, code;                                     \
        for (;;) {                                              \
            kind *one = (kind *)&some[made];                    \
            if ((code = make) != MPI_SUCCESS) break;            \
            if (++made == MOST) break;                          \
        }                                                       \
        full(code, made, least);                                \
        int half = made / 2;                                    \
        for (; made > half; made--) {                           \
            kind *one = (kind *)&some[made - 1];                \
            CHECK(take == MPI_SUCCESS);                         \
        }                                                       \
        for (int i = 0; i < 100; i++, made++) {                 \
            kind *one = (kind *)&some[made];                    \
            CHECK(make == MPI_SUCCESS);                         \
        }                                                       \
        while (made > 0) {                                      \
            kind *one = (kind *)&some[--made];                  \
            CHECK(take == MPI_SUCCESS);                         \
        }                                                       \
    } while (0)

static int receive(MPI_Request *one)
{
    static int into;
    return MPI_Recv_init(&into, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, one);
}

int main(int argc, char **argv)
{
    MPI_Group all;
    int first = 0;
    begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Barrier(MPI_COMM_WORLD);
    memset(some, 0, sizeof some);
    narrow();
    UNTIL_FULL(MPI_Request, receive(one), MPI_Request_free(one), 1000);
    UNTIL_FULL(MPI_Comm, MPI_Comm_dup(MPI_COMM_SELF, one), MPI_Comm_free(one), 1000);
    UNTIL_FULL(MPI_Datatype, MPI_Type_vector(3, 2, 5, MPI_INT, one), MPI_Type_free(one), 1000);
    UNTIL_FULL(MPI_Group, MPI_Group_incl(all, 1, &first, one), MPI_Group_free(one), 1000);
    UNTIL_FULL(MPI_Info, MPI_Info_create(one), MPI_Info_free(one), 1000);
    int sum = 0;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == size * (size - 1) / 2);
    MPI_Group_free(&all);
    return end();
}
