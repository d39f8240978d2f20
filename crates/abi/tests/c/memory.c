#include "check.h"

int main(void) {
    begin();
    double *a = NULL, *b = NULL, *empty = NULL;
    CHECK(MPI_Alloc_mem(1000 * sizeof *a, MPI_INFO_NULL, &a) == MPI_SUCCESS && a != NULL);
    CHECK(MPI_Alloc_mem(1000 * sizeof *b, MPI_INFO_NULL, &b) == MPI_SUCCESS && b != NULL);
    CHECK(MPI_Alloc_mem(0, MPI_INFO_NULL, &empty) == MPI_SUCCESS);
    for (int i = 0; i < 1000; i++)
        a[i] = i;
    MPI_Sendrecv(a, 1000, MPI_DOUBLE, 0, 0, b, 1000, MPI_DOUBLE, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    CHECK(memcmp(a, b, 1000 * sizeof *a) == 0);
    CHECK(MPI_Free_mem(a) == MPI_SUCCESS);
    REFUSED(MPI_Free_mem(a), MPI_ERR_BASE, "or it is freed");
    CHECK(b[999] == 999);
    CHECK(MPI_Free_mem(b) == MPI_SUCCESS);
    CHECK(MPI_Free_mem(empty) == MPI_SUCCESS);
    MPI_Aint address;
    MPI_Get_address(&address, &address);
    CHECK(address == (MPI_Aint)&address);
    MPI_Get_address(MPI_BOTTOM, &address);
    CHECK(address == 0);
    return end();
}
