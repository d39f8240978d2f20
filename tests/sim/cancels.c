// Cancelled sends and receives, to oneself and to the other rank. The fate of a send to oneself is known at the first look; that of other
// sends in a loop of looks.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { LONG = 1 << 18 };
static int rank, data[LONG], room[LONG];

static void require(int is_right, const char *what, int value)
{
    if (is_right) return;
    printf("WRONG: rank %d: %s (%d)\n", rank, what, value);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static int is_cancelled(MPI_Request *request)
{
    int cancelled = -1;
    MPI_Status status;
    MPI_Wait(request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    return cancelled;
}

// A program that looks once, as mpi4py's tests of messages of objects: no send to oneself is received after it was taken back.
static void to_oneself(int count)
{
    MPI_Request request;
    MPI_Status status;
    int flag, cancelled;
    MPI_Issend(data, count, MPI_INT, rank, 1, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Request_get_status(request, &flag, &status);
    require(flag, "the fate of a send to oneself is not known", count);
    MPI_Test_cancelled(&status, &cancelled);
    require(cancelled, "an unmatched send to oneself was not cancelled", count);
    require(is_cancelled(&request), "the request forgot that it was cancelled", count);
    MPI_Iprobe(rank, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    require(!flag, "a message that was taken back is still there", count);

    // A message that has been matched is not cancelled, and waits for nobody else.
    MPI_Message message;
    MPI_Issend(data, count, MPI_INT, rank, 2, MPI_COMM_WORLD, &request);
    MPI_Mprobe(rank, 2, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Cancel(&request);
    MPI_Mrecv(room, count, MPI_INT, &message, MPI_STATUS_IGNORE);
    require(!is_cancelled(&request), "a matched send was cancelled", count);
}

static void to_the_other(int count)
{
    MPI_Request request;
    MPI_Status status;
    int flag = 0, cancelled = -1, looks = 0;
    if (rank == 0) {
        MPI_Issend(data, count, MPI_INT, 1, 3, MPI_COMM_WORLD, &request);
        MPI_Cancel(&request);
        while (!flag) MPI_Test(&request, &flag, &status), looks++;
        MPI_Test_cancelled(&status, &cancelled);
        require(cancelled && looks < 1000, "looks at a send that nobody receives", looks);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        MPI_Iprobe(0, 3, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        require(!flag, "a message that was taken back is still there", count);
        MPI_Irecv(room, count, MPI_INT, 0, 4, MPI_COMM_WORLD, &request);
        MPI_Cancel(&request);
        require(is_cancelled(&request), "a posted receive was not cancelled", count);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int count = 1; count <= LONG; count *= 64) to_oneself(count), to_the_other(count);
    if (rank == 0) printf("correct\n");
    MPI_Finalize();
    return 0;
}
