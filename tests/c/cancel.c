// ranks: 2
// says: correct
// env: | WEFT_CMA=0 | WEFT_PROGRESS=none
//
// MPI_Cancel of sends that no receive has matched, to a rank of the same node that is outside MPI until they are over: both
// MPI_Cancel and MPI_Wait are local (MPI 5.0, section 3.8.4). What was taken back never arrives, by receive or by probe.
#include "check.h"

#define WORLD MPI_COMM_WORLD
enum { LONG = 4 << 20, ROUNDS = 60 };

/* Rank 1 looks at this without MPI. */
static volatile int *told;

static void outside(int until)
{
    while (*told < until) {}
}

/* Starts send number `kind` of `data`, with `tag`. */
static void start(int kind, char *data, int tag, MPI_Request *request)
{
    int init = kind >= 4;
    switch (kind) {
    case 0: MPI_Issend(data, 8, MPI_BYTE, 1, tag, WORLD, request); break;
    case 1: MPI_Issend(data, 0, MPI_BYTE, 1, tag, WORLD, request); break;
    case 2: MPI_Issend(data, LONG, MPI_BYTE, 1, tag, WORLD, request); break;
    case 3: MPI_Isend(data, LONG, MPI_BYTE, 1, tag, WORLD, request); break;
    case 4: MPI_Ssend_init(data, 100, MPI_BYTE, 1, tag, WORLD, request); break;
    case 5: MPI_Send_init(data, LONG, MPI_BYTE, 1, tag, WORLD, request); break;
    }
    if (init) MPI_Start(request);
}

int main(int argc, char **argv)
{
    static char data[LONG], into[LONG];
    MPI_Request request, requests[ROUNDS];
    MPI_Status status;
    MPI_Win win;
    int *shared, unit, flag, n, cancelled;
    MPI_Aint bytes;
    begin(&argc, &argv);
    MPI_Win_allocate_shared(rank ? 0 : sizeof(int), sizeof(int), MPI_INFO_NULL, WORLD, &shared, &win);
    MPI_Win_shared_query(win, 0, &bytes, &unit, &shared);
    told = shared;
    if (rank == 0) *told = 0;
    MPI_Barrier(WORLD);
    for (int kind = 0, stage = 0; kind < 6; kind++) {
        if (rank == 0) {
            memset(data, 'a', sizeof data);
            start(kind, data, kind, &request);
            MPI_Cancel(&request);
            MPI_Wait(&request, &status);
            MPI_Test_cancelled(&status, &cancelled);
            CHECK(cancelled, "kind %d", kind);
            if (kind >= 4) MPI_Request_free(&request);
            for (int i = 0; i < ROUNDS; i++) start(i % 2, data, 50, &requests[i]), MPI_Cancel(&requests[i]);
            for (int i = 0; i < ROUNDS; i++) {
                MPI_Wait(&requests[i], &status);
                MPI_Test_cancelled(&status, &cancelled);
                CHECK(cancelled, "%d", i);
            }
            *told = ++stage;
            MPI_Ssend("end", 4, MPI_BYTE, 1, 99, WORLD);
            /* The same once more, received. */
            memset(data, 'b', sizeof data);
            start(kind, data, kind, &request);
            MPI_Wait(&request, &status);
            MPI_Test_cancelled(&status, &cancelled);
            CHECK(!cancelled);
            MPI_Cancel(kind >= 4 ? (MPI_Start(&request), &request) : (start(kind, data, kind, &request), &request));
            MPI_Wait(&request, &status);
            if (kind >= 4) MPI_Request_free(&request);
            MPI_Test_cancelled(&status, &cancelled);
            MPI_Send(&cancelled, 1, MPI_INT, 1, 98, WORLD);
        } else {
            outside(++stage);
            MPI_Iprobe(0, kind, WORLD, &flag, &status);
            CHECK(!flag, "kind %d was taken back", kind);
            MPI_Recv(into, 4, MPI_BYTE, 0, MPI_ANY_TAG, WORLD, &status);
            CHECK(status.MPI_TAG == 99 && !strcmp(into, "end"));
            MPI_Recv(into, LONG, MPI_BYTE, 0, kind, WORLD, &status);
            MPI_Get_count(&status, MPI_BYTE, &n);
            CHECK(n == 0 || (into[0] == 'b' && into[n - 1] == 'b'), "kind %d: %c", kind, into[0]);
            MPI_Irecv(into, LONG, MPI_BYTE, 0, kind, WORLD, &request);
            MPI_Recv(&cancelled, 1, MPI_INT, 0, 98, WORLD, MPI_STATUS_IGNORE);
            if (cancelled) MPI_Cancel(&request);
            MPI_Wait(&request, &status);
            MPI_Test_cancelled(&status, &flag);
            CHECK(flag == cancelled, "kind %d: sent or taken back, not both", kind);
        }
    }
    MPI_Win_free(&win);
    return end();
}
