// ranks: 2
// says: correct
//
// Buffers of sessions for MPI_Bsend (MPI 5.0, section 3.6): for all communicators that come of the
// session, however they were made, and for no others. No MPI_Init; the last messages leave at the end.
#include "check.h"

/* Longer than what may be staged before anybody receives it. */
enum { LONG = 2000000, ROOM = LONG + MPI_BSEND_OVERHEAD };

static char data[LONG], buffer[ROOM], other[ROOM];

static MPI_Comm found(MPI_Session session, const char *name)
{
    MPI_Group all, group;
    MPI_Comm comm;
    int none[1] = {0};
    MPI_Group_from_session_pset(session, "mpi://WORLD", &all);
    MPI_Group_excl(all, 0, none, &group); /* of the session, by way of another group */
    MPI_Comm_create_from_group(group, name, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
    MPI_Group_free(&all);
    MPI_Group_free(&group);
    return comm;
}

int main(void)
{
    MPI_Session session, second;
    MPI_Comm comm, copy, elsewhere;
    MPI_Request request;
    void *back = NULL;
    int size_ = 0, flag;
    MPI_Count size_c = 0;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &second);
    comm = found(session, "first");
    elsewhere = found(second, "second");
    MPI_Comm_dup(comm, &copy);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    FAILS(MPI_Session_detach_buffer(session, &back, &size_), MPI_ERR_BUFFER);
    FAILS(MPI_Session_flush_buffer(session), MPI_ERR_BUFFER);
    FAILS(MPI_Session_iflush_buffer(session, &request), MPI_ERR_BUFFER);
    FAILS(MPI_Session_attach_buffer(session, buffer, -1), MPI_ERR_ARG);
    FAILS(MPI_Session_attach_buffer_c(session, buffer, ROOM), MPI_SUCCESS);
    FAILS(MPI_Session_attach_buffer(session, buffer, ROOM), MPI_ERR_BUFFER);
    if (rank == 0) {
        FAILS(MPI_Bsend(data, 1, MPI_BYTE, 1, 1, elsewhere), MPI_ERR_BUFFER);
        memset(data, 1, LONG);
        FAILS(MPI_Bsend(data, LONG, MPI_BYTE, 1, 1, copy), MPI_SUCCESS);
        memset(data, 0, LONG);
        FAILS(MPI_Bsend(data, 1, MPI_BYTE, 1, 1, comm), MPI_ERR_BUFFER); /* the room is taken */
        MPI_Session_iflush_buffer(session, &request);
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        CHECK(!flag, "nobody received the message");
        /* The communicator's own buffer comes before the session's. */
        MPI_Comm_attach_buffer(comm, other, ROOM);
        memset(data, 2, LONG);
        FAILS(MPI_Bsend(data, LONG, MPI_BYTE, 1, 2, comm), MPI_SUCCESS);
        memset(data, 0, LONG);
        MPI_Ssend(NULL, 0, MPI_BYTE, 1, 3, elsewhere);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Session_flush_buffer(session);
        MPI_Session_detach_buffer_c(session, &back, &size_c);
        CHECK(back == buffer && size_c == ROOM, "%lld", (long long)size_c);
        MPI_Session_attach_buffer(session, MPI_BUFFER_AUTOMATIC, 0);
        memset(data, 4, LONG);
        FAILS(MPI_Bsend(data, LONG, MPI_BYTE, 1, 4, copy), MPI_SUCCESS);
        memset(data, 0, LONG);
    } else {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, 3, elsewhere, MPI_STATUS_IGNORE);
        for (int tag = 1; tag <= 4; tag++) {
            if (tag == 3) continue;
            MPI_Recv(data, LONG, MPI_BYTE, 0, tag, tag == 2 ? comm : copy, MPI_STATUS_IGNORE);
            for (int i = 0; i < LONG; i++) CHECK(data[i] == tag, "byte %d of %d", i, tag);
        }
        MPI_Session_detach_buffer(session, &back, &size_);
        CHECK(back == buffer && size_ == ROOM, "%d", size_);
    }
    MPI_Comm_free(&copy);
    MPI_Comm_free(&comm);
    MPI_Comm_free(&elsewhere);
    MPI_Session_finalize(&session);
    MPI_Session_finalize(&second);
    if (rank == 1) printf("correct\n");
    return 0;
}
