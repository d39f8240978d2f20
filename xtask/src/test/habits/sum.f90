! Sums the ranks of a job of two.
program sum_of_ranks
    use mpi_f08
    implicit none
    integer :: rank, size, total
    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_size(MPI_COMM_WORLD, size)
    total = -1
    call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    if (rank == 0) print '(a, i0, a, i0)', 'size ', size, ' sum ', total
    call MPI_Finalize()
    if (size /= 2 .or. total /= 1) error stop 'a wrong sum'
end program
