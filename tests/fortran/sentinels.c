/* What Fortran hands over to C: addresses that ignore a status, statuses, handles. Called by mixed.f90. */
#include <mpi.h>

/* 0, or the number of what is wrong. */
int check_sentinels(MPI_Fint *status, MPI_Fint *statuses, MPI_Fint *given, const MPI_Fint *comm)
{
    MPI_Status c, again;
    MPI_F08_status f08;
    int result;
    if (MPI_F_STATUS_IGNORE == 0 || status != MPI_F_STATUS_IGNORE)
        return 1;
    if (MPI_F_STATUSES_IGNORE == 0 || statuses != MPI_F_STATUSES_IGNORE)
        return 2;
    if ((void *)MPI_F08_STATUS_IGNORE != (void *)status || (void *)MPI_F08_STATUSES_IGNORE != (void *)statuses)
        return 3;
    MPI_Status_f2c(given, &c);
    if (c.MPI_SOURCE != 11 || c.MPI_TAG != 12 || c.MPI_ERROR != 13)
        return 4;
    MPI_Status_c2f08(&c, &f08);
    MPI_Status_f082c(&f08, &again);
    again.MPI_TAG = 22;
    MPI_Status_c2f(&again, given);
    MPI_Comm_compare(MPI_Comm_f2c(*comm), MPI_COMM_SELF, &result);
    if (result != MPI_CONGRUENT || MPI_Comm_c2f(MPI_Comm_f2c(*comm)) != *comm)
        return 5;
    return 0;
}
