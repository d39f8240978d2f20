// For MPI_Op_create, MPI_Op_free.
#include <mpi.h>
#include <stdio.h>

static void times(void *in, void *inout, int *n, MPI_Datatype *type)
{
    for (int i = 0; i < *n && *type == MPI_INT; i++) // modulo 7
        ((int *)inout)[i] = ((int *)in)[i] * ((int *)inout)[i] % 7;
}

int main(int argc, char **argv)
{
    MPI_Op op;
    int value = 5;
    MPI_Init(&argc, &argv);
    MPI_Op_create(times, 1, &op); // 1: operands may change places
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, op, MPI_COMM_WORLD);
    MPI_Op_free(&op);
    printf("5 times 5 modulo 7 is %d\n", value);
    MPI_Finalize();
}
// prints: 5 times 5 modulo 7 is 4
// prints: 5 times 5 modulo 7 is 4
