! Programs of older ABIs with the module mpi_f08. Sections with gaps are passed only if the library declares that it takes
! them; large counts and further sections with DESCRIPTORS, for libraries that have both.
#include "checks.h"

module functions
  use mpi_f08
  use checks
  implicit none
  integer :: errors = 0, copies = 0
contains
  subroutine adder(in, inout, len, datatype)
    use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
    type(c_ptr), value :: in, inout
    integer :: len
    type(MPI_Datatype) :: datatype
    integer, pointer :: a(:), b(:)
    call c_f_pointer(in, a, [len])
    call c_f_pointer(inout, b, [len])
    call check(datatype == MPI_INTEGER, 'type of the operator')
    b = a + b
  end subroutine

  subroutine wrong(comm, code)
    type(MPI_Comm) :: comm
    integer :: code
    call check(comm == MPI_COMM_WORLD .and. code /= MPI_SUCCESS, 'communicator of the error')
    errors = errors + 1
  end subroutine

  subroutine copied(comm, keyval, extra, in, out, flag, ierr)
    type(MPI_Comm) :: comm
    integer :: keyval, ierr
    integer(kind=MPI_ADDRESS_KIND) :: extra, in, out
    logical :: flag
    call check(extra == 7 .and. comm == MPI_COMM_SELF, 'extra state')
    out = in + 1
    flag = .true.
    copies = copies + 1
    ierr = 0
  end subroutine
end module

program modern
  use functions
  use, intrinsic :: iso_c_binding, only: c_ptr
  implicit none
  integer :: rank, ranks, next, before, i, n, length, keyval, code
  integer, asynchronous :: a(8), b(8)
  integer, asynchronous :: table(4, 6), copy(4, 6)
  character(len=MPI_MAX_OBJECT_NAME) :: name
  integer(kind=MPI_ADDRESS_KIND) :: extra, value
  logical :: flag
  type(c_ptr) :: address
  type(MPI_Comm) :: comm
  type(MPI_Op) :: op
  type(MPI_Request) :: req(2)
  type(MPI_Status) :: st, sts(2)
  type(MPI_Errhandler) :: handler
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  next = mod(rank + 1, ranks)
  before = mod(rank + ranks - 1, ranks)
  a = [(rank + i, i = 1, 8)]
  b = -1
  call MPI_Irecv(b, 8, MPI_INTEGER, before, 3, MPI_COMM_WORLD, req(1))
  call MPI_Isend(a, 8, MPI_INTEGER, next, 3, MPI_COMM_WORLD, req(2))
  call MPI_Waitall(2, req, sts)
  if (.not. MPI_ASYNC_PROTECTS_NONBLOCKING) call MPI_F_sync_reg(b)
  call MPI_Get_count(sts(1), MPI_INTEGER, n)
  call check(sts(1)%MPI_SOURCE == before .and. sts(1)%MPI_TAG == 3 .and. n == 8, 'status')
  call check(all(b == [(before + i, i = 1, 8)]) .and. req(1) == MPI_REQUEST_NULL, 'message')
  call MPI_Sendrecv(a, 1, MPI_INTEGER, next, 4, b, 1, MPI_INTEGER, before, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  call MPI_Op_create(adder, .true., op)
  call MPI_Allreduce(a, b, 8, MPI_INTEGER, op, MPI_COMM_WORLD)
  call check(b(8) == 8 * ranks + ranks * (ranks - 1) / 2, 'operator')
  call MPI_Op_free(op)
  call check(op == MPI_OP_NULL, 'freed operator')
  call MPI_Allreduce(MPI_IN_PLACE, a, 8, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call check(all(a == b), 'in place')
  call MPI_Comm_dup(MPI_COMM_SELF, comm)
  call check(comm /= MPI_COMM_SELF, 'duplicate')
  call MPI_Comm_set_name(comm, 'a name')
  call MPI_Comm_get_name(comm, name, length)
  call check(name == 'a name' .and. length == 6, 'name')
  call MPI_Comm_free(comm)
  extra = 7
  call MPI_Comm_create_keyval(copied, MPI_COMM_NULL_DELETE_FN, keyval, extra)
  value = 10
  call MPI_Comm_set_attr(MPI_COMM_SELF, keyval, value)
  call MPI_Comm_dup(MPI_COMM_SELF, comm)
  call MPI_Comm_get_attr(comm, keyval, value, flag)
  call check(flag .and. value == 11 .and. copies == 1, 'attribute')
  call MPI_Comm_free(comm)
  call MPI_Comm_create_errhandler(wrong, handler)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler)
  call MPI_Send(a, -1, MPI_INTEGER, rank, 0, MPI_COMM_WORLD, code)
  call check(errors == 1 .and. code /= MPI_SUCCESS, 'handler')
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL)
  call MPI_Buffer_attach(a, 32)
  call MPI_Buffer_detach(address, n)
  call MPI_Get_address(a, value)
  call check(n == 32 .and. transfer(address, value) == value, 'detached buffer')
  table = reshape([(i, i = 1, 24)], [4, 6])
  copy = 0
  ! A whole array and a contiguous part.
  call MPI_Sendrecv(table(:, 2:3), 8, MPI_INTEGER, rank, 5, copy, 8, MPI_INTEGER, rank, 5, MPI_COMM_WORLD, st)
  call check(all(copy(:, 1:2) == table(:, 2:3)) .and. all(copy(:, 3:) == 0), 'columns')
  if (MPI_SUBARRAYS_SUPPORTED) then
    copy = 0
    call MPI_Irecv(copy(1:3:2, 2:6:2), 6, MPI_INTEGER, rank, 6, MPI_COMM_WORLD, req(1))
    call MPI_Send(table(2, :), 6, MPI_INTEGER, rank, 6, MPI_COMM_WORLD)
    call MPI_Wait(req(1), st)
    call check(all(reshape(copy(1:3:2, 2:6:2), [6]) == table(2, :)) .and. sum(copy) == sum(table(2, :)), 'sections')
    copy = 0
    ! Fewer elements than the section has.
    call MPI_Sendrecv(table(2::2, :), 3, MPI_INTEGER, rank, 7, copy(4, :), 3, MPI_INTEGER, rank, 7, MPI_COMM_WORLD, st)
    call check(all(copy(4, 1:3) == [2, 4, 6]) .and. sum(copy) == 12, 'part of a section')
  end if
#ifdef DESCRIPTORS
  call sections()
  call large_counts(rank, next, before)
#endif
  call MPI_Finalize()
  if (rank == 0) print *, 'modern: all checks passed'
#ifdef DESCRIPTORS
contains
  ! Sections with gaps in calls that need the datatype itself: reductions, and blocks of several processes.
  subroutine sections()
    integer, asynchronous :: from(3, 4), to(3, 4)
    integer, parameter :: fixed(4) = [7, 0, 8, 0]
    integer :: blocks(2, 2 * ranks), packed(4), i, place
    integer(kind=MPI_ADDRESS_KIND) :: address, expected
    type(MPI_Request) :: req
    from = reshape([(i, i = 1, 12)], [3, 4])
    to = -1
    call MPI_Allreduce(from(2, :), to(3, :), 4, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    call check(all(to(3, :) == ranks * from(2, :)) .and. all(to(:2, :) == -1), 'sections in a reduction')
    call MPI_Allreduce(MPI_IN_PLACE, to(3, ::2), 2, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD)
    call check(all(to(3, :) == ranks * from(2, :)), 'section in place')
    to = -1
    call MPI_Reduce(fixed(::2), to(1, 1:3:2), 2, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD)
    if (rank == 0) call check(all(to(1, 1:3:2) == ranks * [7, 8]), 'sections of the root')
    if (rank /= 0) call check(all(to(1, 1:3:2) == -1), 'sections of other ranks')
    call check(all(to(2:, :) == -1) .and. all(to(1, 2::2) == -1), 'gaps of the root')
    to = -1
    call MPI_Reduce_local(from(1, :), to(1, :), 4, MPI_INTEGER, MPI_SUM)
    call check(all(to(1, :) == from(1, :) - 1) .and. all(to(2:, :) == -1), 'sections without a communicator')
    blocks = -1
    call MPI_Allgather(from(1, 2::2), 2, MPI_INTEGER, blocks(1, :), 2, MPI_INTEGER, MPI_COMM_WORLD)
    call check(all(blocks(1, :) == [(from(1, 2), from(1, 4), i = 1, ranks)]) .and. all(blocks(2, :) == -1), 'gathered section')
    blocks(2, :) = [(i, i = 1, 2 * ranks)]
    call MPI_Scatter(blocks(2, :), 2, MPI_INTEGER, to(2, ::3), 2, MPI_INTEGER, 0, MPI_COMM_WORLD)
    call check(all(to(2, ::3) == [2 * rank + 1, 2 * rank + 2]) .and. all(to(2, 2:3) == -1), 'scattered section')
    place = 0
    call MPI_Pack(from(3, :), 4, MPI_INTEGER, packed, 16, place, MPI_COMM_SELF)
    call check(place == 16 .and. all(packed == from(3, :)), 'packed section')
    call MPI_Get_address(from(2, :), address)
    call MPI_Get_address(from, expected)
    call check(address - expected == 4, 'address of a section')
    ! A buffer that stays in use after the call cannot be a copy: it is refused, and the error handler is called.
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
    call MPI_Iallreduce(from(2, :), to, 4, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, req, code)
    call check(code == MPI_ERR_BUFFER, 'refused section')
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL)
  end subroutine

  subroutine large_counts(rank, next, before)
    integer, intent(in) :: rank, next, before
    integer(kind=MPI_COUNT_KIND) :: n, size, lengths(2), places(2), position
    integer(kind=MPI_COUNT_KIND), allocatable :: counts(:)
    integer(kind=MPI_ADDRESS_KIND), allocatable :: displacements(:)
    integer, asynchronous :: from(2, 3), to(2, 3)
    integer, allocatable :: all_numbers(:)
    type(MPI_Datatype) :: made
    type(MPI_Status) :: st
    type(MPI_Request) :: req
    integer :: i, ranks
    call MPI_Comm_size(MPI_COMM_WORLD, ranks)
    from = reshape([(rank + i, i = 1, 6)], [2, 3])
    to = -1
    n = 6
    call MPI_Irecv(to, n, MPI_INTEGER, before, 8, MPI_COMM_WORLD, req)
    call MPI_Send(from, n, MPI_INTEGER, next, 8, MPI_COMM_WORLD)
    call MPI_Wait(req, st)
    call MPI_Get_count(st, MPI_INTEGER, size)
    call check(size == 6 .and. all(to == reshape([(before + i, i = 1, 6)], [2, 3])), 'large message')
    to = -1
    n = 3
    call MPI_Sendrecv(from(2, :), n, MPI_INTEGER, rank, 9, to(1, :), n, MPI_INTEGER, rank, 9, MPI_COMM_WORLD, st)
    call check(all(to(1, :) == from(2, :)) .and. all(to(2, :) == -1), 'large sections')
    call MPI_Allreduce(from(1, :), to(2, :), n, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD)
    call check(all(to(2, :) == from(1, :) - rank + ranks - 1), 'large reduction')
    n = 5
    call MPI_Type_contiguous(n, MPI_INTEGER, made)
    call MPI_Type_size(made, size)
    call check(size == 20, 'large datatype')
    call MPI_Type_free(made)
    lengths = [2, 1]
    places = [0, 12]
    call MPI_Type_create_struct(2_MPI_COUNT_KIND, lengths, places, [MPI_INTEGER, MPI_INTEGER], made)
    call MPI_Type_commit(made)
    call MPI_Pack_size(1_MPI_COUNT_KIND, made, MPI_COMM_SELF, size)
    call check(size >= 12, 'large size of packed data')
    position = 0
    to = -1
    call MPI_Pack(from, 1_MPI_COUNT_KIND, made, to, 24_MPI_COUNT_KIND, position, MPI_COMM_SELF)
    call check(position == 12 .and. all(to(:, 1) == from(:, 1)) .and. to(1, 2) == from(2, 2), 'large packed data')
    call MPI_Type_free(made)
    allocate (counts(ranks), displacements(ranks), all_numbers(2 * ranks))
    counts = 1
    displacements = [(2 * i, i = 0, ranks - 1)]
    all_numbers = -1
    call MPI_Allgatherv(rank, 1_MPI_COUNT_KIND, MPI_INTEGER, all_numbers, counts, displacements, MPI_INTEGER, MPI_COMM_WORLD)
    call check(all(all_numbers(::2) == [(i, i = 0, ranks - 1)]) .and. all(all_numbers(2::2) == -1), 'large gathering')
  end subroutine
#endif
end program
