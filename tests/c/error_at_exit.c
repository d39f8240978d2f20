// ranks: 1
// expect: 3
// says: MPI_Type_free: argument datatype is the null datatype
// once: MPI_Type_free
//
// With sessions alone there is no MPI_COMM_SELF or MPI_COMM_WORLD: an error without an object ends the job,
// as the initial error handler says, with its class as the exit code. That of a file does not.
#include <mpi.h>

int main(void)
{
    MPI_Session session;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_File file = MPI_FILE_NULL;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    if (MPI_File_close(&file) == MPI_SUCCESS) return 9;
    MPI_Type_free(&type);
    return 0;
}
