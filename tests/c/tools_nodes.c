// ranks: 2
// expect: 16
// says: runs on another machine
//
// A control variable that the launcher's side reads from the environment takes effect, too: each rank
// on a node of its own, where shared memory alone does not reach.
#include "tools.h"

int main(int argc, char **argv)
{
    int count, shm = 1;
    tool_begin();
    OK(MPI_T_cvar_write(control("WEFT_FABRIC", &count), &shm));
    OK(MPI_T_cvar_write(control("WEFT_NODES", &count), "1"));
    MPI_Init(&argc, &argv);
    return 0;
}
