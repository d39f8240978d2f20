! Tools that replace procedures by their names in table 19.1 (MPI 5.0, section 19.1.5): one for mpi_f08, one for mpif.h, and
! tool.c for C. Each tool counts the calls that it sees, and passes them on by its own profiling name.
module seen
  implicit none
  integer :: by_new = 0, by_old = 0, absent = 0
end module

subroutine MPI_Comm_rank_f08(comm, rank, ierror)
  use mpi_f08, my_noname => MPI_Comm_rank_f08
  use seen
  type(MPI_Comm), intent(in) :: comm
  integer, intent(out) :: rank
  integer, optional, intent(out) :: ierror
  by_new = by_new + 1
  if (.not. present(ierror)) absent = absent + 1
  call PMPI_Comm_rank(comm, rank, ierror)
end subroutine

! Procedures with a logical, and with a string.
subroutine MPI_Initialized_f08(flag, ierror)
  use mpi_f08, my_noname => MPI_Initialized_f08
  use seen
  logical, intent(out) :: flag
  integer, optional, intent(out) :: ierror
  by_new = by_new + 1
  call PMPI_Initialized(flag, ierror)
end subroutine

subroutine MPI_Get_processor_name_f08(name, resultlen, ierror)
  use mpi_f08, my_noname => MPI_Get_processor_name_f08
  use seen
  character(len=*), intent(out) :: name
  integer, intent(out) :: resultlen
  integer, optional, intent(out) :: ierror
  by_new = by_new + 1
  if (len(name) == MPI_MAX_PROCESSOR_NAME) by_new = by_new + 100
  call PMPI_Get_processor_name(name, resultlen, ierror)
end subroutine

! Procedures of mpif.h always have an error code.
subroutine MPI_COMM_RANK(comm, rank, ierror)
  use seen
  integer :: comm, rank, ierror
  by_old = by_old + 1
  ierror = -1
  call PMPI_COMM_RANK(comm, rank, ierror)
end subroutine
