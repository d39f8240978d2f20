// ranks: 1 2 3
// says: correct
// env: | WEFT_LANES=2 | WEFT_LANES=1 | WEFT_LANES=5 WEFT_CMA=0 WEFT_EAGER=512
//
// Lanes: threads with communicators of their own, and threads that share one. Usual messages, and all others beside them: wildcards,
// probes, cancels, derived types, persistent requests, requests of several communicators in one array, requests that another thread
// waits for, errors, and progress of messages on a communicator for which nobody waits.
#include "check.h"
#include <pthread.h>
#include <unistd.h>

enum { COMMS = 4, TURNS = 300, LONG = 200000 };

static MPI_Comm comms[COMMS], shared;

static int right(void) { return (rank + 1) % size; }
static int left(void) { return (rank + size - 1) % size; }

/* Usual messages of all lengths, which need the lane alone. */
static void usual(MPI_Comm comm, int salt)
{
    int *out = malloc(LONG * sizeof *out), *in = malloc(LONG * sizeof *in);
    for (int i = 0; i < TURNS; i++) {
        int n = i % 50 == 7 ? LONG : 1 + i % 40, flag = 0;
        MPI_Request both[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        MPI_Status status[3];
        for (int k = 0; k < n; k++) out[k] = salt + i + k + rank;
        in[0] = in[n - 1] = -1;
        MPI_Irecv(in, n, MPI_INT, i % 2 ? left() : MPI_ANY_SOURCE, i % 3 ? 5 : MPI_ANY_TAG, comm, &both[0]);
        switch (i % 4) {
        case 0:
            MPI_Isend(out, n, MPI_INT, right(), 5, comm, &both[1]);
            MPI_Waitall(3, both, status);
            CHECK(both[0] == MPI_REQUEST_NULL && both[1] == MPI_REQUEST_NULL);
            break;
        case 1:
            MPI_Send(out, n, MPI_INT, right(), 5, comm);
            MPI_Wait(&both[0], &status[0]);
            break;
        case 2:
            MPI_Isend(out, n, MPI_INT, right(), 5, comm, &both[1]);
            while (!flag) MPI_Test(&both[0], &flag, &status[0]);
            MPI_Wait(&both[1], MPI_STATUS_IGNORE);
            break;
        default:
            MPI_Isend(out, n, MPI_INT, right(), 5, comm, &both[1]);
            while (!flag) MPI_Testall(3, both, &flag, status);
        }
        int got;
        MPI_Get_count(&status[0], MPI_INT, &got);
        CHECK(got == n && status[0].MPI_SOURCE == left() && status[0].MPI_TAG == 5, "%d of %d", got, n);
        CHECK(in[0] == salt + i + left() && in[n - 1] == salt + i + n - 1 + left(), "turn %d", i);
        CHECK(both[0] == MPI_REQUEST_NULL);
    }
    free(out), free(in);
}

/* Blocking receives, and a probe before some of them. */
static void blocking(MPI_Comm comm)
{
    for (int i = 0; i < TURNS; i++) {
        int out = i + rank, in = -1, flag = 0;
        MPI_Request sent;
        MPI_Status status;
        MPI_Message message;
        MPI_Isend(&out, 1, MPI_INT, right(), 6, comm, &sent);
        switch (i % 5) {
        case 0: MPI_Probe(MPI_ANY_SOURCE, 6, comm, &status); break;
        case 1:
            while (!flag) MPI_Iprobe(left(), MPI_ANY_TAG, comm, &flag, &status);
            CHECK(status.MPI_SOURCE == left() && status.MPI_TAG == 6);
            break;
        case 2:
            MPI_Mprobe(left(), 6, comm, &message, &status);
            MPI_Mrecv(&in, 1, MPI_INT, &message, &status);
            break;
        case 3:
            while (!flag) MPI_Improbe(left(), 6, comm, &flag, &message, &status);
            MPI_Request got;
            MPI_Imrecv(&in, 1, MPI_INT, &message, &got);
            MPI_Wait(&got, &status);
        }
        if (i % 5 != 2 && i % 5 != 3) MPI_Recv(&in, 1, MPI_INT, i % 2 ? left() : MPI_ANY_SOURCE, 6, comm, &status);
        CHECK(in == i + left() && status.MPI_SOURCE == left());
        MPI_Wait(&sent, MPI_STATUS_IGNORE);
    }
}

/* Messages that need the main lock, too. */
static void unusual(MPI_Comm comm)
{
    MPI_Datatype column;
    MPI_Type_vector(10, 1, 3, MPI_INT, &column);
    MPI_Type_commit(&column);
    int out[30], in[30], word = rank, other = -1, flag;
    MPI_Request again[2], one, free_one;
    MPI_Status status;
    MPI_Send_init(&word, 1, MPI_INT, right(), 8, comm, &again[0]);
    MPI_Recv_init(&other, 1, MPI_INT, left(), 8, comm, &again[1]);
    for (int i = 0; i < TURNS / 3; i++) {
        for (int k = 0; k < 30; k++) out[k] = i + k + rank, in[k] = -1;
        MPI_Irecv(in, 1, column, left(), 7, comm, &one);
        MPI_Send(out, 1, column, right(), 7, comm);
        MPI_Wait(&one, &status);
        CHECK(in[0] == i + left() && in[1] == -1 && in[27] == i + 27 + left());
        word = i + rank;
        MPI_Startall(2, again);
        MPI_Waitall(2, again, MPI_STATUSES_IGNORE);
        CHECK(other == i + left());
        MPI_Sendrecv(&word, 1, MPI_INT, right(), 9, &other, 1, MPI_INT, left(), 9, comm, &status);
        CHECK(other == i + left() && status.MPI_TAG == 9);
        MPI_Isend(&word, 1, MPI_INT, right(), 10, comm, &free_one);
        MPI_Request_free(&free_one);
        MPI_Recv(&other, 1, MPI_INT, left(), 10, comm, &status);
        CHECK(other == i + left());
        /* A send and a receive as one operation. */
        MPI_Request pair[2];
        int turned = i + rank;
        other = -1;
        MPI_Isendrecv(&word, 1, MPI_INT, right(), 13, &other, 1, MPI_INT, left(), 13, comm, &pair[0]);
        MPI_Isendrecv_replace(&turned, 1, MPI_INT, right(), 14, left(), 14, comm, &pair[1]);
        if (i % 2) MPI_Waitall(2, pair, MPI_STATUSES_IGNORE);
        else
            for (flag = 0; !flag;) MPI_Testall(2, pair, &flag, MPI_STATUSES_IGNORE);
        CHECK(other == i + left() && turned == i + left());
        /* A receive that nobody answers is cancelled. */
        MPI_Irecv(&other, 1, MPI_INT, left(), 11, comm, &one);
        MPI_Request_get_status(one, &flag, MPI_STATUS_IGNORE);
        CHECK(!flag && MPI_Request_f2c(MPI_Request_c2f(one)) == one);
        MPI_Cancel(&one);
        MPI_Wait(&one, &status);
        MPI_Test_cancelled(&status, &flag);
        CHECK(flag);
        /* The receiver's memory is too short. */
        if (i % 10 == 0) {
            MPI_Request two[2];
            MPI_Status both[2];
            MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
            MPI_Irecv(&other, 1, MPI_INT, left(), 12, comm, &two[0]);
            MPI_Isend(out, 30, MPI_INT, right(), 12, comm, &two[1]);
            CHECK(MPI_Waitall(2, two, both) == MPI_ERR_IN_STATUS && class_of(both[0].MPI_ERROR) == MPI_ERR_TRUNCATE);
            MPI_Irecv(&other, 1, MPI_INT, left(), 12, comm, &one);
            MPI_Send(out, 30, MPI_INT, right(), 12, comm);
            FAILS(MPI_Wait(&one, &status), MPI_ERR_TRUNCATE);
            MPI_Isend(out, 30, MPI_INT, right(), 12, comm, &one);
            FAILS(MPI_Recv(&other, 1, MPI_INT, left(), 12, comm, &status), MPI_ERR_TRUNCATE);
            MPI_Wait(&one, MPI_STATUS_IGNORE);
            FAILS(MPI_Send(out, 1, MPI_INT, size, 12, comm), MPI_ERR_RANK);
            FAILS(MPI_Irecv(out, 1, MPI_INT, size, 12, comm, &one), MPI_ERR_RANK);
        }
    }
    MPI_Request_free(&again[0]);
    MPI_Request_free(&again[1]);
    MPI_Type_free(&column);
}

/* Requests of all communicators in one array, with a collective operation among them. */
static void mixed(int tag)
{
    for (int i = 0; i < TURNS / 3; i++) {
        MPI_Request all[2 * COMMS + 2];
        MPI_Status status[2 * COMMS + 2];
        int out[COMMS], in[COMMS], word = rank, other = -1, index, n = 0, done = 0;
        for (int c = 0; c < COMMS; c++) {
            out[c] = i + c + rank;
            MPI_Irecv(&in[c], 1, MPI_INT, left(), tag, comms[c], &all[n++]);
            MPI_Isend(&out[c], 1, MPI_INT, right(), tag, comms[c], &all[n++]);
        }
        MPI_Irecv(&other, 1, MPI_INT, left(), tag, MPI_COMM_WORLD, &all[n++]);
        MPI_Isend(&word, 1, MPI_INT, right(), tag, MPI_COMM_WORLD, &all[n++]);
        switch (i % 3) {
        case 0:
            MPI_Waitall(n, all, status);
            CHECK(status[2].MPI_SOURCE == left() && status[2].MPI_TAG == tag);
            break;
        case 1:
            for (; done < n; done++) {
                MPI_Waitany(n, all, &index, &status[0]);
                CHECK(index >= 0 && index < n && all[index] == MPI_REQUEST_NULL);
            }
            break;
        default:
            while (done < n) {
                int some, which[2 * COMMS + 2];
                MPI_Waitsome(n, all, &some, which, status);
                done += some;
            }
        }
        for (int c = 0; c < COMMS; c++) CHECK(in[c] == i + c + left());
        CHECK(other == left());
    }
}

static void *in_thread(void *argument)
{
    int me = (int)(long)argument;
    usual(comms[me], 1000 * me);
    blocking(comms[me]);
    unusual(comms[me]);
    return NULL;
}

static void *mixes(void *argument)
{
    mixed(100 + (int)(long)argument);
    return NULL;
}

/* Threads that share one communicator, apart by tag. */
static void *beside(void *argument)
{
    int tag = 20 + (int)(long)argument;
    for (int i = 0; i < TURNS; i++) {
        int out = i + tag + rank, in = -1;
        MPI_Request both[2];
        MPI_Irecv(&in, 1, MPI_INT, left(), tag, shared, &both[0]);
        MPI_Isend(&out, 1, MPI_INT, right(), tag, shared, &both[1]);
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
        CHECK(in == i + tag + left());
    }
    return NULL;
}

/* A thread that waits for a request of another thread. */
static MPI_Request handed;

static void *waits(void *argument)
{
    MPI_Status status;
    MPI_Wait(&handed, &status);
    CHECK(status.MPI_SOURCE == left());
    return argument;
}

/* A long message whose sender does nothing more. Its thread is the only one that uses the communicator. */
static MPI_Request long_send;
static int *long_data;

static void *sends_long(void *argument)
{
    MPI_Isend(long_data, LONG, MPI_INT, 1, 1, comms[(long)argument], &long_send);
    return NULL;
}

/* Calls that only test progress the messages of other threads, too: the answer comes when the long message has arrived. */
static void progress_by_tests(void)
{
    long_data = calloc(LONG, sizeof *long_data);
    for (int i = 0; i < 8 && size > 1; i++) {
        MPI_Comm on = i % 2 ? comms[1] : MPI_COMM_WORLD, sent = comms[2 + i % 2];
        int word = -1, flag = 0, index, which[2];
        if (rank == 0) {
            pthread_t thread;
            MPI_Request none = MPI_REQUEST_NULL, answer[2];
            MPI_Status status[2];
            long_data[LONG - 1] = i;
            CHECK(!pthread_create(&thread, NULL, sends_long, (void *)(long)(2 + i % 2)));
            pthread_join(thread, NULL);
            if (i / 2 == 3) {
                while (!flag) MPI_Iprobe(1, 2, on, &flag, MPI_STATUS_IGNORE);
                MPI_Recv(&word, 1, MPI_INT, 1, 2, on, MPI_STATUS_IGNORE);
            } else {
                MPI_Irecv(&word, 1, MPI_INT, 1, 2, on, &answer[0]);
                answer[1] = none;
                while (!flag)
                    switch (i / 2) {
                    case 0: MPI_Test(&answer[0], &flag, status); break;
                    case 1: MPI_Testany(2, answer, &index, &flag, status); break;
                    default: MPI_Testsome(2, answer, &flag, which, status);
                    }
            }
            CHECK(word == i);
            MPI_Wait(&long_send, MPI_STATUS_IGNORE);
        } else if (rank == 1) {
            MPI_Recv(long_data, LONG, MPI_INT, 0, 1, sent, MPI_STATUS_IGNORE);
            CHECK(long_data[LONG - 1] == i);
            MPI_Send(&i, 1, MPI_INT, 0, 2, on);
        }
    }
    free(long_data);
}

static void all(void *(*run)(void *))
{
    pthread_t thread[COMMS];
    for (long i = 0; i < COMMS; i++) CHECK(!pthread_create(&thread[i], NULL, run, (void *)i));
    for (int i = 0; i < COMMS; i++) pthread_join(thread[i], NULL);
}

/* A long message on one communicator moves while the process waits on another one, which is asleep. */
static void progress(void)
{
    int *data = calloc(LONG, sizeof *data), word = 0;
    for (int i = 0; i < 5 && size > 1; i++) {
        MPI_Request request;
        if (rank == 0) {
            data[LONG - 1] = i;
            MPI_Isend(data, LONG, MPI_INT, 1, 1, comms[0], &request);
            MPI_Recv(&word, 1, MPI_INT, 1, 2, i % 2 ? comms[1] : MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else if (rank == 1) {
            usleep(20000);
            MPI_Recv(data, LONG, MPI_INT, 0, 1, comms[0], MPI_STATUS_IGNORE);
            CHECK(data[LONG - 1] == i);
            MPI_Send(&word, 1, MPI_INT, 0, 2, i % 2 ? comms[1] : MPI_COMM_WORLD);
        }
    }
    free(data);
}

int main(int argc, char **argv)
{
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    CHECK(level == MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < COMMS; i++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &shared);
    CHECK(MPI_Comm_f2c(MPI_Comm_c2f(comms[1])) == comms[1]);
    in_thread((void *)0);
    all(in_thread);
    /* No receive of any tag is left when these messages begin. */
    MPI_Barrier(MPI_COMM_WORLD);
    all(mixes);
    all(beside);
    progress();
    progress_by_tests();
    for (int i = 0; i < TURNS; i++) {
        pthread_t thread;
        int out = i, in = -1;
        MPI_Irecv(&in, 1, MPI_INT, left(), 30, comms[i % COMMS], &handed);
        CHECK(!pthread_create(&thread, NULL, waits, NULL));
        MPI_Send(&out, 1, MPI_INT, right(), 30, comms[i % COMMS]);
        pthread_join(thread, NULL);
        CHECK(in == i);
    }
    /* A communicator is freed while a message is under way. */
    for (int i = 0; i < TURNS; i++) {
        MPI_Comm brief;
        MPI_Request both[2];
        int out = i + rank, in = -1;
        MPI_Comm_dup(shared, &brief);
        MPI_Irecv(&in, 1, MPI_INT, left(), 1, brief, &both[0]);
        MPI_Isend(&out, 1, MPI_INT, right(), 1, brief, &both[1]);
        MPI_Comm_free(&brief);
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
        CHECK(in == i + left());
    }
    /* Its error handler serves the operations that end after it was freed. */
    for (int i = 0; i < TURNS / 10; i++) {
        MPI_Comm brief;
        MPI_Request both[2];
        int out[2] = {i, rank}, in = -1;
        MPI_Comm_dup(shared, &brief);
        MPI_Comm_set_errhandler(brief, MPI_ERRORS_RETURN);
        MPI_Irecv(&in, 1, MPI_INT, left(), 1, brief, &both[0]);
        MPI_Isend(out, 2, MPI_INT, right(), 1, brief, &both[1]);
        MPI_Comm_free(&brief);
        FAILS(MPI_Wait(&both[0], MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
        MPI_Wait(&both[1], MPI_STATUS_IGNORE);
    }
    MPI_Barrier(shared);
    for (int i = 0; i < COMMS; i++) MPI_Comm_free(&comms[i]);
    MPI_Comm_free(&shared);
    return end();
}
