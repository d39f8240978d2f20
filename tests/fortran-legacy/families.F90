! Programs of older ABIs, with mpif.h, or with the module mpi if MODULE is defined. Both libraries' headers are those of MPI 3.1 or
! later. Results of each family are checked; removed procedures are external, as for programs that were built long ago.
#include "checks.h"

module counters
  use checks
  implicit none
  integer :: copies = 0, deletes = 0, old_copies = 0, old_deletes = 0
end module

program families
  use counters
  USES
  implicit none
  INCLUDES
  integer :: ierr, rank, ranks, next, before
  call MPI_Initialized_check(.false.)
  call MPI_Init(ierr)
  call MPI_Initialized_check(.true.)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  next = mod(rank + 1, ranks)
  before = mod(rank + ranks - 1, ranks)
  call messages(rank, next, before)
  call completions(rank)
  call collectives(rank, ranks)
  call datatypes(rank)
  call removed(rank)
  call attributes(rank)
  call topologies(rank, ranks, next, before)
  call MPI_Finalize(ierr)
  if (rank == 0) print *, 'families: all checks passed'
end program

subroutine MPI_Initialized_check(expected)
  use counters
  USES
  implicit none
  INCLUDES
  logical, intent(in) :: expected
  logical :: flag
  integer :: ierr, version, subversion
  call MPI_Initialized(flag, ierr)
  call check(flag .eqv. expected, 'initialized')
  call MPI_Get_version(version, subversion, ierr)
  call check(version >= 3, 'version')
end subroutine

subroutine messages(rank, next, before)
  use counters
  USES
  implicit none
  INCLUDES
  integer, intent(in) :: rank, next, before
  ! Calls change the buffers of earlier calls.
  integer, volatile :: a(8), b(8)
  integer :: req(2), sts(MPI_STATUS_SIZE, 2), st(MPI_STATUS_SIZE), box(MPI_STATUS_SIZE + 1), n, ierr, message
  double precision :: t
  logical :: flag
  t = MPI_Wtime()
  call check(t <= PMPI_Wtime() .and. MPI_Wtick() > 0, 'time')
  a = rank
  b = -1
  call MPI_Irecv(b, 1, MPI_INTEGER, before, 3, MPI_COMM_WORLD, req(2), ierr)
  call MPI_Isend(a, 1, MPI_INTEGER, next, 3, MPI_COMM_WORLD, req(1), ierr)
  call MPI_Waitall(2, req, sts, ierr)
  call check(b(1) == before .and. b(2) == -1, 'irecv')
  call check(sts(MPI_SOURCE, 2) == before .and. sts(MPI_TAG, 2) == 3, 'statuses')
  call MPI_Get_count(sts(:, 2), MPI_INTEGER, n, ierr)
  call check(n == 1, 'count')
  call check(all(req == MPI_REQUEST_NULL), 'null requests')
  call PMPI_Sendrecv(a, 1, MPI_INTEGER, next, 4, b(2), 1, MPI_INTEGER, before, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  call check(b(2) == before, 'profiling name')
  call MPI_Recv(b, 1, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD, st, ierr)
  call check(st(MPI_SOURCE) == MPI_PROC_NULL .and. st(MPI_TAG) == MPI_ANY_TAG, 'no process')
  ! A status may begin at any integer.
  do n = 1, 2
    call MPI_Recv(b, 1, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD, box(n:), ierr)
    call check(box(n - 1 + MPI_SOURCE) == MPI_PROC_NULL, 'status within an array')
  end do
  call MPI_Isend(a, 2, MPI_INTEGER, next, 5, MPI_COMM_WORLD, req(1), ierr)
  call MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, message, st, ierr)
  call check(st(MPI_SOURCE) == before .and. st(MPI_TAG) == 5, 'probe')
  call MPI_Mrecv(b, 8, MPI_INTEGER, message, st, ierr)
  call check(message == MPI_MESSAGE_NULL .and. b(2) == before, 'matched receive')
  call MPI_Wait(req(1), MPI_STATUS_IGNORE, ierr)
  call MPI_Recv_init(b, 1, MPI_INTEGER, before, 6, MPI_COMM_WORLD, req(1), ierr)
  call MPI_Send_init(a, 1, MPI_INTEGER, next, 6, MPI_COMM_WORLD, req(2), ierr)
  do n = 1, 3
    a(1) = rank + 100 * n
    call MPI_Startall(2, req, ierr)
    call MPI_Waitall(2, req, MPI_STATUSES_IGNORE, ierr)
    call check(b(1) == before + 100 * n, 'persistent')
  end do
  call MPI_Request_free(req(1), ierr)
  call MPI_Request_free(req(2), ierr)
  call check(all(req == MPI_REQUEST_NULL), 'freed requests')
  call MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, flag, st, ierr)
  call check(.not. flag, 'no message')
  call MPI_Buffer_attach(a, 0, ierr)
  call MPI_Buffer_detach(b, n, ierr)
  call check(n == 0, 'buffer')
end subroutine

subroutine completions(rank)
  use counters
  USES
  implicit none
  INCLUDES
  integer, intent(in) :: rank
  integer :: b(4), req(4), st(MPI_STATUS_SIZE), sts(MPI_STATUS_SIZE, 4), places(4), i, n, ierr
  logical :: flag
  req = MPI_REQUEST_NULL
  call MPI_Irecv(b, 1, MPI_INTEGER, rank, 5, MPI_COMM_WORLD, req(2), ierr)
  call MPI_Test(req(2), flag, st, ierr)
  call check(.not. flag .and. req(2) /= MPI_REQUEST_NULL, 'test')
  call MPI_Send(rank, 1, MPI_INTEGER, rank, 5, MPI_COMM_WORLD, ierr)
  call MPI_Waitany(4, req, i, st, ierr)
  call check(i == 2 .and. req(2) == MPI_REQUEST_NULL, 'places count from one')
  call MPI_Irecv(b, 1, MPI_INTEGER, rank, 6, MPI_COMM_WORLD, req(3), ierr)
  call MPI_Testany(4, req, i, flag, st, ierr)
  call check(.not. flag .and. i == MPI_UNDEFINED, 'testany')
  call MPI_Send(rank, 1, MPI_INTEGER, rank, 6, MPI_COMM_WORLD, ierr)
  call MPI_Waitsome(4, req, n, places, sts, ierr)
  call check(n == 1 .and. places(1) == 3 .and. sts(MPI_TAG, 1) == 6, 'waitsome')
  call MPI_Waitany(2, req, i, st, ierr)
  call check(i == MPI_UNDEFINED, 'no request')
  call MPI_Waitsome(2, req, n, places, MPI_STATUSES_IGNORE, ierr)
  call check(n == MPI_UNDEFINED, 'no requests')
  call MPI_Irecv(b, 1, MPI_INTEGER, rank, 7, MPI_COMM_WORLD, req(4), ierr)
  call MPI_Cancel(req(4), ierr)
  call MPI_Wait(req(4), st, ierr)
  call MPI_Test_cancelled(st, flag, ierr)
  call check(flag, 'cancelled')
end subroutine

subroutine collectives(rank, ranks)
  use counters
  USES
  implicit none
  INCLUDES
  integer, intent(in) :: rank, ranks
  external :: adder
  integer, volatile :: a(8), comm
  integer :: b(8), op, i, ierr, request
  integer, volatile :: from(ranks)
  integer :: counts(ranks), places(ranks), types(ranks), to(ranks)
  logical :: flag, all_flags
  a = [(rank + i, i = 1, 8)]
  call MPI_Op_create(adder, .true., op, ierr)
  call MPI_Op_commutative(op, flag, ierr)
  call check(flag, 'commutative')
  call MPI_Allreduce(a, b, 8, MPI_INTEGER, op, MPI_COMM_WORLD, ierr)
  call check(b(8) == 8 * ranks + ranks * (ranks - 1) / 2, 'operator')
  call MPI_Op_free(op, ierr)
  call check(op == MPI_OP_NULL, 'freed operator')
  call MPI_Allreduce(MPI_IN_PLACE, a, 8, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  call check(all(a == b), 'in place')
  if (rank == 0) then
    call MPI_Reduce(MPI_IN_PLACE, a, 8, MPI_INTEGER, MPI_MAX, 0, MPI_COMM_WORLD, ierr)
  else
    call MPI_Reduce(a, b, 8, MPI_INTEGER, MPI_MAX, 0, MPI_COMM_WORLD, ierr)
  end if
  call check(all(a == b), 'reduce in place')
  flag = rank == 0
  call MPI_Allreduce(flag, all_flags, 1, MPI_LOGICAL, MPI_LOR, MPI_COMM_WORLD, ierr)
  call check(all_flags, 'logical or')
  call MPI_Ibcast(a, 8, MPI_INTEGER, 0, MPI_COMM_WORLD, request, ierr)
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  counts = 1
  places = [(4 * i, i = 0, ranks - 1)]
  types = MPI_INTEGER
  from = [(100 * rank + i, i = 0, ranks - 1)]
  to = -1
  call MPI_Alltoallw(from, counts, places, types, to, counts, places, types, MPI_COMM_WORLD, ierr)
  call check(all(to == [(100 * i + rank, i = 0, ranks - 1)]), 'alltoallw')
  call MPI_Ialltoallw(MPI_IN_PLACE, counts, places, types, from, counts, places, types, MPI_COMM_WORLD, request, ierr)
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  call check(all(from == to), 'alltoallw in place')
  call MPI_Gather(rank, 1, MPI_INTEGER, to, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
  if (rank == 0) call check(all(to == [(i, i = 0, ranks - 1)]), 'gather')
  comm = MPI_COMM_NULL
  call MPI_Comm_idup(MPI_COMM_WORLD, comm, request, ierr)
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  call check(comm /= MPI_COMM_NULL, 'idup')
  call MPI_Comm_compare(MPI_COMM_WORLD, comm, i, ierr)
  call check(i == MPI_CONGRUENT, 'duplicate')
  call MPI_Comm_free(comm, ierr)
  call MPI_Comm_split(MPI_COMM_WORLD, MPI_UNDEFINED, 0, comm, ierr)
  call check(comm == MPI_COMM_NULL, 'split')
end subroutine

subroutine adder(in, inout, len, type)
  use counters
  USES
  implicit none
  INCLUDES
  integer :: len, type, in(len), inout(len)
  call check(type == MPI_INTEGER, 'type of the operator')
  inout = inout + in
end subroutine

subroutine datatypes(rank)
  use counters
  USES
  implicit none
  INCLUDES
  integer, intent(in) :: rank
  integer, volatile :: a(8)
  integer :: b(8), blocks(2), types(2), new, ierr, n, integers, addresses, contents, combiner, place
  integer :: array(10), kinds(3)
  integer(kind=MPI_ADDRESS_KIND) :: places(2), lower, extent, array_of_places(3)
  character(len=40) :: packed
  a = [10, 20, 30, 40, 50, 60, 70, 80]
  call MPI_Get_address(a(1), places(1), ierr)
  call MPI_Get_address(a(5), places(2), ierr)
  call check(places(2) - places(1) == 16, 'address')
  blocks = [1, 2]
  types = MPI_INTEGER
  call MPI_Type_create_struct(2, blocks, places, types, new, ierr)
  call MPI_Type_commit(new, ierr)
  b = -1
  call MPI_Sendrecv(MPI_BOTTOM, 1, new, rank, 1, b, 3, MPI_INTEGER, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  call check(all(b(1:4) == [10, 50, 60, -1]), 'bottom')
  call MPI_Type_get_envelope(new, integers, addresses, contents, combiner, ierr)
  call check(integers == 3 .and. addresses == 2 .and. contents == 2 .and. combiner == MPI_COMBINER_STRUCT, 'envelope')
  kinds = -5
  call MPI_Type_get_contents(new, 10, 3, 3, array, array_of_places, kinds, ierr)
  call check(array(1) == 2 .and. array_of_places(2) == places(2) .and. all(kinds(:2) == MPI_INTEGER), 'contents')
  call check(kinds(3) == -5, 'no more contents')
  call MPI_Type_free(new, ierr)
  call check(new == MPI_DATATYPE_NULL, 'freed type')
  call MPI_Type_get_extent(MPI_DOUBLE_PRECISION, lower, extent, ierr)
  call check(lower == 0 .and. extent == 8, 'extent')
  call MPI_Type_size(MPI_DOUBLE_COMPLEX, n, ierr)
  call check(n == 16, 'size')
  call MPI_Type_vector(4, 1, 2, MPI_INTEGER, new, ierr)
  call MPI_Type_commit(new, ierr)
  place = 0
  call MPI_Pack(a, 1, new, packed, 40, place, MPI_COMM_WORLD, ierr)
  n = place
  place = 0
  call MPI_Unpack(packed, n, place, b, 4, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  call check(place == 16 .and. all(b(1:4) == [10, 30, 50, 70]), 'pack')
  call MPI_Type_free(new, ierr)
end subroutine

subroutine removed(rank)
  use counters
  USES
  implicit none
  INCLUDES
  integer, intent(in) :: rank
  integer :: lengths(2), places(2), types(2), new, extent, ierr, a, b, box(3)
  lengths = 1
  places = [4, 12]
  types = [MPI_INTEGER, MPI_INTEGER]
  call MPI_Type_struct(2, lengths, places, types, new, ierr)
  call MPI_Type_extent(new, extent, ierr)
  call check(extent == 12, 'extent of a struct')
  call MPI_Type_lb(new, extent, ierr)
  call check(extent == 4, 'lower bound')
  call MPI_Type_ub(new, extent, ierr)
  call check(extent == 16, 'upper bound')
  call MPI_Type_free(new, ierr)
  call MPI_Type_hvector(2, 1, 8, MPI_INTEGER, new, ierr)
  call MPI_Type_extent(new, extent, ierr)
  call check(extent == 12, 'hvector')
  call MPI_Type_free(new, ierr)
  call MPI_Type_hindexed(2, lengths, places, MPI_INTEGER, new, ierr)
  call MPI_Type_ub(new, extent, ierr)
  call check(extent == 16, 'hindexed')
  call MPI_Type_free(new, ierr)
  call MPI_Address(box(1), a, ierr)
  call MPI_Address(box(3), b, ierr)
  call check(b - a == 8 .and. rank >= 0, 'address of MPI 1')
end subroutine

subroutine attributes(rank)
  use counters
  USES
  implicit none
  INCLUDES
  integer, intent(in) :: rank
  external :: copied, gone, old_copied, old_gone
  integer :: keyval, comm, ierr, old_value, old_extra
  integer(kind=MPI_ADDRESS_KIND) :: value, extra
  logical :: flag
  extra = 77
  call MPI_Comm_create_keyval(copied, gone, keyval, extra, ierr)
  value = 5000000000_8 + rank
  call MPI_Comm_set_attr(MPI_COMM_SELF, keyval, value, ierr)
  call MPI_Comm_dup(MPI_COMM_SELF, comm, ierr)
  call MPI_Comm_get_attr(comm, keyval, extra, flag, ierr)
  call check(flag .and. extra == value + 1, 'copied attribute')
  call check(copies == 1 .and. deletes == 0, 'copied')
  call MPI_Comm_free(comm, ierr)
  call check(deletes == 1 .and. comm == MPI_COMM_NULL, 'gone')
  call MPI_Comm_delete_attr(MPI_COMM_SELF, keyval, ierr)
  call MPI_Comm_get_attr(MPI_COMM_SELF, keyval, extra, flag, ierr)
  call check(deletes == 2 .and. .not. flag, 'deleted')
  call MPI_Comm_free_keyval(keyval, ierr)
  call check(keyval == MPI_KEYVAL_INVALID, 'keyval')
  extra = 0
  call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, keyval, extra, ierr)
  call MPI_Comm_set_attr(MPI_COMM_SELF, keyval, value, ierr)
  call MPI_Comm_dup(MPI_COMM_SELF, comm, ierr)
  call MPI_Comm_get_attr(comm, keyval, extra, flag, ierr)
  call check(flag .and. extra == value, 'predefined copy')
  call MPI_Comm_free(comm, ierr)
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag, ierr)
  call check(flag .and. value >= 32767, 'tag bound')
  ! Attributes as plain integers, of MPI 1.
  old_extra = 33
  call MPI_Keyval_create(old_copied, old_gone, keyval, old_extra, ierr)
  call MPI_Attr_put(MPI_COMM_SELF, keyval, -rank - 1, ierr)
  call MPI_Comm_dup(MPI_COMM_SELF, comm, ierr)
  call MPI_Attr_get(comm, keyval, old_value, flag, ierr)
  call check(flag .and. old_value == -rank - 1 .and. old_copies == 1, 'old attribute')
  call MPI_Comm_free(comm, ierr)
  call MPI_Attr_delete(MPI_COMM_SELF, keyval, ierr)
  call check(old_deletes == 2, 'old delete')
  call MPI_Keyval_free(keyval, ierr)
  call MPI_Attr_get(MPI_COMM_WORLD, MPI_TAG_UB, old_value, flag, ierr)
  call check(flag .and. old_value == value, 'old tag bound')
end subroutine

subroutine copied(comm, keyval, extra, in, out, flag, ierr)
  use counters
  implicit none
  integer :: comm, keyval, ierr
  integer(8) :: extra, in, out
  logical :: flag
  call check(extra == 77, 'extra state')
  out = in + 1
  flag = .true.
  copies = copies + 1
  ierr = 0
end subroutine

subroutine gone(comm, keyval, value, extra, ierr)
  use counters
  implicit none
  integer :: comm, keyval, ierr
  integer(8) :: extra, value
  call check(extra == 77 .and. value >= 5000000000_8, 'extra state of delete')
  deletes = deletes + 1
  ierr = 0
end subroutine

subroutine old_copied(comm, keyval, extra, in, out, flag, ierr)
  use counters
  implicit none
  integer :: comm, keyval, ierr, extra, in, out
  logical :: flag
  call check(extra == 33, 'old extra state')
  out = in
  flag = .true.
  old_copies = old_copies + 1
  ierr = 0
end subroutine

subroutine old_gone(comm, keyval, value, extra, ierr)
  use counters
  implicit none
  integer :: comm, keyval, ierr, extra, value
  call check(extra == 33 .and. value < 0, 'old extra state of delete')
  old_deletes = old_deletes + 1
  ierr = 0
end subroutine

subroutine topologies(rank, ranks, next, before)
  use counters
  USES
  implicit none
  INCLUDES
  integer, intent(in) :: rank, ranks, next, before
  integer :: dims(2), coords(2), sources(1), destinations(1), cart, comm, group, n, i, ierr, b(2), ranges(3, 1)
  logical :: wrap(2), keep(2), flag
  dims = 0
  call MPI_Dims_create(ranks, 2, dims, ierr)
  wrap = [.true., .false.]
  call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, wrap, .false., cart, ierr)
  keep = .false.
  call MPI_Cart_get(cart, 2, dims, keep, coords, ierr)
  call check(keep(1) .and. .not. keep(2), 'cart get')
  call MPI_Cart_rank(cart, coords, n, ierr)
  call check(n == rank, 'cart rank')
  keep = [.false., .true.]
  call MPI_Cart_sub(cart, keep, comm, ierr)
  call MPI_Comm_size(comm, n, ierr)
  call check(n == dims(2), 'cart sub')
  call MPI_Comm_free(comm, ierr)
  call MPI_Comm_free(cart, ierr)
  sources = before
  destinations = next
  call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, sources, MPI_UNWEIGHTED, 1, destinations, MPI_UNWEIGHTED, &
    MPI_INFO_NULL, .false., comm, ierr)
  call MPI_Dist_graph_neighbors_count(comm, i, n, flag, ierr)
  call check(i == 1 .and. n == 1 .and. .not. flag, 'graph')
  call MPI_Neighbor_allgather(rank, 1, MPI_INTEGER, b, 1, MPI_INTEGER, comm, ierr)
  call check(b(1) == before, 'neighbour')
  call MPI_Comm_free(comm, ierr)
  call MPI_Comm_group(MPI_COMM_WORLD, group, ierr)
  call MPI_Group_rank(group, n, ierr)
  call check(n == rank, 'group')
  ranges(:, 1) = [0, ranks - 1, 2]
  call MPI_Group_range_incl(group, 1, ranges, comm, ierr)
  call MPI_Group_size(comm, n, ierr)
  call check(n == (ranks + 1) / 2, 'range')
  call MPI_Group_free(comm, ierr)
  call MPI_Group_free(group, ierr)
end subroutine
