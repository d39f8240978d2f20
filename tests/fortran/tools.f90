! Calls that tools see: the tools of tool.f90 for mpi_f08 and mpif.h, and the tool of tool.c for C.
subroutine old_calls(rank, send)
  implicit none
  include 'mpif.h'
  integer :: rank, ierror, send, status(MPI_STATUS_SIZE), got
  call MPI_Comm_rank(MPI_COMM_SELF, rank, ierror)
  if (ierror /= MPI_SUCCESS) error stop 2
  call MPI_Sendrecv(send, 1, MPI_INTEGER, 0, 0, got, 1, MPI_INTEGER, 0, 0, MPI_COMM_SELF, status, ierror)
  if (got /= send) error stop 3
  call MPI_Barrier(MPI_COMM_SELF, ierror)
  call PMPI_Barrier(MPI_COMM_SELF, ierror)
end subroutine

program tools
  use mpi_f08
  use seen
  use, intrinsic :: iso_c_binding, only: c_int
  implicit none
  interface
    integer(c_int) function seen_by_c() bind(C)
      import
    end function
  end interface
  character(len=MPI_MAX_PROCESSOR_NAME) :: name
  integer :: rank, ierror, length, got
  logical :: flag
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_SELF, rank)
  call MPI_Comm_rank(MPI_COMM_SELF, rank, ierror)
  call check(rank == 0 .and. ierror == MPI_SUCCESS, [by_new, by_old, absent], [2, 0, 1])
  call MPI_Initialized(flag)
  call MPI_Get_processor_name(name, length)
  call check(flag .and. len_trim(name) == length, [by_new, by_old, absent], [104, 0, 1])
  ! No tool sees profiling names.
  call PMPI_Comm_rank(MPI_COMM_SELF, rank)
  call PMPI_Initialized(flag)
  call check(flag, [by_new, by_old, absent], [104, 0, 1])
  call old_calls(rank, 5)
  call check(rank == 0, [by_new, by_old, absent], [104, 1, 1])
  ! C's tool has seen a barrier and a message of mpif.h, but not the call by a profiling name.
  call check(.true., [int(seen_by_c())], [101])
  call MPI_Sendrecv(rank, 1, MPI_INTEGER, 0, 0, got, 1, MPI_INTEGER, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE)
  call MPI_Barrier(MPI_COMM_SELF)
  call PMPI_Barrier(MPI_COMM_SELF)
  call check(.true., [int(seen_by_c())], [202])
  call MPI_Finalize()
  print *, 'tools: all checks passed'
contains
  subroutine check(right, counts, expected)
    logical, intent(in) :: right
    integer, intent(in) :: counts(:), expected(:)
    if (right .and. all(counts == expected)) return
    print *, 'WRONG: ', right, counts, ' in place of ', expected
    error stop 1
  end subroutine
end program
