/* Objects of each kind are made until there are no more: an error comes that says how many there are, the same on all
 * ranks where it takes all of them, and the library works on when some are freed. */
// ranks: 1 3
// says: correct
// env: WEFT_OBJECTS=100 | WEFT_OBJECTS=100 WEFT_SHARED_COMMS=5

#include "check.h"

#define MOST 100
static MPI_Comm world, comms[MOST + 1];

/* The call found no room, and says why. */
static void full(int code, const char *words)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    CHECK(class_of(code) == MPI_ERR_NO_MEM, "class %d", class_of(code));
    MPI_Error_string(code, text, &length);
    CHECK(strstr(text, words), "'%s' lacks '%s'", text, words);
}

/* All ranks see the same number. */
static int agreed(int number)
{
    int ends[2] = {number, -number};
    MPI_Allreduce(MPI_IN_PLACE, ends, 2, MPI_INT, MPI_MAX, world);
    CHECK(ends[0] == -ends[1], "%d here, others up to %d", number, ends[0]);
    return number;
}

/* A communicator works: short and longer data, all kinds of shared memory. */
static void works(MPI_Comm comm)
{
    static int data[8192];
    int sum = -1, count;
    MPI_Comm_size(comm, &count);
    MPI_Barrier(comm);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    CHECK(count != size || sum == size * (size - 1) / 2, "%d", sum);
    int me;
    MPI_Comm_rank(comm, &me);
    for (int i = 0; i < 8192; i++) data[i] = me == 0 ? i : -1;
    MPI_Bcast(data, 8192, MPI_INT, 0, comm);
    for (int i = 0; i < 8192; i++) CHECK(data[i] == i);
}

/* At least one is missing at rank 0, and at the others if `everywhere`: nobody gets any, by any call. */
static void no_communicator(int everywhere)
{
    const char *words = everywhere || rank == 0 ? "communicators, which is the most" : "process 0 of the world";
    MPI_Comm made, other;
    MPI_Request request;
    MPI_Group group;
    int dims[1] = {size}, around[1] = {0}, code;
    full(MPI_Comm_dup(world, &made), words);
    full(MPI_Comm_split(world, 0, rank, &made), words);
    MPI_Comm_group(world, &group);
    full(MPI_Comm_create(world, group, &made), words);
    full(MPI_Comm_create_group(world, group, 3, &made), words);
    full(MPI_Comm_create_from_group(group, "weft://full", MPI_INFO_NULL, MPI_ERRORS_RETURN, &made), words);
    MPI_Group_free(&group);
    full(MPI_Cart_create(world, 1, dims, around, 0, &made), words);
    code = MPI_Comm_idup(world, &made, &request);
    full(code == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code, words);
    if (size > 1 && !everywhere) {
        /* A side that rank 0 is not in has room for itself, and none for what concerns both. */
        CHECK(MPI_Comm_split(world, rank ? 1 : MPI_UNDEFINED, 0, &other) == MPI_SUCCESS);
        MPI_Comm local = rank ? other : MPI_COMM_SELF;
        full(MPI_Intercomm_create(local, 0, world, rank ? 0 : 1, 4, &made), words);
        if (rank) MPI_Comm_free(&other);
    }
}

static void communicators(void)
{
    int made = 0, code;
    for (int round = 0; round < 2; round++) {
        while ((code = MPI_Comm_dup(world, &comms[made])) == MPI_SUCCESS) {
            if (made % 9 == 0) works(comms[made]);
            if (++made > MOST) break;
        }
        CHECK(agreed(made) == MOST - 1, "%d, beside the one that this program works on", made);
        full(code, "there are 100 communicators, which is the most");
        no_communicator(1);
        /* Some are freed, others are made, and all that there are work. */
        for (int i = 0; i < 5; i++) MPI_Comm_free(&comms[--made]);
        works(comms[made - 1]);
    }
    while (made) MPI_Comm_free(&comms[--made]);
    /* Rank 0 alone has none left. */
    if (rank == 0)
        while (MPI_Comm_dup(MPI_COMM_SELF, &comms[made]) == MPI_SUCCESS) made++;
    no_communicator(size == 1);
    works(world);
    while (made) MPI_Comm_free(&comms[--made]);
    CHECK(MPI_Comm_dup(world, comms) == MPI_SUCCESS);
    works(comms[0]);
    MPI_Comm_free(comms);
}

static void windows(void)
{
    MPI_Win wins[MOST + 1], win;
    int made = 0, code, *base, seen = -1;
    while ((code = MPI_Win_allocate(4, 4, MPI_INFO_NULL, world, &base, &wins[made])) == MPI_SUCCESS)
        if (++made > MOST) break;
    CHECK(agreed(made) >= MOST - 1 && made <= MOST, "%d", made);
    full(code, "which is the most");
    full(MPI_Win_create(&made, 4, 4, MPI_INFO_NULL, world, &win), "which is the most");
    full(MPI_Win_create_dynamic(MPI_INFO_NULL, world, &win), "which is the most");
    for (int i = 0; i < 3; i++) MPI_Win_free(&wins[--made]);
    CHECK(MPI_Win_allocate(4, 4, MPI_INFO_NULL, world, &base, &wins[made++]) == MPI_SUCCESS);
    *base = rank;
    MPI_Win_fence(0, wins[made - 1]);
    MPI_Get(&seen, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, wins[made - 1]);
    MPI_Win_fence(0, wins[made - 1]);
    CHECK(seen == (rank + 1) % size);
    while (made) MPI_Win_free(&wins[--made]);
}

static void requests(void)
{
    MPI_Request all[MOST + 1], more;
    int made = 0, code, into[MOST + 1], one = 7, flag;
    MPI_Message message;
    while ((code = MPI_Irecv(&into[made], 1, MPI_INT, rank, made, world, &all[made])) == MPI_SUCCESS)
        if (++made > MOST) break;
    CHECK(made == MOST, "%d", made);
    full(code, "there are 100 requests, which is the most");
    full(MPI_Isend(&one, 1, MPI_INT, rank, 0, world, &more), "100 requests");
    full(MPI_Ibarrier(world, &more), "100 requests");
    full(MPI_Send_init(&one, 1, MPI_INT, rank, 0, world, &more), "100 requests");
    full(MPI_Ibcast(&one, 1, MPI_INT, 0, world, &more), "100 requests");
    full(MPI_Barrier_init(world, MPI_INFO_NULL, &more), "100 requests");
    full(MPI_Psend_init(&one, 1, 1, MPI_INT, rank, 0, world, MPI_INFO_NULL, &more), "100 requests");
    /* None of these has begun: nobody else waits for them, and nothing was sent. */
    MPI_Testall(1, all, &flag, MPI_STATUSES_IGNORE);
    CHECK(!flag);
    MPI_Send(&one, 1, MPI_INT, rank, 40, world);
    MPI_Wait(&all[40], MPI_STATUS_IGNORE);
    CHECK(into[40] == 7);
    CHECK(MPI_Ibarrier(world, &all[40]) == MPI_SUCCESS);
    MPI_Wait(&all[40], MPI_STATUS_IGNORE);
    for (int i = 0; i < made; i++) {
        if (i == 40) continue;
        MPI_Cancel(&all[i]);
        MPI_Wait(&all[i], MPI_STATUS_IGNORE);
    }
    /* Messages that were taken and not received. */
    MPI_Message taken[MOST + 1];
    for (int i = 0; i <= MOST; i++) MPI_Send(&i, 1, MPI_INT, rank, 5, world);
    made = 0;
    while ((code = MPI_Mprobe(rank, 5, world, &taken[made], MPI_STATUS_IGNORE)) == MPI_SUCCESS)
        if (++made > MOST) break;
    CHECK(made == MOST);
    full(code, "100 messages");
    full(MPI_Improbe(rank, 5, world, &flag, &message, MPI_STATUS_IGNORE), "100 messages");
    for (int i = 0; i < made; i++) {
        MPI_Mrecv(&one, 1, MPI_INT, &taken[i], MPI_STATUS_IGNORE);
        CHECK(one == i);
    }
    MPI_Recv(&one, 1, MPI_INT, rank, 5, world, MPI_STATUS_IGNORE);
    CHECK(one == MOST, "the one that found no room is still there");
}

static void add(void *in, void *out, int *count, MPI_Datatype *type)
{
    (void)in, (void)out, (void)count, (void)type;
}

static void handler(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
}

/* Makes objects of one kind until there are no more, frees some, and makes others. */
#define SOME(kind, make, take, words)                                      \
    do {                                                                   \
        kind some[MOST + 1];                                               \
        int made = 0, code;                                                \
        for (int round = 0; round < 3; round++) {                          \
            for (;;) {                                                     \
                kind *one = &some[made];                                   \
                if ((code = make) != MPI_SUCCESS || ++made > MOST) break;  \
            }                                                              \
            CHECK(made <= MOST && made >= MOST - 3, "%d " words, made);    \
            full(code, "there are 100 " words ", which is the most");      \
            for (int i = 0; i < 40; i++) {                                 \
                kind *one = &some[--made];                                 \
                CHECK(take == MPI_SUCCESS);                                \
            }                                                              \
        }                                                                  \
        while (made) {                                                     \
            kind *one = &some[--made];                                     \
            CHECK(take == MPI_SUCCESS);                                    \
        }                                                                  \
    } while (0)

static void others(void)
{
    MPI_Group all;
    int first = 0;
    MPI_Comm_group(world, &all);
    SOME(MPI_Group, MPI_Group_incl(all, 1, &first, one), MPI_Group_free(one), "groups");
    SOME(MPI_Group, MPI_Comm_group(world, one), MPI_Group_free(one), "groups");
    MPI_Group_free(&all);
    SOME(MPI_Datatype, MPI_Type_contiguous(3, MPI_INT, one), MPI_Type_free(one), "datatypes");
    SOME(MPI_Datatype, MPI_Type_dup(MPI_INT, one), MPI_Type_free(one), "datatypes");
    SOME(MPI_Op, MPI_Op_create(add, 1, one), MPI_Op_free(one), "operators");
    SOME(MPI_Info, MPI_Info_create(one), MPI_Info_free(one), "info objects");
    SOME(MPI_Info, MPI_Comm_get_info(world, one), MPI_Info_free(one), "info objects");
    SOME(MPI_Errhandler, MPI_Comm_create_errhandler(handler, one), MPI_Errhandler_free(one), "error handlers");
    SOME(MPI_Session, MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, one), MPI_Session_finalize(one), "sessions");
}

/* Keys, classes, codes and strings are numbers: very many may be made. */
static void numbers(void)
{
    int key, class, code;
    for (int i = 0; i < 20000; i++) {
        CHECK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL) == MPI_SUCCESS);
        CHECK(MPI_Comm_free_keyval(&key) == MPI_SUCCESS);
    }
    for (int i = 0; i < 1000; i++) {
        CHECK(MPI_Add_error_class(&class) == MPI_SUCCESS);
        CHECK(MPI_Add_error_code(class, &code) == MPI_SUCCESS);
        CHECK(class_of(code) == class);
    }
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_WORLD, &world);
    communicators();
    windows();
    requests();
    others();
    numbers();
    MPI_Comm_free(&world);
    return end();
}
