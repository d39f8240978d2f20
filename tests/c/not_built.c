// ranks: 1 2
// says: correct
//
// What starts and meets processes is not built yet. A program with a way around must be able to take it: the error has its
// communicator's handler.
#include "check.h"

static int comms;
static MPI_Comm with;

static void of_comms(MPI_Comm *comm, int *code, ...)
{
    CHECK(class_of(*code) == MPI_ERR_UNSUPPORTED_OPERATION);
    with = *comm;
    comms++;
}

int main(int argc, char **argv)
{
    MPI_Errhandler handler;
    MPI_Comm none = MPI_COMM_NULL, dup;
    char port[MPI_MAX_PORT_NAME];
    begin(&argc, &argv);
    MPI_Comm_create_errhandler(of_comms, &handler);
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Comm_set_errhandler(dup, handler);
    FAILS(MPI_Comm_spawn("true", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, dup, &none, MPI_ERRCODES_IGNORE),
          MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK(comms == 1 && with == dup && none == MPI_COMM_NULL);
    FAILS(MPI_Comm_connect("nowhere", MPI_INFO_NULL, 0, dup, &none), MPI_ERR_UNSUPPORTED_OPERATION);
    FAILS(MPI_Comm_accept("nowhere", MPI_INFO_NULL, 0, dup, &none), MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK(comms == 3 && with == dup);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    FAILS(MPI_Open_port(MPI_INFO_NULL, port), MPI_ERR_UNSUPPORTED_OPERATION);
    FAILS(MPI_Comm_join(0, &none), MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK(comms == 5 && with == MPI_COMM_WORLD);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&dup);
    return end();
}
