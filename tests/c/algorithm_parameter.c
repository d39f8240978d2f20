// ranks: 2
// expect: 16
// env: WEFT_BARRIER=RGM:8 | WEFT_BARRIER=RGM:127 | WEFT_BARRIER=RGM:0 | WEFT_BARRIER=RGM:many
// says: the fan-in of RGM is 1 to 63, one less than a power of two
//
// A parameter that an algorithm cannot have ends the job in MPI_Init, with what it may be.
#include <mpi.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Finalize();
    return 0;
}
