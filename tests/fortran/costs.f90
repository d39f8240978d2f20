! Small messages between two ranks, for a count of what an entry does beside C's function: subroutines by what they call.
program costs
  use mpi_f08
  implicit none
  integer, parameter :: rounds = 1000
  integer :: rank, i
  integer(8) :: cell, cells(1)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  do i = 1, rounds
    cell = i
    cells = i
    if (rank == 0) then
      call send_scalar(cell)
      call receive_array(cells)
      call send_old(cell)
    else
      call receive_scalar(cell)
      call send_array(cells)
      call receive_old(cell)
    end if
    if (cell /= i .or. cells(1) /= i) error stop 1
  end do
  call MPI_Finalize()
  if (rank == 0) print *, 'costs: all checks passed'
end program

subroutine send_scalar(cell)
  use mpi_f08
  integer(8) :: cell
  call MPI_Send(cell, 1, MPI_INTEGER8, 1, 0, MPI_COMM_WORLD)
end subroutine

subroutine receive_scalar(cell)
  use mpi_f08
  integer(8) :: cell
  call MPI_Recv(cell, 1, MPI_INTEGER8, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
end subroutine

subroutine send_array(cells)
  use mpi_f08
  integer(8) :: cells(1)
  call MPI_Send(cells, 1, MPI_INTEGER8, 0, 0, MPI_COMM_WORLD)
end subroutine

subroutine receive_array(cells)
  use mpi_f08
  integer(8) :: cells(1)
  call MPI_Recv(cells, 1, MPI_INTEGER8, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
end subroutine

subroutine send_old(cell)
  use mpi
  integer(8) :: cell
  integer :: ierror
  call MPI_Send(cell, 1, MPI_INTEGER8, 1, 0, MPI_COMM_WORLD, ierror)
end subroutine

subroutine receive_old(cell)
  use mpi
  integer(8) :: cell
  integer :: ierror
  call MPI_Recv(cell, 1, MPI_INTEGER8, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
end subroutine
