// ranks: 2 4
// says: correct
// env: WEFT_FAULT=seed=5,multicast_loss=0.3 WEFT_BARRIER=RGM WEFT_ALLREDUCE=RGM WEFT_BCAST=MULTICAST | WEFT_FAULT=seed=5,multicast_loss=0.3 WEFT_BARRIER=RGM WEFT_ALLREDUCE=RGM WEFT_BCAST=MULTICAST WEFT_MULTICAST_REPAIR=multicast
//
// The root of a multicast that goes on to compute answers for what was lost all the same: after each
// operation rank 0 stays outside of the library until all others are through with it, which they say
// in memory that all map, not by MPI. Where no one repairs, the program does not end. Arguments:
// rounds, and "+" if some multicast must have been lost. A repair that was asked for too early is
// counted as a duplicate (or as foreign) where the datagram comes all the same: the others were needed.
#define _GNU_SOURCE
#include "tools.h"
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { RANKS = 64 };

/* How many operations each rank is through with. */
static atomic_int *through;

static void share(void)
{
    char name[64] = "/tmp/weft-kini-root-XXXXXX";
    int fd = -1, go = 0;
    if (rank == 0) {
        fd = mkstemp(name);
        CHECK(fd >= 0 && ftruncate(fd, RANKS * sizeof *through) == 0, "%s", name);
        for (int to = 1; to < size; to++)
            MPI_Send(name, sizeof name, MPI_CHAR, to, 0, MPI_COMM_WORLD);
    } else {
        MPI_Recv(name, sizeof name, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        fd = open(name, O_RDWR);
    }
    CHECK(fd >= 0, "%s", name);
    through = mmap(NULL, RANKS * sizeof *through, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(through != MAP_FAILED);
    close(fd);
    if (rank > 0) {
        MPI_Send(&go, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    } else {
        for (int from = 1; from < size; from++)
            MPI_Recv(&go, 1, MPI_INT, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        unlink(name);
    }
}

/* This rank is through with operation `number`; the root stays away until all are. */
static void compute(int number)
{
    struct timespec pause = {0, 200000};
    atomic_store(&through[rank], number);
    for (int other = 1; rank == 0 && other < size; other++)
        while (atomic_load(&through[other]) < number) nanosleep(&pause, NULL);
}

int main(int argc, char **argv)
{
    MPI_T_pvar_session session;
    int rounds = argc > 1 ? atoi(argv[1]) : 100, done = 0;
    tool_begin();
    OK(MPI_T_pvar_session_create(&session));
    MPI_T_pvar_handle sent = counter(session, "weft.collective.multicast_repairs_sent");
    MPI_T_pvar_handle again = counter(session, "weft.collective.multicast_recasts_sent");
    MPI_T_pvar_handle came = counter(session, "weft.collective.multicast_repairs");
    MPI_T_pvar_handle twice = counter(session, "weft.collective.multicast_duplicates");
    MPI_T_pvar_handle foreign = counter(session, "weft.collective.multicast_foreign");
    MPI_T_pvar_handle helped = counter(session, "weft.waiting.helper_rounds");
    number before = 0, needless_before = 0;
    begin(&argc, &argv);
    CHECK(size <= RANKS);
    share();
    for (int round = 0; round < rounds; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        compute(++done);
        int sum = -1, told = rank == 0 ? round : -1;
        MPI_Allreduce(&round, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        CHECK(sum == size * round, "%d", sum);
        compute(++done);
        MPI_Bcast(&told, 1, MPI_INT, 0, MPI_COMM_WORLD);
        CHECK(told == round, "%d", told);
        compute(++done);
        /* Datagrams sent before a member joined the group are no loss. */
        if (round == 0) {
            before = total(session, came);
            needless_before = total(session, twice) + total(session, foreign);
        }
    }
    number repairs = total(session, came) - before;
    number needless = total(session, twice) + total(session, foreign) - needless_before;
    /* What is multicast again comes twice to whom it was not lost, and counts as a repair where it was news. */
    if (total(session, again) > 0) needless = 0;
    if (rank == 0) {
        long needed = (long)repairs - (long)needless;
        printf("repaired %ld, and %llu that came late; the helper worked %llu times\n", needed, needless,
               value(session, helped));
        number answers = value(session, sent) + value(session, again);
        CHECK(argc < 3 || (needed > 0 && answers > 0), "nothing was lost and repaired");
        CHECK(argc < 3 || value(session, helped) > 0, "the helper has not worked");
        printf("correct\n");
    }
    MPI_Finalize();
    return 0;
}
