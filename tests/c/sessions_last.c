// ranks: 1 3
// says: correct
//
// A session that outlives MPI_Finalize: its communicators work on, those of MPI_Init do not.
#include "check.h"

static int heard;

static void hear(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    MPI_Error_class(*code, &heard);
}

int main(int argc, char **argv)
{
    MPI_Session session;
    MPI_Group all;
    MPI_Comm comm;
    begin(&argc, &argv);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &all);
    MPI_Comm_create_from_group(all, "test://last", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(hear, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Finalize();

    int one = 1, sum = 0, n = -1;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    CHECK(sum == size);
    CHECK(MPI_Comm_size(MPI_COMM_WORLD, &n) != MPI_SUCCESS && n == -1);
    CHECK(heard == MPI_ERR_COMM);
    heard = 0;
    CHECK(MPI_Send(&one, 1, MPI_INT, 0, 0, MPI_COMM_WORLD) != MPI_SUCCESS);
    CHECK(heard == MPI_ERR_COMM);
    MPI_Group_free(&all);
    MPI_Comm_disconnect(&comm);
    if (rank == 0) printf("correct\n");
    MPI_Session_finalize(&session);
    return 0;
}
