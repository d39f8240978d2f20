// ranks: 1 3
// says: correct
//
// Two jobs that know nothing of each other find each other by a published name, on one machine, without a server: the second is
// started by a shell, as anybody would.
#define _GNU_SOURCE
#include "check.h"
#include <unistd.h>

int main(int argc, char **argv)
{
    char port[MPI_MAX_PORT_NAME], service[64], line[4096];
    MPI_Comm inter;
    begin(&argc, &argv);
    int client = argc > 1;
    snprintf(service, sizeof service, "weft-two-jobs-%s", client ? argv[1] : "");
    if (!client) {
        snprintf(service, sizeof service, "weft-two-jobs-%d", (int)getpid());
        MPI_Bcast(service, sizeof service, MPI_CHAR, 0, MPI_COMM_WORLD);
        snprintf(line, sizeof line, "mpiexec -n 2 %s %s > /dev/null &", argv[0], strrchr(service, '-') + 1);
        if (rank == 0)
            CHECK(system(line) == 0);
    }
    for (int again = 0; again < 3; again++) {
        if (client) {
            int found = MPI_ERR_NAME;
            MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
            for (int i = 0; rank == 0 && i < 3000 && found != MPI_SUCCESS; i++, usleep(10000))
                found = MPI_Lookup_name(service, MPI_INFO_NULL, port);
            MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
        } else {
            if (rank == 0) {
                MPI_Open_port(MPI_INFO_NULL, port);
                MPI_Publish_name(service, MPI_INFO_NULL, port);
            }
            MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
            if (rank == 0) {
                MPI_Unpublish_name(service, MPI_INFO_NULL, port);
                MPI_Close_port(port);
            }
        }
        int theirs, sum = -1, one = rank + 1;
        MPI_Comm_remote_size(inter, &theirs);
        CHECK(client || theirs == 2);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter);
        CHECK(sum == theirs * (theirs + 1) / 2);
        /* In turn: the name of this round is gone before the next one looks. */
        MPI_Barrier(inter);
        MPI_Comm_disconnect(&inter);
    }
    return end();
}
