// ranks: 2
// env: | WEFT_PROGRESS=handover | WEFT_CMA=0
// says: correct
//
// Buffers of communicators and of the process for MPI_Bsend (MPI 5.0, section 3.6). Rank 0 sends
// messages that are too long to leave before rank 1, which is told when, receives them.
#include "check.h"

#define WORLD MPI_COMM_WORLD
enum { LONG = 3000000, ROOM = LONG + MPI_BSEND_OVERHEAD };

static char data[LONG], buffer[2 * ROOM], other[2 * ROOM];

static void send(int salt, MPI_Comm comm)
{
    memset(data, salt, LONG);
    CHECK(MPI_Bsend(data, LONG, MPI_BYTE, 1, salt, comm) == MPI_SUCCESS, "%d", salt);
    memset(data, 0, LONG);
}

/* Rank 0 tells rank 1 to receive the message `salt`. */
static void receive(int salt, MPI_Comm comm)
{
    if (rank == 0) {
        MPI_Send(&salt, 1, MPI_INT, 1, 0, WORLD);
        return;
    }
    int told;
    MPI_Recv(&told, 1, MPI_INT, 0, 0, WORLD, MPI_STATUS_IGNORE);
    CHECK(told == salt, "told to receive %d, not %d", told, salt);
    MPI_Recv(data, LONG, MPI_BYTE, 0, salt, comm, MPI_STATUS_IGNORE);
    for (int i = 0; i < LONG; i++) CHECK(data[i] == (char)salt, "byte %d of %d", i, salt);
}

static void mistakes(MPI_Comm comm)
{
    void *back = NULL;
    int size_ = 0, one = 1;
    MPI_Count size_c = 0;
    MPI_Request request;
    FAILS(MPI_Comm_detach_buffer(comm, &back, &size_), MPI_ERR_BUFFER);
    FAILS(MPI_Comm_detach_buffer_c(comm, &back, &size_c), MPI_ERR_BUFFER);
    FAILS(MPI_Comm_flush_buffer(comm), MPI_ERR_BUFFER);
    FAILS(MPI_Comm_iflush_buffer(comm, &request), MPI_ERR_BUFFER);
    FAILS(MPI_Buffer_flush(), MPI_ERR_BUFFER);
    FAILS(MPI_Buffer_iflush(&request), MPI_ERR_BUFFER);
    FAILS(MPI_Buffer_detach(&back, &size_), MPI_ERR_BUFFER);
    FAILS(MPI_Comm_attach_buffer(comm, buffer, -1), MPI_ERR_ARG);
    FAILS(MPI_Comm_attach_buffer(MPI_COMM_NULL, buffer, 100), MPI_ERR_COMM);
    FAILS(MPI_Comm_attach_buffer_c(comm, buffer, sizeof buffer), MPI_SUCCESS);
    FAILS(MPI_Comm_attach_buffer(comm, other, 100), MPI_ERR_BUFFER);
    FAILS(MPI_Comm_attach_buffer(comm, MPI_BUFFER_AUTOMATIC, 0), MPI_ERR_BUFFER);
    FAILS(MPI_Comm_iflush_buffer(comm, NULL), MPI_ERR_ARG);
    FAILS(MPI_Comm_detach_buffer(comm, NULL, &size_), MPI_ERR_ARG);
    /* A communicator's buffer is none for the others. */
    FAILS(MPI_Bsend(&one, 1, MPI_INT, 0, 0, WORLD), MPI_ERR_BUFFER);
    FAILS(MPI_Comm_detach_buffer_c(comm, &back, &size_c), MPI_SUCCESS);
    CHECK(back == buffer && size_c == sizeof buffer, "%lld", (long long)size_c);
    FAILS(MPI_Bsend(&one, 1, MPI_INT, 0, 0, comm), MPI_ERR_BUFFER);
}

/* Each message is charged to the buffer of its communicator, if that has one, else to the process's;
 * the two are not added up. */
static void separate(MPI_Comm comm)
{
    if (rank == 0) {
        void *back = NULL;
        int size_ = 0;
        MPI_Comm_attach_buffer(comm, buffer, ROOM);
        MPI_Buffer_attach(other, 2 * ROOM);
        send(1, comm);
        FAILS(MPI_Bsend(data, LONG, MPI_BYTE, 1, 9, comm), MPI_ERR_BUFFER);
        send(2, WORLD);
        send(3, WORLD);
        FAILS(MPI_Bsend(data, 1, MPI_BYTE, 1, 9, WORLD), MPI_ERR_BUFFER);
        receive(1, comm);
        /* Waits for message 1, not for those of the process's buffer. */
        MPI_Comm_flush_buffer(comm);
        send(4, comm);
        FAILS(MPI_Bsend(data, 1, MPI_BYTE, 1, 9, WORLD), MPI_ERR_BUFFER);
        receive(4, comm);
        MPI_Comm_detach_buffer(comm, &back, &size_);
        CHECK(back == buffer && size_ == ROOM, "%d", size_);
        receive(2, WORLD);
        receive(3, WORLD);
        MPI_Buffer_flush();
        /* Without one of its own, the communicator takes the process's. */
        send(5, comm);
        send(6, comm);
        receive(5, comm);
        receive(6, comm);
        MPI_Buffer_detach(&back, &size_);
        CHECK(back == other && size_ == 2 * ROOM, "%d", size_);
    } else {
        receive(1, comm);
        receive(4, comm);
        receive(2, WORLD);
        receive(3, WORLD);
        receive(5, comm);
        receive(6, comm);
    }
}

/* A flush is over when the messages have left that were there when it began, and not before. */
static void flushes(MPI_Comm comm, int automatic)
{
    if (rank == 0) {
        void *memory = automatic ? MPI_BUFFER_AUTOMATIC : buffer, *back = NULL;
        int size_, flag;
        MPI_Request early, late, whole;
        MPI_Comm_attach_buffer(comm, memory, automatic ? 0 : 2 * ROOM);
        MPI_Buffer_attach(automatic ? MPI_BUFFER_AUTOMATIC : other, automatic ? 0 : ROOM);
        MPI_Comm_iflush_buffer(comm, &early);
        MPI_Wait(&early, MPI_STATUS_IGNORE); /* of an empty one */
        send(1, comm);
        MPI_Comm_iflush_buffer(comm, &early);
        send(2, comm);
        MPI_Comm_iflush_buffer(comm, &late);
        send(3, WORLD);
        MPI_Buffer_iflush(&whole);
        for (int i = 0; i < 100; i++) {
            MPI_Test(&early, &flag, MPI_STATUS_IGNORE);
            CHECK(!flag, "nobody received message 1");
        }
        FAILS(MPI_Cancel(&early), MPI_ERR_REQUEST);
        receive(1, comm);
        MPI_Wait(&early, MPI_STATUS_IGNORE);
        CHECK(early == MPI_REQUEST_NULL);
        MPI_Request both[2] = {late, whole};
        int index;
        MPI_Testany(2, both, &index, &flag, MPI_STATUS_IGNORE);
        CHECK(!flag, "request %d: messages 2 and 3 are here", index);
        receive(2, comm);
        MPI_Waitany(2, both, &index, MPI_STATUS_IGNORE);
        CHECK(index == 0);
        receive(3, WORLD);
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
        MPI_Comm_detach_buffer(comm, &back, &size_);
        CHECK(back == memory);
        MPI_Buffer_detach(&back, &size_);
        CHECK(back == (automatic ? MPI_BUFFER_AUTOMATIC : other));
    } else {
        receive(1, comm);
        receive(2, comm);
        receive(3, WORLD);
    }
}

/* A buffer lives on with what uses its freed communicator; the last message leaves in MPI_Finalize. */
static void outlives(void)
{
    MPI_Comm comm;
    MPI_Request request;
    static char big[LONG];
    MPI_Comm_dup(WORLD, &comm);
    if (rank == 0) {
        MPI_Comm_attach_buffer(comm, buffer, 2 * ROOM);
        MPI_Bsend_init(big, LONG, MPI_BYTE, 1, 8, comm, &request);
        send(7, comm);
        MPI_Comm_free(&comm);
        memset(big, 8, LONG);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        memset(big, 0, LONG);
        MPI_Request_free(&request);
    } else {
        MPI_Irecv(big, LONG, MPI_BYTE, 0, 7, comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int i = 0; i < LONG; i++) CHECK(big[i] == 7, "byte %d", i);
        MPI_Recv(big, LONG, MPI_BYTE, 0, 8, comm, MPI_STATUS_IGNORE);
        for (int i = 0; i < LONG; i++) CHECK(big[i] == 8, "byte %d", i);
        MPI_Comm_free(&comm);
    }
}

int main(int argc, char **argv)
{
    MPI_Comm comm;
    begin(&argc, &argv);
    MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_dup(WORLD, &comm);
    mistakes(comm);
    separate(comm);
    flushes(comm, 0);
    flushes(comm, 1);
    flushes(comm, 0);
    outlives();
    MPI_Comm_free(&comm);
    return end();
}
