// ranks: 2 3
// env: | WEFT_CMA=0 | WEFT_CREDIT=4096 | WEFT_FAULT=seed=7,message_delay=0.3,completion_delay=0.3,reorder=1 | WEFT_PROGRESS=handover
// says: correct
//
// What the standard says of messages (MPI 5.0, chapter 3), between ranks 0 and 1 and within each.
#include "check.h"
#include <unistd.h>

#define WORLD MPI_COMM_WORLD
enum { MANY = 64 };

static void fill(unsigned char *data, size_t n, int salt)
{
    for (size_t i = 0; i < n; i++) data[i] = (unsigned char)(i * 7 + i / 251 + salt);
}

static void same(const unsigned char *data, size_t n, int salt)
{
    for (size_t i = 0; i < n; i++)
        CHECK(data[i] == (unsigned char)(i * 7 + i / 251 + salt), "byte %zu of %zu", i, n);
}

/* Lengths round all limits, received blocking, nonblocking, after a probe, and from anybody. */
static void lengths(void)
{
    static const int at[] = {0, 1, 8, 24, 32, 33, 64, 1000, 1024, 4095, 4096, 4097, 8191, 8192, 8193,
                             16383, 16384, 16385, 32768, 65535, 65536, 65537, 131072, 1 << 20};
    unsigned char *data = malloc((1 << 20) + 1);
    for (unsigned i = 0; i < sizeof at / sizeof *at; i++) {
        for (int how = 0; how < 4; how++) {
            int n = at[i], got;
            MPI_Status status;
            MPI_Request request;
            if (rank == 0) {
                fill(data, n, how);
                if (how == 1) {
                    MPI_Isend(data, n, MPI_BYTE, 1, how, WORLD, &request);
                    MPI_Wait(&request, &status);
                } else if (how == 2) {
                    MPI_Ssend(data, n, MPI_BYTE, 1, how, WORLD);
                } else {
                    MPI_Send(data, n, MPI_BYTE, 1, how, WORLD);
                }
            } else if (rank == 1) {
                memset(data, 0xee, n + 1);
                if (how == 0) {
                    MPI_Recv(data, n, MPI_BYTE, 0, how, WORLD, &status);
                } else if (how == 1) {
                    MPI_Irecv(data, n, MPI_BYTE, MPI_ANY_SOURCE, how, WORLD, &request);
                    MPI_Wait(&request, &status);
                    CHECK(request == MPI_REQUEST_NULL);
                } else if (how == 2) {
                    MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, &status);
                    MPI_Get_count(&status, MPI_BYTE, &got);
                    CHECK(got == n && status.MPI_SOURCE == 0 && status.MPI_TAG == how);
                    MPI_Recv(data, got, MPI_BYTE, status.MPI_SOURCE, how, WORLD, &status);
                } else {
                    MPI_Message message;
                    MPI_Mprobe(0, MPI_ANY_TAG, WORLD, &message, &status);
                    MPI_Get_count(&status, MPI_BYTE, &got);
                    CHECK(got == n && message != MPI_MESSAGE_NULL);
                    MPI_Imrecv(data, n, MPI_BYTE, &message, &request);
                    CHECK(message == MPI_MESSAGE_NULL);
                    MPI_Wait(&request, &status);
                }
                MPI_Get_count(&status, MPI_BYTE, &got);
                CHECK(got == n && status.MPI_SOURCE == 0 && status.MPI_TAG == how, "%d", got);
                same(data, n, how);
                CHECK(data[n] == 0xee, "written behind %d bytes", n);
            }
        }
    }
    free(data);
}

/* Messages between the same two ranks are not overtaken, whatever their lengths. */
static void order(void)
{
    static unsigned char data[100000];
    for (int i = 0; i < 200; i++) {
        int n = i % 3 == 0 ? 100000 : i % 3 == 1 ? 1 : 5000;
        if (rank == 0) {
            data[0] = i, data[n - 1] = i;
            MPI_Send(data, n, MPI_BYTE, 1, 5, WORLD);
        } else if (rank == 1) {
            MPI_Status status;
            int got;
            MPI_Recv(data, sizeof data, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, &status);
            MPI_Get_count(&status, MPI_BYTE, &got);
            CHECK(got == n && data[0] == i && data[n - 1] == i, "message %d: %d bytes", i, got);
        }
    }
}

/* Posted receives match in the order of their posting, with and without wildcards. */
static void posted_order(void)
{
    int got[6];
    MPI_Request request[6];
    MPI_Status status[6];
    if (rank == 1) {
        static const int source[] = {0, MPI_ANY_SOURCE, 0, MPI_ANY_SOURCE, 0, 0};
        static const int tag[] = {1, 1, MPI_ANY_TAG, MPI_ANY_TAG, 2, 1};
        for (int i = 0; i < 6; i++)
            MPI_Irecv(&got[i], 1, MPI_INT, source[i], tag[i], WORLD, &request[i]);
    }
    MPI_Barrier(WORLD);
    if (rank == 0) {
        static const int tag[] = {1, 1, 1, 1, 2, 1};
        for (int i = 0; i < 6; i++) MPI_Send(&i, 1, MPI_INT, 1, tag[i], WORLD);
    } else if (rank == 1) {
        MPI_Waitall(6, request, status);
        for (int i = 0; i < 6; i++) CHECK(got[i] == i, "receive %d got message %d", i, got[i]);
        CHECK(status[4].MPI_TAG == 2 && status[3].MPI_SOURCE == 0);
    }
}

/* A synchronous send does not complete before it is matched. */
static void synchronous(void)
{
    int word = 42, flag = 1, go = 0;
    MPI_Request request[2];
    if (rank == 0) {
        MPI_Issend(&word, 1, MPI_INT, 1, 1, WORLD, &request[0]);
        MPI_Issend(NULL, 0, MPI_INT, 1, 2, WORLD, &request[1]);
        for (int i = 0; i < 20; i++) {
            MPI_Testany(2, request, &go, &flag, MPI_STATUS_IGNORE);
            CHECK(!flag, "a synchronous send ended before its receive");
            usleep(500);
        }
        MPI_Send(&go, 1, MPI_INT, 1, 3, WORLD);
        MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
        MPI_Ssend(&word, 1, MPI_INT, 1, 4, WORLD);
    } else if (rank == 1) {
        MPI_Recv(&go, 1, MPI_INT, 0, 3, WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(NULL, 0, MPI_INT, 0, 2, WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(&word, 1, MPI_INT, 0, 1, WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(&word, 1, MPI_INT, 0, 4, WORLD, MPI_STATUS_IGNORE);
        CHECK(word == 42);
    }
}

static void buffered(void)
{
    int sizes[] = {0, 10, 30000}, packed, total = 0;
    unsigned char *data = malloc(30000);
    for (int i = 0; i < 3; i++) {
        MPI_Pack_size(sizes[i], MPI_BYTE, WORLD, &packed);
        total += packed + MPI_BSEND_OVERHEAD;
    }
    if (rank == 0) {
        void *buffer = malloc(total), *back = NULL;
        int length = -1;
        MPI_Buffer_attach(buffer, total);
        for (int round = 0; round < 5; round++) {
            for (int i = 0; i < 3; i++) {
                fill(data, sizes[i], i);
                MPI_Bsend(data, sizes[i], MPI_BYTE, 1, i, WORLD);
                memset(data, 0, sizes[i]);
            }
            MPI_Buffer_detach(&back, &length); /* waits until all are delivered */
            CHECK(back == buffer && length == total, "%d", length);
            MPI_Buffer_attach(buffer, total);
        }
        MPI_Request request;
        MPI_Ibsend(data, 10, MPI_BYTE, 1, 9, WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Buffer_detach(&back, &length);
        free(buffer);
    } else if (rank == 1) {
        usleep(3000);
        for (int round = 0; round < 5; round++) {
            for (int i = 0; i < 3; i++) {
                MPI_Recv(data, 30000, MPI_BYTE, 0, i, WORLD, MPI_STATUS_IGNORE);
                same(data, sizes[i], i);
            }
        }
        MPI_Recv(data, 10, MPI_BYTE, 0, 9, WORLD, MPI_STATUS_IGNORE);
    }
    free(data);
}

/* Persistent requests, started together and alone, short and long. */
static void persistent(void)
{
    static unsigned char out[50000], in[50000];
    MPI_Request request[4];
    int peer = 1 - rank, done, flag;
    if (rank > 1) return;
    MPI_Send_init(out, 100, MPI_BYTE, peer, 1, WORLD, &request[0]);
    MPI_Ssend_init(out, 50000, MPI_BYTE, peer, 2, WORLD, &request[1]);
    MPI_Recv_init(in, 100, MPI_BYTE, peer, 1, WORLD, &request[2]);
    MPI_Recv_init(in + 100, 49900, MPI_BYTE, MPI_ANY_SOURCE, 2, WORLD, &request[3]);
    /* An inactive request is over at once, with an empty status. */
    MPI_Status status;
    MPI_Test(&request[0], &flag, &status);
    CHECK(flag && status.MPI_SOURCE == MPI_ANY_SOURCE && request[0] != MPI_REQUEST_NULL);
    MPI_Request_free(&request[1]);
    MPI_Ssend_init(out, 49900, MPI_BYTE, peer, 2, WORLD, &request[1]);
    for (int round = 0; round < 20; round++) {
        fill(out, sizeof out, round);
        memset(in, 0, sizeof in);
        if (round % 2) {
            MPI_Startall(4, request);
            MPI_Waitall(4, request, MPI_STATUSES_IGNORE);
        } else {
            for (int i = 3; i >= 0; i--) MPI_Start(&request[i]);
            for (int i = 0; i < 4; i++) {
                MPI_Waitany(4, request, &done, &status);
                CHECK(done >= 0 && done < 4);
            }
            MPI_Waitany(4, request, &done, &status);
            CHECK(done == MPI_UNDEFINED);
        }
        same(in, 100, round), same(in + 100, 49900, round);
        for (int i = 0; i < 4; i++) CHECK(request[i] != MPI_REQUEST_NULL);
    }
    for (int i = 0; i < 4; i++) MPI_Request_free(&request[i]);
    CHECK(request[0] == MPI_REQUEST_NULL);
}

/* Every way to end many requests, with null ones among them. */
static void many(void)
{
    for (int way = 0; way < 6; way++) {
        int in[MANY], out[MANY], seen[MANY] = {0}, indices[MANY], count, flag, left = MANY;
        MPI_Request request[MANY + 1];
        MPI_Status status[MANY + 1];
        if (rank == 1)
            for (int i = 0; i < MANY; i++) MPI_Irecv(&in[i], 1, MPI_INT, 0, i, WORLD, &request[i]);
        if (rank == 0) {
            for (int i = MANY - 1; i >= 0; i--) {
                out[i] = i * i;
                MPI_Isend(&out[i], 1, MPI_INT, 1, i, WORLD, &request[i]);
            }
        }
        if (rank > 1) continue;
        request[MANY] = MPI_REQUEST_NULL;
        while (left > 0) {
            count = 0;
            if (way == 0) {
                MPI_Waitall(MANY + 1, request, status);
                for (count = 0; count < MANY; count++) indices[count] = count;
                CHECK(status[MANY].MPI_SOURCE == MPI_ANY_SOURCE);
            } else if (way == 1) {
                MPI_Waitany(MANY + 1, request, indices, status), count = 1;
            } else if (way == 2) {
                MPI_Waitsome(MANY + 1, request, &count, indices, status);
                CHECK(count > 0);
            } else if (way == 3) {
                MPI_Testall(MANY + 1, request, &flag, status);
                for (count = 0; flag && count < MANY; count++) indices[count] = count;
            } else if (way == 4) {
                MPI_Testany(MANY + 1, request, indices, &flag, status), count = flag;
            } else {
                MPI_Testsome(MANY + 1, request, &count, indices, status);
                CHECK(count != MPI_UNDEFINED);
            }
            for (int i = 0; i < count; i++) {
                int at = indices[i];
                CHECK(at >= 0 && at < MANY && !seen[at]++, "way %d: %d", way, at);
                CHECK(request[at] == MPI_REQUEST_NULL);
                if (rank == 1)
                    CHECK(status[i].MPI_TAG == at && in[at] == at * at, "way %d: %d", way, in[at]);
            }
            left -= count;
        }
        MPI_Testall(MANY, request, &flag, MPI_STATUSES_IGNORE);
        CHECK(flag);
        MPI_Waitsome(MANY, request, &count, indices, MPI_STATUSES_IGNORE);
        CHECK(count == MPI_UNDEFINED);
    }
}

static void cancelled(void)
{
    int word = 7, flag;
    MPI_Request request;
    MPI_Status status;
    if (rank == 1) { /* a receive that nothing matches */
        MPI_Irecv(&word, 1, MPI_INT, 0, 99, WORLD, &request);
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &flag);
        CHECK(flag);
    }
    if (rank == 0) { /* a send that nobody has matched: short, and long */
        static int data[50000];
        for (int n = 1; n <= 50000; n += 49999) {
            MPI_Issend(data, n, MPI_INT, 1, 98, WORLD, &request);
            MPI_Cancel(&request);
            MPI_Wait(&request, &status);
            MPI_Test_cancelled(&status, &flag);
            CHECK(flag, "a synchronous send of %d that nobody matched is not cancelled", n);
        }
        MPI_Send(&word, 1, MPI_INT, 1, 97, WORLD);
    } else if (rank == 1) {
        MPI_Recv(&word, 1, MPI_INT, 0, 97, WORLD, MPI_STATUS_IGNORE);
        MPI_Iprobe(0, 98, WORLD, &flag, MPI_STATUS_IGNORE);
        CHECK(!flag, "a cancelled message is there");
        /* A receive that is matched is not cancelled. */
        MPI_Recv(&word, 1, MPI_INT, 0, 96, WORLD, MPI_STATUS_IGNORE);
        MPI_Irecv(&word, 1, MPI_INT, 0, 95, WORLD, &request);
        MPI_Barrier(MPI_COMM_SELF);
        MPI_Probe(0, 94, WORLD, MPI_STATUS_IGNORE);
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &flag);
        CHECK(!flag && word == 95, "%d", word);
        MPI_Recv(&word, 1, MPI_INT, 0, 94, WORLD, MPI_STATUS_IGNORE);
    }
    if (rank == 0)
        for (word = 96; word >= 94; word--) MPI_Send(&word, 1, MPI_INT, 1, word, WORLD);
}

static void replaced(void)
{
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    int *data = malloc(100000 * sizeof *data);
    for (int n = 1; n <= 100000; n *= 10) {
        MPI_Status status;
        for (int i = 0; i < n; i++) data[i] = rank + i;
        MPI_Sendrecv_replace(data, n, MPI_INT, right, 1, left, 1, WORLD, &status);
        for (int i = 0; i < n; i++) CHECK(data[i] == left + i);
        CHECK(status.MPI_SOURCE == left);
    }
    free(data);
}

static void nobody(void)
{
    int word = 5, flag, got;
    MPI_Status status;
    MPI_Request request;
    MPI_Message message;
    MPI_Send(&word, 1, MPI_INT, MPI_PROC_NULL, 1, WORLD);
    MPI_Recv(&word, 1, MPI_INT, MPI_PROC_NULL, 1, WORLD, &status);
    MPI_Get_count(&status, MPI_INT, &got);
    CHECK(word == 5 && got == 0 && status.MPI_SOURCE == MPI_PROC_NULL);
    CHECK(status.MPI_TAG == MPI_ANY_TAG);
    MPI_Irecv(&word, 1, MPI_INT, MPI_PROC_NULL, MPI_ANY_TAG, WORLD, &request);
    MPI_Wait(&request, &status);
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL);
    MPI_Probe(MPI_PROC_NULL, 3, WORLD, &status);
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL);
    MPI_Improbe(MPI_PROC_NULL, 3, WORLD, &flag, &message, &status);
    CHECK(flag && message == MPI_MESSAGE_NO_PROC);
    MPI_Mrecv(&word, 1, MPI_INT, &message, &status);
    CHECK(message == MPI_MESSAGE_NULL && status.MPI_SOURCE == MPI_PROC_NULL);
}

/* Messages of a rank to itself, short and long, sent before and after the receive. */
static void itself(void)
{
    unsigned char *out = malloc(200000), *in = malloc(200000);
    for (int n = 0; n <= 200000; n = n * 20 + 10) {
        MPI_Request request[2];
        MPI_Status status[2];
        for (int first = 0; first < 2; first++) {
            fill(out, n, first), memset(in, 0, n);
            for (int i = 0; i < 2; i++) {
                if (i == first) MPI_Isend(out, n, MPI_BYTE, rank, 3, WORLD, &request[0]);
                else MPI_Irecv(in, n, MPI_BYTE, rank, 3, WORLD, &request[1]);
            }
            MPI_Waitall(2, request, status);
            CHECK(status[1].MPI_SOURCE == rank);
            same(in, n, first);
            MPI_Sendrecv(out, n, MPI_BYTE, 0, 1, in, n, MPI_BYTE, 0, 1, MPI_COMM_SELF, status);
        }
    }
    free(out), free(in);
}

/* Data that are not contiguous, to and from contiguous ones. */
static void strided(void)
{
    enum { N = 5000 };
    int *data = malloc(2 * N * sizeof *data), *dense = malloc(N * sizeof *dense);
    MPI_Datatype every_second;
    MPI_Type_vector(N, 1, 2, MPI_INT, &every_second);
    MPI_Type_commit(&every_second);
    if (rank == 0) {
        for (int i = 0; i < 2 * N; i++) data[i] = i;
        MPI_Send(data, 1, every_second, 1, 1, WORLD);
        MPI_Recv(dense, N, MPI_INT, 1, 2, WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < N; i++) CHECK(dense[i] == 2 * i);
    } else if (rank == 1) {
        MPI_Status status;
        int got;
        memset(data, 0xff, 2 * N * sizeof *data);
        MPI_Recv(data, 1, every_second, 0, 1, WORLD, &status);
        MPI_Get_elements(&status, every_second, &got);
        CHECK(got == N, "%d", got);
        for (int i = 0; i < N; i++) CHECK(data[2 * i] == 2 * i && data[2 * i + 1] == -1);
        MPI_Request request;
        MPI_Isend(data, 1, every_second, 0, 2, WORLD, &request);
        MPI_Request_free(&request);
    }
    MPI_Type_free(&every_second);
    MPI_Barrier(WORLD);
    if (rank != 1) free(data); /* rank 1 does not know when its send is over */
    free(dense);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    static void (*const all[])(void) = {lengths, order,    posted_order, synchronous,
                                        buffered, persistent, many,      cancelled,
                                        replaced, nobody,  itself,       strided};
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
        all[i]();
        MPI_Barrier(WORLD);
    }
    return end();
}
