// ranks: 2
// env: | WEFT_BCAST=MPI-FLAT WEFT_PROTOCOL=eager | WEFT_PROTOCOL=staged | WEFT_BCAST=MPI-BINOMIAL WEFT_PROTOCOL=read | WEFT_BCAST=BINOMIAL WEFT_PROTOCOL=co-copy | WEFT_PROTOCOL=written | WEFT_PROTOCOL=pieces | WEFT_FABRIC=ofi
// says: correct
//
// Failed receives leave nothing behind: after thousands of each kind, by each protocol, good messages still arrive. Otherwise the
// credit, staging memory or requests of refused messages would be used up.
#include "check.h"

#define W MPI_COMM_WORLD
enum { ROUNDS = 2000, LONG = 60000 };
static const int lengths[] = {1, 1000, 8000, 20000, LONG};
static unsigned char data[LONG], room[LONG];

enum kind { RECV, IRECV, ANY, MATCHED, PERSISTENT, EXCHANGE, WAITALL, GAPS, CANCELLED, BROADCAST, PARTITIONED, KINDS };

/* Returns the number of bad rounds. Long messages need fewer rounds to leave as much behind. */
static int rounds(int length) { return length <= 1000 ? ROUNDS : ROUNDS * 1000 / length + 80; }

static void check_room(int from)
{
    for (int i = from; i < LONG; i++) CHECK(room[i] == 0x55, "byte %d of %d", i, from);
}

/* Checks that good messages of all lengths arrive, each way. */
static void works(void)
{
    for (unsigned l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        int n = lengths[l];
        MPI_Status status;
        for (int i = 0; i < 3; i++) {
            memset(data, rank * 16 + i + 1, n);
            memset(room, 0x55, LONG);
            MPI_Sendrecv(data, n, MPI_BYTE, 1 - rank, 9, room, LONG, MPI_BYTE, 1 - rank, 9, W, &status);
            int got;
            MPI_Get_count(&status, MPI_BYTE, &got);
            CHECK(got == n && room[0] == (1 - rank) * 16 + i + 1 && room[n - 1] == room[0]);
            check_room(n);
        }
    }
}

static void send_to(enum kind kind, int n, MPI_Comm comm)
{
    if (kind == BROADCAST) CHECK(MPI_Bcast(data, n, MPI_BYTE, 0, comm) == MPI_SUCCESS);
    else CHECK(MPI_Send(data, n, MPI_BYTE, 1, 7, comm) == MPI_SUCCESS);
}

static void receive(enum kind kind, int n, MPI_Comm comm)
{
    int half = n / 2, got;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Message message;
    MPI_Status status;
    switch (kind) {
    case RECV:
        FAILS(MPI_Recv(room, half, MPI_BYTE, 0, 7, comm, &status), MPI_ERR_TRUNCATE);
        MPI_Get_count(&status, MPI_BYTE, &got);
        CHECK(got == half && status.MPI_TAG == 7);
        break;
    case IRECV:
        MPI_Irecv(room, half, MPI_BYTE, 0, 7, comm, &request);
        FAILS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
        break;
    case ANY:
        FAILS(MPI_Recv(room, half, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
        break;
    case MATCHED:
        MPI_Mprobe(0, 7, comm, &message, MPI_STATUS_IGNORE);
        FAILS(MPI_Mrecv(room, half, MPI_BYTE, &message, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
        break;
    case PERSISTENT:
        MPI_Recv_init(room, half, MPI_BYTE, 0, 7, comm, &request);
        MPI_Start(&request);
        FAILS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
        MPI_Request_free(&request);
        break;
    case EXCHANGE:
        FAILS(MPI_Sendrecv(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, room, half, MPI_BYTE, 0, 7, comm, MPI_STATUS_IGNORE),
              MPI_ERR_TRUNCATE);
        break;
    case WAITALL: {
        MPI_Request two[2];
        MPI_Irecv(room, half, MPI_BYTE, 0, 7, comm, two);
        MPI_Irecv(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 7, comm, two + 1);
        FAILS(MPI_Waitall(2, two, MPI_STATUSES_IGNORE), MPI_ERR_IN_STATUS);
        break;
    }
    case GAPS: {
        MPI_Datatype gaps;
        MPI_Type_vector(half / 2, 1, 2, MPI_BYTE, &gaps);
        MPI_Type_commit(&gaps);
        FAILS(MPI_Recv(room, 1, gaps, 0, 7, comm, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
        MPI_Type_free(&gaps);
        break;
    }
    case CANCELLED:
        MPI_Irecv(room, half, MPI_BYTE, 0, 6, comm, &request);
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &got);
        CHECK(got);
        MPI_Recv(room, half, MPI_BYTE, 0, 7, comm, MPI_STATUS_IGNORE);
        break;
    case BROADCAST:
        FAILS(MPI_Bcast(room, half, MPI_BYTE, 0, comm), MPI_ERR_TRUNCATE);
        break;
    default:
        CHECK(0, "no such kind");
    }
}

/* The two sides name different numbers of bytes, so that each round is refused and its messages are discarded. */
static void partitioned(int n, int factor)
{
    MPI_Request request;
    int parts = 4, each = n / 8 + 1;
    memset(room, 0x55, LONG);
    if (rank == 0)
        MPI_Psend_init(data, parts, each, MPI_BYTE, 1, 5, W, MPI_INFO_NULL, &request);
    else
        MPI_Precv_init(room, 1, factor > 0 ? factor * parts * each : parts * each / 2, MPI_BYTE, 0, 5, W, MPI_INFO_NULL, &request);
    for (int i = 0; i < rounds(4 * each); i++) {
        MPI_Start(&request);
        if (rank == 0) MPI_Pready_range(0, parts - 1, request);
        if (rank == 0) CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
        else FAILS(MPI_Wait(&request, MPI_STATUS_IGNORE), factor > 0 ? MPI_ERR_COUNT : MPI_ERR_TRUNCATE);
    }
    MPI_Request_free(&request);
    if (rank == 1) check_room(0);
}

int main(int argc, char **argv)
{
    MPI_Comm comm;
    begin(&argc, &argv);
    MPI_Comm_set_errhandler(W, MPI_ERRORS_RETURN);
    MPI_Comm_dup(W, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (unsigned l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        int n = lengths[l];
        for (enum kind kind = RECV; kind < PARTITIONED; kind++) {
            if (kind == CANCELLED || (kind == GAPS && n < 4)) continue;
            /* If the length selects the algorithm, the ranks may choose different algorithms. */
            if (kind == BROADCAST && getenv("WEFT_BCAST") == NULL) continue;
            memset(room, 0x55, LONG);
            for (int i = 0; i < rounds(n); i++) {
                if (rank == 0) send_to(kind, n, comm);
                else receive(kind, n, comm);
            }
            if (rank == 1) check_room(n / 2);
            works();
        }
        for (int i = 0; i < rounds(n); i++) {
            if (rank == 0) send_to(CANCELLED, n / 2, comm);
            else receive(CANCELLED, n, comm);
        }
        works();
        partitioned(n, 0);
        works();
        if (4 * (n / 8 + 1) * 2 <= LONG) partitioned(n, 2);
        works();
    }
    MPI_Comm_free(&comm);
    return end();
}
