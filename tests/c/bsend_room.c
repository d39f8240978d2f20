// ranks: 2
// env: | WEFT_PROTOCOL=staged | WEFT_PROTOCOL=written | WEFT_FABRIC=shm+ofi
// says: correct
//
// Received messages of MPI_Bsend have left their buffer, which has room for only one: in every kind of buffer and form of the
// call. The sender is the last rank at the barrier, and so passes it without a look at what has arrived.
#include "check.h"
#include <unistd.h>

enum { LONG = 1000000, TIMES = 3 };
static char data[LONG], room[LONG + MPI_BSEND_OVERHEAD];
static const int lengths[] = {1000, 20000, LONG};

enum place { OF_PROCESS, OF_COMM, OF_SESSION, PLACES };
enum form { BLOCKING, NONBLOCKING, PERSISTENT, FORMS };

static void attach(enum place place, MPI_Comm comm, MPI_Session session, int n)
{
    if (place == OF_PROCESS) MPI_Buffer_attach(room, n);
    if (place == OF_COMM) MPI_Comm_attach_buffer(comm, room, n);
    if (place == OF_SESSION) MPI_Session_attach_buffer(session, room, n);
}

static void detach(enum place place, MPI_Comm comm, MPI_Session session)
{
    void *back;
    int n;
    if (place == OF_PROCESS) MPI_Buffer_detach(&back, &n);
    if (place == OF_COMM) MPI_Comm_detach_buffer(comm, &back, &n);
    if (place == OF_SESSION) MPI_Session_detach_buffer(session, &back, &n);
}

static int sent(enum form form, int n, MPI_Comm comm)
{
    MPI_Request request;
    int code;
    if (form == BLOCKING) return MPI_Bsend(data, n, MPI_BYTE, 1, 3, comm);
    if (form == NONBLOCKING) {
        code = MPI_Ibsend(data, n, MPI_BYTE, 1, 3, comm, &request);
        return code != MPI_SUCCESS ? code : MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Bsend_init(data, n, MPI_BYTE, 1, 3, comm, &request);
    code = MPI_Start(&request);
    if (code == MPI_SUCCESS) MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    return code;
}

int main(int argc, char **argv)
{
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    begin(&argc, &argv);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "room", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
    for (unsigned l = 0; l < sizeof lengths / sizeof *lengths; l++)
        for (enum place place = 0; place < PLACES; place++)
            for (enum form form = 0; form < FORMS; form++) {
                int n = lengths[l];
                if (rank == 0) attach(place, comm, session, n + MPI_BSEND_OVERHEAD);
                for (int i = 0; i < TIMES; i++) {
                    if (rank == 0) FAILS(sent(form, n, comm), MPI_SUCCESS);
                    else MPI_Recv(data, n, MPI_BYTE, 0, 3, comm, MPI_STATUS_IGNORE);
                    if (rank == 0) usleep(1000);
                    MPI_Barrier(comm);
                }
                if (rank == 0) FAILS(sent(form, n + 1, comm), MPI_ERR_BUFFER); /* more than there is */
                if (rank == 0) detach(place, comm, session);
            }
    MPI_Group_free(&group);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
    return end();
}
