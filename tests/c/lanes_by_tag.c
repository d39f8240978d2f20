// ranks: 1 2 3
// says: correct
// env: | WEFT_LANES=2 | WEFT_LANES=1 | WEFT_LANES=0 | WEFT_LANES=5 WEFT_CMA=0 WEFT_EAGER=512
//
// A communicator with mpi_assert_no_any_tag: the tag of a message gives its lane. Threads that use different tags, and threads that
// share tags; all kinds of messages; wildcards for the source; errors; promises that not all ranks make, or that the program breaks.
#include "check.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 4, TURNS = 200, LONG = 100000 };

static MPI_Comm comm;

static int right(void) { return (rank + 1) % size; }
static int left(void) { return (rank + size - 1) % size; }

/* Makes a communicator with the assertion, if this rank promises. */
static MPI_Comm promised(int promise)
{
    MPI_Comm made;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_assert_no_any_tag", promise ? "true" : "false");
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &made);
    MPI_Info_free(&info);
    return made;
}

/* Short and long messages of one tag, in order, with each kind of wait. */
static void usual(int tag)
{
    int *out = malloc(LONG * sizeof *out), *in = malloc(LONG * sizeof *in);
    for (int i = 0; i < TURNS; i++) {
        int n = i % 50 == 7 ? LONG : 1 + i % 40, flag = 0;
        MPI_Request both[2];
        MPI_Status status[2];
        for (int k = 0; k < n; k++) out[k] = tag + i + k + rank;
        in[n - 1] = -1;
        MPI_Irecv(in, n, MPI_INT, i % 2 ? left() : MPI_ANY_SOURCE, tag, comm, &both[0]);
        switch (i % 4) {
        case 0:
            MPI_Isend(out, n, MPI_INT, right(), tag, comm, &both[1]);
            MPI_Waitall(2, both, status);
            break;
        case 1:
            MPI_Ssend(out, n, MPI_INT, right(), tag, comm);
            MPI_Wait(&both[0], &status[0]);
            break;
        case 2:
            MPI_Isend(out, n, MPI_INT, right(), tag, comm, &both[1]);
            while (!flag) MPI_Test(&both[0], &flag, &status[0]);
            MPI_Wait(&both[1], MPI_STATUS_IGNORE);
            break;
        default:
            MPI_Issend(out, n, MPI_INT, right(), tag, comm, &both[1]);
            while (!flag) MPI_Testall(2, both, &flag, status);
        }
        CHECK(status[0].MPI_SOURCE == left() && status[0].MPI_TAG == tag);
        CHECK(in[0] == tag + i + left() && in[n - 1] == tag + i + n - 1 + left(), "turn %d", i);
    }
    free(out), free(in);
}

/* Messages of one tag overtake each other neither within a lane nor between calls of a lane and other calls. */
static void in_order(int tag)
{
    MPI_Datatype pair;
    MPI_Type_vector(2, 1, 2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    for (int i = 0; i < TURNS; i++) {
        int out[3] = {i, -1, rank};
        MPI_Request sent;
        MPI_Isend(out, i % 3 ? 2 : 1, i % 3 ? MPI_INT : pair, right(), tag, comm, &sent);
        MPI_Wait(&sent, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < TURNS; i++) {
        int in[2] = {-1, -1};
        MPI_Status status;
        if (i % 5 == 1) MPI_Probe(left(), tag, comm, &status);
        MPI_Recv(in, 2, MPI_INT, i % 2 ? left() : MPI_ANY_SOURCE, tag, comm, &status);
        CHECK(in[0] == i && (i % 3 || in[1] == left()), "%d for %d", in[0], i);
    }
    MPI_Type_free(&pair);
}

/* Probes, matched probes, persistent requests, exchanges whose halves have different tags, buffered sends, cancels, errors. */
static void unusual(int tag)
{
    int out = 0, in = -1, flag, many[30] = {0};
    MPI_Request again[2], one, two[2];
    MPI_Status status, both[2];
    MPI_Message message;
    MPI_Send_init(&out, 1, MPI_INT, right(), tag, comm, &again[0]);
    MPI_Recv_init(&in, 1, MPI_INT, left(), tag, comm, &again[1]);
    for (int i = 0; i < TURNS / 4; i++) {
        out = i + rank;
        MPI_Startall(2, again);
        MPI_Waitall(2, again, MPI_STATUSES_IGNORE);
        CHECK(in == i + left());
        /* An odd rank sends with another tag than it receives. */
        int mine = tag + 100 * (1 + rank % 2), others = tag + 100 * (1 + left() % 2);
        MPI_Sendrecv(&out, 1, MPI_INT, right(), mine, &in, 1, MPI_INT, left(), others, comm, &status);
        CHECK(in == i + left() && status.MPI_TAG == others);
        in = -1;
        MPI_Isendrecv(&out, 1, MPI_INT, right(), mine, &in, 1, MPI_INT, left(), others, comm, &one);
        MPI_Wait(&one, &status);
        CHECK(in == i + left() && status.MPI_TAG == others);
        in = out;
        MPI_Sendrecv_replace(&in, 1, MPI_INT, right(), mine, left(), others, comm, &status);
        CHECK(in == i + left());
        MPI_Isend(&out, 1, MPI_INT, right(), tag, comm, &one);
        switch (i % 3) {
        case 0:
            MPI_Mprobe(MPI_ANY_SOURCE, tag, comm, &message, &status);
            MPI_Mrecv(&in, 1, MPI_INT, &message, &status);
            break;
        case 1:
            for (flag = 0; !flag;) MPI_Improbe(left(), tag, comm, &flag, &message, &status);
            MPI_Imrecv(&in, 1, MPI_INT, &message, &two[0]);
            MPI_Wait(&two[0], &status);
            break;
        default:
            for (flag = 0; !flag;) MPI_Iprobe(left(), tag, comm, &flag, &status);
            MPI_Recv(&in, 1, MPI_INT, left(), tag, comm, &status);
        }
        CHECK(in == i + left() && status.MPI_SOURCE == left() && status.MPI_TAG == tag);
        MPI_Wait(&one, MPI_STATUS_IGNORE);
        MPI_Isend(&out, 1, MPI_INT, right(), tag, comm, &one);
        MPI_Request_free(&one);
        MPI_Recv(&in, 1, MPI_INT, left(), tag, comm, &status);
        /* A receive that nobody answers is cancelled. */
        MPI_Irecv(&in, 1, MPI_INT, left(), tag + 300, comm, &one);
        CHECK(MPI_Request_f2c(MPI_Request_c2f(one)) == one);
        MPI_Cancel(&one);
        MPI_Wait(&one, &status);
        MPI_Test_cancelled(&status, &flag);
        CHECK(flag);
        /* The receiver's memory is too short. */
        MPI_Irecv(&in, 1, MPI_INT, left(), tag, comm, &two[0]);
        MPI_Isend(many, 30, MPI_INT, right(), tag, comm, &two[1]);
        CHECK(MPI_Waitall(2, two, both) == MPI_ERR_IN_STATUS && class_of(both[0].MPI_ERROR) == MPI_ERR_TRUNCATE);
        FAILS(MPI_Send(many, 1, MPI_INT, size, tag, comm), MPI_ERR_RANK);
        FAILS(MPI_Send(many, 1, MPI_INT, right(), -5, comm), MPI_ERR_TAG);
        MPI_Send(many, 1, MPI_INT, MPI_PROC_NULL, tag, comm);
        MPI_Recv(many, 1, MPI_INT, MPI_PROC_NULL, tag, comm, &status);
        CHECK(status.MPI_SOURCE == MPI_PROC_NULL);
    }
    MPI_Request_free(&again[0]);
    MPI_Request_free(&again[1]);
}

static void *in_thread(void *argument)
{
    int tag = (int)(long)argument;
    usual(tag);
    in_order(tag);
    unusual(tag);
    return NULL;
}

/* All threads use all tags, and wait for requests of several lanes in one array. */
static void *mixes(void *argument)
{
    int first = 1000 + 10 * (int)(long)argument;
    for (int i = 0; i < TURNS; i++) {
        MPI_Request all[2 * THREADS];
        int out[THREADS], in[THREADS], n = 0, done = 0, index;
        for (int t = 0; t < THREADS; t++) {
            out[t] = i + t + rank;
            MPI_Irecv(&in[t], 1, MPI_INT, left(), first + t, comm, &all[n++]);
            MPI_Isend(&out[t], 1, MPI_INT, right(), first + t, comm, &all[n++]);
        }
        if (i % 2) MPI_Waitall(n, all, MPI_STATUSES_IGNORE);
        else
            for (; done < n; done++) MPI_Waitany(n, all, &index, MPI_STATUS_IGNORE);
        for (int t = 0; t < THREADS; t++) CHECK(in[t] == i + t + left());
    }
    return NULL;
}

static void all(void *(*run)(void *))
{
    pthread_t thread[THREADS];
    for (long i = 0; i < THREADS; i++) CHECK(!pthread_create(&thread[i], NULL, run, (void *)i));
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
}

/* A long message of one tag moves while the process waits for a message of another tag. */
static void progress(void)
{
    int *data = calloc(LONG, sizeof *data), word = 0;
    for (int i = 0; i < 5 && size > 1; i++) {
        MPI_Request request;
        if (rank == 0) {
            data[LONG - 1] = i;
            MPI_Isend(data, LONG, MPI_INT, 1, i, comm, &request);
            MPI_Recv(&word, 1, MPI_INT, 1, i + 1, comm, MPI_STATUS_IGNORE);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else if (rank == 1) {
            usleep(10000);
            MPI_Recv(data, LONG, MPI_INT, 0, i, comm, MPI_STATUS_IGNORE);
            CHECK(data[LONG - 1] == i);
            MPI_Send(&word, 1, MPI_INT, 0, i + 1, comm);
        }
    }
    free(data);
}

/* Tries a receive of any tag, for which a message is there. Returns 1 if it is an error, and 0 if it receives. */
static int refused(MPI_Comm on)
{
    int out = 5, in = -1;
    MPI_Request one;
    MPI_Status status;
    MPI_Comm_set_errhandler(on, MPI_ERRORS_RETURN);
    MPI_Isend(&out, 1, MPI_INT, rank, 3, on, &one);
    int code = MPI_Recv(&in, 1, MPI_INT, rank, MPI_ANY_TAG, on, &status);
    if (code) {
        MPI_Request receive;
        int flag;
        CHECK(class_of(code) == MPI_ERR_TAG);
        FAILS(MPI_Irecv(&in, 1, MPI_INT, rank, MPI_ANY_TAG, on, &receive), MPI_ERR_TAG);
        FAILS(MPI_Recv_init(&in, 1, MPI_INT, rank, MPI_ANY_TAG, on, &receive), MPI_ERR_TAG);
        FAILS(MPI_Probe(rank, MPI_ANY_TAG, on, &status), MPI_ERR_TAG);
        FAILS(MPI_Iprobe(rank, MPI_ANY_TAG, on, &flag, &status), MPI_ERR_TAG);
        FAILS(MPI_Sendrecv(&out, 1, MPI_INT, rank, 4, &in, 1, MPI_INT, rank, MPI_ANY_TAG, on, &status), MPI_ERR_TAG);
        MPI_Recv(&in, 1, MPI_INT, rank, 3, on, &status);
    }
    MPI_Wait(&one, MPI_STATUS_IGNORE);
    CHECK(in == 5 && status.MPI_TAG == 3);
    return code != 0;
}

/* The assertion stays where it decides how messages travel, and MPI_Comm_get_info says so. */
static void keeps_its_promise(int by_tag)
{
    MPI_Info info;
    char value[8] = "";
    int length = sizeof value, flag = 0;
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_assert_no_any_tag", "false");
    MPI_Comm_set_info(comm, info);
    MPI_Info_free(&info);
    MPI_Comm_get_info(comm, &info);
    MPI_Info_get_string(info, "mpi_assert_no_any_tag", &length, value, &flag);
    CHECK(flag && !strcmp(value, by_tag ? "true" : "false"), "%s", value);
    MPI_Info_free(&info);
}

int main(int argc, char **argv)
{
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    CHECK(level == MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    comm = promised(1);
    /* The assertion decides if there are lanes, and only if all ranks give it. */
    const char *lanes = getenv("WEFT_LANES");
    int by_tag = !lanes || strcmp(lanes, "0");
    CHECK(refused(comm) == by_tag, "by tag: %d", by_tag);
    MPI_Comm others[4] = {promised(rank == 0 && size > 1), promised(0), MPI_COMM_NULL, MPI_COMM_NULL};
    MPI_Comm_dup(comm, &others[2]);
    MPI_Comm_split(comm, 0, -rank, &others[3]);
    for (int i = 0; i < 4; i++) {
        CHECK(!refused(others[i]), "communicator %d", i);
        MPI_Comm_free(&others[i]);
    }
    CHECK(MPI_Comm_f2c(MPI_Comm_c2f(comm)) == comm);
    keeps_its_promise(by_tag);
    in_thread((void *)0);
    all(in_thread);
    all(mixes);
    progress();
    int sum = 0;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    CHECK(sum == size * (size - 1) / 2);
    /* A communicator is freed while messages of two tags are under way. Its error handler serves the operations that end later. */
    for (int i = 0; i < TURNS / 10; i++) {
        MPI_Comm brief = promised(1);
        MPI_Request both[4];
        int out[2] = {i, rank}, in[2] = {-1, -1};
        MPI_Comm_set_errhandler(brief, MPI_ERRORS_RETURN);
        MPI_Irecv(&in[0], 1, MPI_INT, left(), 1, brief, &both[0]);
        MPI_Irecv(&in[1], 1, MPI_INT, left(), 2, brief, &both[1]);
        MPI_Isend(out, 1, MPI_INT, right(), 1, brief, &both[2]);
        MPI_Isend(out, 2, MPI_INT, right(), 2, brief, &both[3]);
        MPI_Comm_free(&brief);
        FAILS(MPI_Wait(&both[1], MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
        MPI_Wait(&both[0], MPI_STATUS_IGNORE);
        MPI_Waitall(2, &both[2], MPI_STATUSES_IGNORE);
        CHECK(in[0] == i);
    }
    MPI_Comm_free(&comm);
    return end();
}
