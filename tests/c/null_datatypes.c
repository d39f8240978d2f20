// ranks: 1 2
// says: correct
//
// MPI_DATATYPE_NULL: taken with a count of 0 in all messages, partitioned ones, too, to ranks and to MPI_PROC_NULL;
// refused with elements, and in windows. Every call that sends or receives, with int counts and large ones.
#include "check.h"

#define WORLD MPI_COMM_WORLD
#define NONE MPI_DATATYPE_NULL

static int to, from;
static char data[8];

static void done(MPI_Request *request)
{
    MPI_Wait(request, MPI_STATUS_IGNORE);
    CHECK(*request == MPI_REQUEST_NULL);
}

/* Each kind of send of nothing, and its receive: a message arrives, unless it is from nobody. */
static void sent(int kind)
{
    MPI_Request out = MPI_REQUEST_NULL, in;
    MPI_Status status;
    int n = -1;
    CHECK(!MPI_Irecv(data, 0, NONE, from, kind, WORLD, &in));
    MPI_Barrier(WORLD); /* so that a ready send finds it */
    switch (kind) {
    case 0: CHECK(!MPI_Send(data, 0, NONE, to, kind, WORLD)); break;
    case 1: CHECK(!MPI_Bsend(data, 0, NONE, to, kind, WORLD)); break;
    case 2: CHECK(!MPI_Issend(NULL, 0, NONE, to, kind, WORLD, &out)); break;
    case 3: CHECK(!MPI_Rsend(data, 0, NONE, to, kind, WORLD)); break;
    case 4: CHECK(!MPI_Isend(data, 0, NONE, to, kind, WORLD, &out)); break;
    case 5: CHECK(!MPI_Ibsend(data, 0, NONE, to, kind, WORLD, &out)); break;
    case 6: CHECK(!MPI_Irsend(data, 0, NONE, to, kind, WORLD, &out)); break;
    case 7: CHECK(!MPI_Send_c(data, 0, NONE, to, kind, WORLD)); break;
    case 8: CHECK(!MPI_Isend_c(data, 0, NONE, to, kind, WORLD, &out)); break;
    case 9: CHECK(!MPI_Send_init(data, 0, NONE, to, kind, WORLD, &out)); break;
    case 10: CHECK(!MPI_Bsend_init(data, 0, NONE, to, kind, WORLD, &out)); break;
    case 11: CHECK(!MPI_Ssend_init(data, 0, NONE, to, kind, WORLD, &out)); break;
    case 12: CHECK(!MPI_Rsend_init(data, 0, NONE, to, kind, WORLD, &out)); break;
    }
    if (kind >= 9) MPI_Start(&out);
    MPI_Wait(&in, &status);
    if (kind < 9) done(&out);
    else MPI_Wait(&out, MPI_STATUS_IGNORE), MPI_Request_free(&out);
    MPI_Get_count(&status, MPI_BYTE, &n);
    CHECK(n == 0 && status.MPI_SOURCE == from && status.MPI_TAG == (from < 0 ? MPI_ANY_TAG : kind), "%d", kind);
}

static void received(void)
{
    MPI_Request request, out;
    MPI_Message message;
    MPI_Status status;
    for (int kind = 0; kind < 6; kind++) {
        CHECK(!MPI_Isend(data, 0, MPI_INT, to, kind, WORLD, &out));
        switch (kind) {
        case 0: CHECK(!MPI_Recv(data, 0, NONE, from, kind, WORLD, &status)); break;
        case 1: CHECK(!MPI_Recv_c(NULL, 0, NONE, from, kind, WORLD, &status)); break;
        case 2:
            CHECK(!MPI_Recv_init(data, 0, NONE, from, kind, WORLD, &request));
            MPI_Start(&request), MPI_Wait(&request, &status), MPI_Request_free(&request);
            break;
        case 3:
            MPI_Mprobe(from, kind, WORLD, &message, MPI_STATUS_IGNORE);
            CHECK(!MPI_Mrecv(data, 0, NONE, &message, &status));
            break;
        case 4:
            MPI_Mprobe(from, kind, WORLD, &message, MPI_STATUS_IGNORE);
            CHECK(!MPI_Imrecv(data, 0, NONE, &message, &request));
            MPI_Wait(&request, &status);
            break;
        case 5:
            CHECK(!MPI_Irecv_c(data, 0, NONE, from, kind, WORLD, &request));
            MPI_Wait(&request, &status);
            break;
        }
        CHECK(status.MPI_SOURCE == from, "%d", kind);
        done(&out);
    }
    CHECK(!MPI_Sendrecv(data, 0, NONE, to, 1, data, 0, NONE, from, 1, WORLD, &status));
    CHECK(!MPI_Sendrecv_replace(data, 0, NONE, to, 1, from, 1, WORLD, &status));
    CHECK(!MPI_Isendrecv(data, 0, NONE, to, 1, data, 0, NONE, from, 1, WORLD, &request));
    done(&request);
    CHECK(!MPI_Isendrecv_replace(data, 0, NONE, to, 1, from, 1, WORLD, &request));
    done(&request);
}

static void partitioned(void)
{
    MPI_Request requests[2];
    CHECK(!MPI_Psend_init(NULL, 2, 0, NONE, to, 0, WORLD, MPI_INFO_NULL, &requests[0]));
    CHECK(!MPI_Precv_init(NULL, 2, 0, NONE, from, 0, WORLD, MPI_INFO_NULL, &requests[1]));
    for (int round = 0; round < 2; round++) {
        MPI_Startall(2, requests);
        MPI_Pready_range(0, 1, requests[0]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&requests[0]), MPI_Request_free(&requests[1]);
}

/* With elements, whoever it is for; and without, in a window. */
static void refused(void)
{
    MPI_Request request;
    FAILS(MPI_Send(data, 1, NONE, to, 0, WORLD), MPI_ERR_TYPE);
    FAILS(MPI_Ssend(data, 1, NONE, to, 0, WORLD), MPI_ERR_TYPE);
    FAILS(MPI_Bsend(data, 1, NONE, to, 0, WORLD), MPI_ERR_TYPE);
    FAILS(MPI_Isend(data, 1, NONE, to, 0, WORLD, &request), MPI_ERR_TYPE);
    FAILS(MPI_Send_init(data, 1, NONE, to, 0, WORLD, &request), MPI_ERR_TYPE);
    FAILS(MPI_Recv(data, 1, NONE, from, 0, WORLD, MPI_STATUS_IGNORE), MPI_ERR_TYPE);
    FAILS(MPI_Irecv(data, 1, NONE, from, 0, WORLD, &request), MPI_ERR_TYPE);
    FAILS(MPI_Psend_init(data, 1, 1, NONE, to, 0, WORLD, MPI_INFO_NULL, &request), MPI_ERR_TYPE);
    FAILS(MPI_Precv_init(data, 1, 1, NONE, from, 0, WORLD, MPI_INFO_NULL, &request), MPI_ERR_TYPE);
}

static void window(void)
{
    MPI_Win win;
    MPI_Win_create(data, sizeof data, 1, MPI_INFO_NULL, WORLD, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_fence(0, win);
    FAILS(MPI_Put(data, 0, NONE, rank, 0, 0, MPI_BYTE, win), MPI_ERR_TYPE);
    FAILS(MPI_Get(data, 0, MPI_BYTE, rank, 0, 0, NONE, win), MPI_ERR_TYPE);
    FAILS(MPI_Accumulate(data, 0, NONE, rank, 0, 0, MPI_BYTE, MPI_REPLACE, win), MPI_ERR_TYPE);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
    static char buffer[4 * MPI_BSEND_OVERHEAD];
    begin(&argc, &argv);
    MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_RETURN);
    MPI_Buffer_attach(buffer, sizeof buffer);
    for (int nobody = 0; nobody < 2; nobody++) {
        to = nobody ? MPI_PROC_NULL : (rank + 1) % size;
        from = nobody ? MPI_PROC_NULL : (rank + size - 1) % size;
        for (int kind = 0; kind < 13; kind++) sent(kind);
        received();
        partitioned();
        refused();
    }
    window();
    MPI_Buffer_detach(&(void *){NULL}, &(int){0});
    return end();
}
