! Fortran and C in one program: sentinels.c is the other part.
program mixed
  use mpi
  use, intrinsic :: iso_c_binding
  implicit none
  interface
    integer(c_int) function check_sentinels(status, statuses, given, comm) bind(C)
      import
      integer(c_int) :: status(*), statuses(*), given(*)
      integer(c_int), intent(in) :: comm
    end function
  end interface
  integer :: status(MPI_STATUS_SIZE), comm, wrong, ierror
  call MPI_Init(ierror)
  call MPI_Comm_dup(MPI_COMM_SELF, comm, ierror)
  status = 0
  status(MPI_SOURCE) = 11
  status(MPI_TAG) = 12
  status(MPI_ERROR) = 13
  wrong = check_sentinels(MPI_STATUS_IGNORE, MPI_STATUSES_IGNORE, status, comm)
  if (wrong /= 0 .or. status(MPI_TAG) /= 22 .or. status(MPI_SOURCE) /= 11) then
    print *, 'WRONG: ', wrong, status
    error stop 1
  end if
  call MPI_Comm_free(comm, ierror)
  call MPI_Finalize(ierror)
  print *, 'mixed: all checks passed'
end program
