// ranks: 2 3
// env: | WEFT_CMA=0 | WEFT_CREDIT=4096 | WEFT_FAULT=seed=7,message_delay=0.3,completion_delay=0.3,reorder=1 | WEFT_PROGRESS=handover
// says: correct
//
// Partitioned communication (MPI 5.0, chapter 4), from rank 0 to rank 1 and within each.
#include "check.h"

#define WORLD MPI_COMM_WORLD

static int value(int at, int round) { return at * 31 + round * 1009 + 7; }

static void go(int to, int tag) { MPI_Send(NULL, 0, MPI_INT, to, tag, WORLD); }
static void await(int from, int tag) { MPI_Recv(NULL, 0, MPI_INT, from, tag, WORLD, MPI_STATUS_IGNORE); }

static int arrived(MPI_Request request, int partition)
{
    int flag = -1;
    MPI_Parrived(request, partition, &flag);
    CHECK(flag == 0 || flag == 1, "%d", flag);
    return flag;
}

/* `senders` partitions become `receivers` ones of `ints` integers in all, in three rounds: marked in
 * reverse, one by one. A partition is there as soon as its bytes are, and not before. */
static void layouts(int senders, int receivers, int ints, int gaps)
{
    int *data = malloc((2 * ints + 1) * sizeof *data);
    MPI_Request request;
    MPI_Status status;
    MPI_Datatype type = MPI_INT;
    int step = gaps ? 2 : 1;
    if (gaps) { /* every other integer */
        MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &type);
        MPI_Type_commit(&type);
    }
    if (rank == 0) {
        int each = ints / senders;
        MPI_Psend_init(data, senders, each, type, 1, 5, WORLD, MPI_INFO_NULL, &request);
        for (int round = 0; round < 3; round++) {
            await(1, 1);
            MPI_Start(&request);
            for (int p = senders - 1; p >= 0; p--) {
                for (int i = p * each; i < (p + 1) * each; i++) data[step * i] = value(i, round);
                MPI_Pready(p, request);
                go(1, 2);
                await(1, 3);
            }
            MPI_Wait(&request, &status);
            CHECK(request != MPI_REQUEST_NULL);
        }
        MPI_Request_free(&request);
    } else if (rank == 1) {
        int each = ints / receivers, got;
        MPI_Precv_init(data, receivers, each, type, 0, 5, WORLD, MPI_INFO_NULL, &request);
        for (int p = 0; p < receivers; p++) CHECK(arrived(request, p), "not started");
        for (int round = 0; round < 3; round++) {
            for (int i = 0; i < 2 * ints + 1; i++) data[i] = -1;
            MPI_Start(&request);
            for (int p = 0; p < receivers; p++) CHECK(!arrived(request, p), "round %d", round);
            go(0, 1);
            for (int s = senders - 1; s >= 0; s--) {
                await(0, 2);
                for (int p = 0; p < receivers; p++) {
                    /* Ends of both in units of which the whole has senders * receivers. */
                    int complete = p * senders >= s * receivers;
                    if (!complete) {
                        CHECK(!arrived(request, p), "partition %d after %d of %d", p, s, senders);
                        continue;
                    }
                    while (!arrived(request, p)) {}
                    CHECK(arrived(request, p), "it stays so");
                    for (int i = p * each; i < (p + 1) * each; i++)
                        CHECK(data[step * i] == value(i, round), "%d of %d", i, ints);
                }
                go(0, 3);
            }
            MPI_Wait(&request, &status);
            MPI_Get_count(&status, type, &got);
            CHECK(status.MPI_SOURCE == 0 && status.MPI_TAG == 5 && got == ints, "%d", got);
            for (int i = 0; i < ints; i++) {
                CHECK(data[step * i] == value(i, round), "%d of %d", i, ints);
                CHECK(!gaps || data[2 * i + 1] == -1, "a gap was written");
            }
            CHECK(data[step * ints] == -1, "written behind the end");
        }
        MPI_Request_free(&request);
        CHECK(request == MPI_REQUEST_NULL);
    }
    if (gaps) MPI_Type_free(&type);
    free(data);
}

/* Pairs of one tag match in the order in which they were made, whatever the order of starts, and
 * also if one was freed unused. Ordinary receives take none of it. */
static void order(void)
{
    int data[4] = {-1, -1, -1, -1}, ordinary = -1, flag;
    MPI_Request requests[4], wild;
    for (int i = 0; i < 4; i++) {
        data[i] = rank == 0 ? 100 + i : -1;
        if (rank == 0)
            MPI_Psend_init(&data[i], 1, 1, MPI_INT, 1, 9, WORLD, MPI_INFO_NULL, &requests[i]);
        else if (rank == 1)
            MPI_Precv_init(&data[i], 1, 1, MPI_INT, 0, 9, WORLD, MPI_INFO_NULL, &requests[i]);
    }
    if (rank > 1) return;
    MPI_Request_free(&requests[1]);
    if (rank == 0) {
        int other = 55;
        MPI_Start(&requests[3]);
        MPI_Start(&requests[0]);
        MPI_Start(&requests[2]);
        MPI_Pready(0, requests[0]);
        MPI_Pready(0, requests[3]);
        MPI_Pready(0, requests[2]);
        await(1, 4);
        MPI_Send(&other, 1, MPI_INT, 1, 9, WORLD);
        for (int i = 0; i < 4; i++) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    } else {
        MPI_Irecv(&ordinary, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, &wild);
        int numbers[] = {0, 2, 3};
        for (int k = 0; k < 3; k++) {
            MPI_Start(&requests[numbers[k]]);
            MPI_Wait(&requests[numbers[k]], MPI_STATUS_IGNORE);
        }
        CHECK(data[0] == 100 && data[1] == -1 && data[2] == 102 && data[3] == 103);
        MPI_Test(&wild, &flag, MPI_STATUS_IGNORE);
        CHECK(!flag && ordinary == -1, "an ordinary receive took a partition");
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, &flag, MPI_STATUS_IGNORE);
        CHECK(!flag, "a probe found a partition");
        go(0, 4);
        MPI_Wait(&wild, MPI_STATUS_IGNORE);
        CHECK(ordinary == 55);
    }
    for (int i = 0; i < 4; i++)
        if (i != 1) MPI_Request_free(&requests[i]);
}

/* Ranges, lists, the forms with large counts, MPI_Startall and MPI_Waitall, and many partitions, of
 * which the sender marks some before the receiver starts. */
static void many(int partitions, int ints)
{
    int *data = calloc((size_t)partitions * ints, sizeof *data);
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    if (rank == 0) {
        MPI_Psend_init_c(data, partitions, ints, MPI_INT, 1, 0, WORLD, MPI_INFO_NULL, &requests[0]);
        for (int i = 0; i < partitions * ints; i++) data[i] = value(i, 0);
        MPI_Start(&requests[0]);
        MPI_Pready_range(partitions / 2, partitions - 1, requests[0]);
        int *list = malloc(partitions * sizeof *list), length = 0, flag;
        for (int p = partitions / 2 - 1; p >= 0; p--) list[length++] = p;
        MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
        CHECK(!flag, "over before all are ready");
        MPI_Pready_list(0, NULL, requests[0]);
        go(1, 1);
        MPI_Pready_list(length, list, requests[0]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        free(list);
        MPI_Request_free(&requests[0]);
    } else if (rank == 1) {
        await(0, 1);
        MPI_Precv_init_c(data, partitions, ints, MPI_INT, 0, 0, WORLD, MPI_INFO_NULL, &requests[0]);
        MPI_Startall(1, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < partitions * ints; i++) CHECK(data[i] == value(i, 0), "%d", i);
        MPI_Request_free(&requests[0]);
    }
    free(data);
}

/* Both ends in one process, in both orders of making, with all ways to see the end. */
static void oneself(void)
{
    for (int how = 0; how < 4; how++) {
        long out[6] = {1, 2, 3, 4, 5, 6}, in[6] = {0};
        int flag = 0;
        MPI_Request requests[2];
        MPI_Status status;
        for (int i = 0; i < 2; i++) {
            if (i == how % 2)
                MPI_Psend_init(out, 3, 2, MPI_LONG, 0, 1, MPI_COMM_SELF, MPI_INFO_NULL, &requests[0]);
            else
                MPI_Precv_init(in, 2, 3, MPI_LONG, 0, 1, MPI_COMM_SELF, MPI_INFO_NULL, &requests[1]);
        }
        MPI_Startall(2, requests);
        MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE);
        CHECK(!flag);
        MPI_Pready(2, requests[0]);
        while (how > 1 && !arrived(requests[1], 1) && in[4] != 5) {}
        CHECK(!arrived(requests[1], 0));
        MPI_Request_get_status(requests[1], &flag, &status);
        CHECK(!flag);
        MPI_Pready_range(0, 1, requests[0]);
        if (how == 0) {
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        } else {
            while (flag = 0, MPI_Request_get_status(requests[1], &flag, &status), !flag) {}
            CHECK(status.MPI_SOURCE == 0 && status.MPI_TAG == 1);
            while (flag = 0, MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE), !flag) {}
        }
        for (int i = 0; i < 6; i++) CHECK(in[i] == i + 1, "%ld", in[i]);
        MPI_Request_free(&requests[0]);
        MPI_Request_free(&requests[1]);
    }
}

static void nobody(void)
{
    int data[2] = {3, 4};
    MPI_Request send, receive;
    MPI_Status status;
    MPI_Psend_init(data, 2, 1, MPI_INT, MPI_PROC_NULL, 0, WORLD, MPI_INFO_NULL, &send);
    MPI_Precv_init(data, 2, 1, MPI_INT, MPI_PROC_NULL, 0, WORLD, MPI_INFO_NULL, &receive);
    for (int round = 0; round < 2; round++) {
        MPI_Start(&send);
        MPI_Start(&receive);
        MPI_Pready_range(0, 1, send);
        CHECK(arrived(receive, 1));
        MPI_Wait(&send, MPI_STATUS_IGNORE);
        MPI_Wait(&receive, &status);
        CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG);
        CHECK(data[0] == 3 && data[1] == 4);
    }
    MPI_Request_free(&send);
    MPI_Request_free(&receive);
}

static void mistakes(void)
{
    int data[8] = {0}, flag;
    MPI_Request send, receive, other = MPI_REQUEST_NULL, bad;
    MPI_Comm self = MPI_COMM_SELF;
    int same[] = {1, 1}, beyond[] = {0, 4};
    MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(self, MPI_ERRORS_RETURN);

    FAILS(MPI_Psend_init(data, 0, 1, MPI_INT, 0, 0, self, MPI_INFO_NULL, &bad), MPI_ERR_ARG);
    FAILS(MPI_Psend_init(data, 1, -1, MPI_INT, 0, 0, self, MPI_INFO_NULL, &bad), MPI_ERR_COUNT);
    FAILS(MPI_Psend_init(MPI_BOTTOM, 1, 1, MPI_INT, 0, 0, self, MPI_INFO_NULL, &bad), MPI_ERR_BUFFER);
    FAILS(MPI_Psend_init(data, 1, 1, MPI_INT, 1, 0, self, MPI_INFO_NULL, &bad), MPI_ERR_RANK);
    FAILS(MPI_Psend_init(data, 1, 1, MPI_INT, 0, -5, self, MPI_INFO_NULL, &bad), MPI_ERR_TAG);
    FAILS(MPI_Psend_init(data, 1, 1, MPI_INT, 0, 0, self, MPI_INFO_NULL, NULL), MPI_ERR_ARG);
    FAILS(MPI_Precv_init(data, 1, 1, MPI_INT, MPI_ANY_SOURCE, 0, self, MPI_INFO_NULL, &bad), MPI_ERR_RANK);
    FAILS(MPI_Precv_init(data, 1, 1, MPI_INT, 0, MPI_ANY_TAG, self, MPI_INFO_NULL, &bad), MPI_ERR_TAG);
    FAILS(MPI_Precv_init(data, -2, 1, MPI_INT, 0, 0, self, MPI_INFO_NULL, &bad), MPI_ERR_ARG);
    FAILS(MPI_Precv_init_c(data, 2, INT64_MAX, MPI_INT, 0, 0, self, MPI_INFO_NULL, &bad), MPI_ERR_COUNT);

    MPI_Psend_init(data, 4, 1, MPI_INT, 0, 0, self, MPI_INFO_NULL, &send);
    MPI_Precv_init(data + 4, 4, 1, MPI_INT, 0, 0, self, MPI_INFO_NULL, &receive);
    FAILS(MPI_Pready(0, send), MPI_ERR_REQUEST); /* not started */
    FAILS(MPI_Pready_range(0, 3, send), MPI_ERR_REQUEST);
    FAILS(MPI_Pready_list(2, beyond, send), MPI_ERR_REQUEST);
    FAILS(MPI_Pready(0, receive), MPI_ERR_REQUEST);
    FAILS(MPI_Pready(0, MPI_REQUEST_NULL), MPI_ERR_REQUEST);
    FAILS(MPI_Parrived(send, 0, &flag), MPI_ERR_REQUEST);
    FAILS(MPI_Parrived(receive, 4, &flag), MPI_ERR_ARG);
    FAILS(MPI_Parrived(receive, 0, NULL), MPI_ERR_ARG);
    CHECK(arrived(MPI_REQUEST_NULL, 0), "of the null request");
    MPI_Start(&send);
    MPI_Start(&receive);
    FAILS(MPI_Start(&send), MPI_ERR_REQUEST);
    FAILS(MPI_Pready(4, send), MPI_ERR_ARG);
    FAILS(MPI_Pready(-1, send), MPI_ERR_ARG);
    FAILS(MPI_Pready_range(2, 1, send), MPI_ERR_ARG);
    FAILS(MPI_Pready_range(0, 4, send), MPI_ERR_ARG);
    FAILS(MPI_Pready_list(2, same, send), MPI_ERR_ARG);
    FAILS(MPI_Pready_list(2, beyond, send), MPI_ERR_ARG);
    FAILS(MPI_Pready_list(-1, beyond, send), MPI_ERR_COUNT);
    FAILS(MPI_Pready_list(1, NULL, send), MPI_ERR_ARG);
    MPI_Pready(1, send);
    FAILS(MPI_Pready(1, send), MPI_ERR_ARG);
    FAILS(MPI_Pready_range(0, 3, send), MPI_ERR_ARG);
    FAILS(MPI_Cancel(&send), MPI_ERR_REQUEST);
    FAILS(MPI_Cancel(&receive), MPI_ERR_REQUEST);
    FAILS(MPI_Request_free(&send), MPI_ERR_REQUEST);
    FAILS(MPI_Request_free(&receive), MPI_ERR_REQUEST);
    /* What failed marked nothing. */
    CHECK(!arrived(receive, 0) && !arrived(receive, 2) && !arrived(receive, 3));
    MPI_Irecv(data, 1, MPI_INT, 0, 77, self, &other);
    FAILS(MPI_Pready(0, other), MPI_ERR_REQUEST);
    FAILS(MPI_Parrived(other, 0, &flag), MPI_ERR_REQUEST);
    MPI_Cancel(&other);
    MPI_Wait(&other, MPI_STATUS_IGNORE);
    MPI_Pready(0, send);
    MPI_Pready_range(2, 3, send);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    FAILS(MPI_Pready(0, send), MPI_ERR_REQUEST);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    MPI_Request_free(&send);
    MPI_Request_free(&receive);

    /* Both sides must have the same number of bytes. */
    for (int more = 0; more < 2; more++) {
        MPI_Psend_init(data, 2, 1 + more, MPI_INT, 0, 0, self, MPI_INFO_NULL, &send);
        MPI_Precv_init(data + 4, 3, 1, MPI_INT, 0, 0, self, MPI_INFO_NULL, &receive);
        MPI_Start(&receive);
        FAILS(MPI_Wait(&receive, MPI_STATUS_IGNORE), more ? MPI_ERR_TRUNCATE : MPI_ERR_COUNT);
        CHECK(receive != MPI_REQUEST_NULL);
        MPI_Request_free(&send);
        MPI_Request_free(&receive);
    }
    MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(self, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    oneself();
    nobody();
    mistakes();
    static const int pairs[][2] = {{1, 1}, {4, 4}, {3, 2}, {2, 3}, {1, 6}, {6, 1}, {12, 8}, {7, 5}};
    for (unsigned i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        int s = pairs[i][0], r = pairs[i][1];
        for (int gaps = 0; gaps < 2; gaps++) {
            layouts(s, r, s * r, gaps);
            layouts(s, r, s * r * 2000, gaps);
            layouts(s, r, 0, gaps);
        }
    }
    order();
    many(2, 3);
    many(2, 100000);
    many(3000, 5);
    return end();
}
