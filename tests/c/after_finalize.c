// ranks: 1
// expect: 16
// says: MPI_Barrier on MPI_COMM_WORLD: called after MPI_Finalize
// once: called after MPI_Finalize
//
// A call after MPI_Finalize ends the program with a message that says so; a few calls that the
// standard allows then still work (MPI 5.0, section 11.4.1).
#include <mpi.h>

int main(int argc, char **argv)
{
    int flag = 0, version, subversion, length;
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Init(&argc, &argv);
    MPI_Finalize();
    MPI_Finalized(&flag);
    MPI_Get_version(&version, &subversion);
    MPI_Get_library_version(text, &length);
    if (!flag || version != 5 || length == 0) return 3;
    MPI_Barrier(MPI_COMM_WORLD);
    return 0;
}
