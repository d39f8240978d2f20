// ranks: 2
// env: | WEFT_EAGER=64 | WEFT_CMA=0 WEFT_EAGER=64
// says: correct
//
// Every mode of sending and every way of receiving, with counts of int and of MPI_Count (the names
// that end in _c): blocking, nonblocking, persistent, matched; both directions at once. Each
// message has a length and a content of its own.
#include "check.h"

#define WORLD MPI_COMM_WORLD
enum { ROOM = 3000, TAG = 5 };

static unsigned char out[ROOM], in[ROOM + 1], buffer[4 * (ROOM + MPI_BSEND_OVERHEAD)];
static int salt; /* counts the messages, the same on both ranks */

static int length(void) { return (salt * 577) % ROOM; }
static unsigned char byte(int from, int i) { return (unsigned char)(salt * 31 + from * 101 + i * 7); }

static void fill(void)
{
    for (int i = 0; i < ROOM; i++) out[i] = byte(rank, i);
    memset(in, 0xee, sizeof in);
}

static void arrived(int line, const unsigned char *data, int from, MPI_Status *status)
{
    MPI_Count got = -1;
    MPI_Get_count_c(status, MPI_BYTE, &got);
    CHECK(got == length() && status->MPI_SOURCE == from && status->MPI_TAG == TAG,
          "line %d: %d bytes, not %d, from %d, tag %d", line, (int)got, length(), status->MPI_SOURCE,
          status->MPI_TAG);
    for (int i = 0; i < got; i++)
        CHECK(data[i] == byte(from, i), "line %d: byte %d of %d", line, i, (int)got);
}

static void wait(MPI_Request *request, int persistent)
{
    MPI_Wait(request, MPI_STATUS_IGNORE);
    CHECK((request[0] == MPI_REQUEST_NULL) == !persistent);
}

/* Rank 1 posts before rank 0 sends, so that ready sends are right. `send` and `receive` are
   statements that use `request`, and `status` for the receive. */
#define MESSAGE(send, receive)                                                        \
    do {                                                                              \
        MPI_Request request = MPI_REQUEST_NULL;                                       \
        MPI_Status status;                                                            \
        salt++, fill();                                                               \
        if (rank == 0) {                                                              \
            MPI_Recv(NULL, 0, MPI_BYTE, 1, 1, WORLD, MPI_STATUS_IGNORE);              \
            send;                                                                     \
            memset(out, 0, sizeof out);                                               \
        } else {                                                                      \
            receive;                                                                  \
            arrived(__LINE__, in, 0, &status);                                        \
            CHECK(in[length()] == 0xee, "wrote behind the message");                  \
        }                                                                             \
        CHECK(request == MPI_REQUEST_NULL);                                           \
    } while (0)

#define GO MPI_Send(NULL, 0, MPI_BYTE, 0, 1, WORLD)
/* A receive that is posted before the sender is told to go. */
#define POSTED                                                                        \
    (MPI_Irecv(in, ROOM, MPI_BYTE, 0, TAG, WORLD, &request), GO, MPI_Wait(&request, &status))

#define TO out, length(), MPI_BYTE, 1, TAG, WORLD
#define FROM ROOM, MPI_BYTE, 0, TAG, WORLD

static void started(MPI_Request *request)
{
    MPI_Start(request);
    wait(request, 1);
    MPI_Request_free(request);
    CHECK(*request == MPI_REQUEST_NULL);
}

static void modes(void)
{
    void *back = NULL;
    MPI_Count size_c = 0;
    if (rank == 0) MPI_Buffer_attach_c(buffer, sizeof buffer);
    MESSAGE(MPI_Send_c(TO), POSTED);
    MESSAGE(MPI_Ssend_c(TO), POSTED);
    MESSAGE(MPI_Rsend(TO), POSTED);
    MESSAGE(MPI_Rsend_c(TO), POSTED);
    MESSAGE(MPI_Bsend(TO), POSTED);
    MESSAGE(MPI_Bsend_c(TO), POSTED);
    MESSAGE((MPI_Isend_c(TO, &request), wait(&request, 0)), POSTED);
    MESSAGE((MPI_Issend_c(TO, &request), wait(&request, 0)), POSTED);
    MESSAGE((MPI_Irsend(TO, &request), wait(&request, 0)), POSTED);
    MESSAGE((MPI_Irsend_c(TO, &request), wait(&request, 0)), POSTED);
    MESSAGE((MPI_Ibsend(TO, &request), wait(&request, 0)), POSTED);
    MESSAGE((MPI_Ibsend_c(TO, &request), wait(&request, 0)), POSTED);
    MESSAGE((MPI_Send_init(TO, &request), started(&request)), POSTED);
    MESSAGE((MPI_Send_init_c(TO, &request), started(&request)), POSTED);
    MESSAGE((MPI_Ssend_init(TO, &request), started(&request)), POSTED);
    MESSAGE((MPI_Ssend_init_c(TO, &request), started(&request)), POSTED);
    MESSAGE((MPI_Rsend_init(TO, &request), started(&request)), POSTED);
    MESSAGE((MPI_Rsend_init_c(TO, &request), started(&request)), POSTED);
    MESSAGE((MPI_Bsend_init(TO, &request), started(&request)), POSTED);
    MESSAGE((MPI_Bsend_init_c(TO, &request), started(&request)), POSTED);
    if (rank == 0) {
        MPI_Buffer_detach_c(&back, &size_c);
        CHECK(back == buffer && size_c == sizeof buffer);
    }
}

static void receives(void)
{
    MPI_Message message;
    MESSAGE(MPI_Send(TO), (GO, MPI_Recv_c(in, FROM, &status)));
    MESSAGE(MPI_Send(TO), (MPI_Irecv_c(in, FROM, &request), GO, MPI_Wait(&request, &status)));
    MESSAGE(MPI_Send(TO), (MPI_Recv_init(in, FROM, &request), MPI_Start(&request), GO,
                           MPI_Wait(&request, &status), MPI_Request_free(&request)));
    MESSAGE(MPI_Send(TO), (MPI_Recv_init_c(in, FROM, &request), MPI_Start(&request), GO,
                           MPI_Wait(&request, &status), MPI_Request_free(&request)));
    MESSAGE(MPI_Send(TO), (GO, MPI_Mprobe(0, TAG, WORLD, &message, &status),
                           MPI_Mrecv(in, ROOM, MPI_BYTE, &message, &status)));
    MESSAGE(MPI_Send(TO), (GO, MPI_Mprobe(0, TAG, WORLD, &message, &status),
                           MPI_Mrecv_c(in, ROOM, MPI_BYTE, &message, &status)));
    MESSAGE(MPI_Send(TO), (GO, MPI_Mprobe(0, TAG, WORLD, &message, &status),
                           MPI_Imrecv(in, ROOM, MPI_BYTE, &message, &request),
                           MPI_Wait(&request, &status)));
    MESSAGE(MPI_Send(TO), (GO, MPI_Mprobe(0, TAG, WORLD, &message, &status),
                           MPI_Imrecv_c(in, ROOM, MPI_BYTE, &message, &request),
                           MPI_Wait(&request, &status)));
}

/* Both directions in one call; in place, `out` is where it arrives, too. */
#define BOTH(data, ...)                                                               \
    do {                                                                              \
        MPI_Request request = MPI_REQUEST_NULL;                                       \
        MPI_Status status;                                                            \
        salt++, fill();                                                               \
        __VA_ARGS__;                                                                  \
        arrived(__LINE__, data, 1 - rank, &status);                                   \
        CHECK(request == MPI_REQUEST_NULL);                                           \
    } while (0)

static void exchanges(void)
{
    int other = 1 - rank;
#define THERE out, length(), MPI_BYTE, other, TAG
#define HERE in, ROOM, MPI_BYTE, other, TAG, WORLD
#define REPLACE out, length(), MPI_BYTE, other, TAG, other, TAG, WORLD
    BOTH(in, MPI_Sendrecv(THERE, HERE, &status));
    BOTH(in, MPI_Sendrecv_c(THERE, HERE, &status));
    BOTH(out, MPI_Sendrecv_replace(REPLACE, &status));
    BOTH(out, MPI_Sendrecv_replace_c(REPLACE, &status));
    BOTH(in, MPI_Isendrecv(THERE, HERE, &request), MPI_Wait(&request, &status));
    BOTH(in, MPI_Isendrecv_c(THERE, HERE, &request), MPI_Wait(&request, &status));
    BOTH(out, MPI_Isendrecv_replace(REPLACE, &request), MPI_Wait(&request, &status));
    BOTH(out, MPI_Isendrecv_replace_c(REPLACE, &request), MPI_Wait(&request, &status));
}

static void mistakes(void)
{
    int class;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
#define REFUSED(call, wanted)                                                         \
    do {                                                                              \
        MPI_Error_class(call, &class);                                                \
        CHECK(class == wanted, "class %d, expected " #wanted, class);                 \
    } while (0)
    REFUSED(MPI_Send_c(out, -1, MPI_BYTE, 0, TAG, WORLD), MPI_ERR_COUNT);
    REFUSED(MPI_Recv_c(in, -1, MPI_BYTE, 0, TAG, WORLD, MPI_STATUS_IGNORE), MPI_ERR_COUNT);
    REFUSED(MPI_Isend_c(out, 1, MPI_BYTE, 2, TAG, WORLD, &request), MPI_ERR_RANK);
    REFUSED(MPI_Irecv_c(in, 1, MPI_DATATYPE_NULL, 0, TAG, WORLD, &request), MPI_ERR_TYPE);
    REFUSED(MPI_Isendrecv(out, 1, MPI_BYTE, 0, -3, in, 1, MPI_BYTE, 0, TAG, WORLD, &request), MPI_ERR_TAG);
    REFUSED(MPI_Imrecv_c(in, 1, MPI_BYTE, &message, &request), MPI_ERR_REQUEST);
    CHECK(request == MPI_REQUEST_NULL);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    modes();
    receives();
    exchanges();
    mistakes();
    return end();
}
