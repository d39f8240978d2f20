! mpi_f08: typed handles, optional ierror, callbacks, conversions; results that can be checked.
module callbacks
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: copies = 0, deletes = 0, errors = 0, queries = 0, frees = 0, cancels = 0, large = 0
contains
  subroutine check(right, what)
    logical, intent(in) :: right
    character(len=*), intent(in) :: what
    if (right) return
    print *, 'WRONG: ', what
    error stop 1
  end subroutine

  subroutine adder(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer :: len
    type(MPI_Datatype) :: datatype
    integer, pointer :: a(:), b(:)
    call check(datatype == MPI_INTEGER, 'type of the operator')
    call c_f_pointer(invec, a, [len])
    call c_f_pointer(inoutvec, b, [len])
    b = b + a
  end subroutine

  subroutine adder_large(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer(MPI_COUNT_KIND) :: len
    type(MPI_Datatype) :: datatype
    integer, pointer :: a(:), b(:)
    call check(datatype == MPI_INTEGER, 'type of the large operator')
    call c_f_pointer(invec, a, [len])
    call c_f_pointer(inoutvec, b, [len])
    b = b + a
    large = large + 1
  end subroutine

  subroutine copied(oldtype, keyval, extra, in, out, flag, ierror)
    type(MPI_Datatype) :: oldtype
    integer :: keyval, ierror
    integer(MPI_ADDRESS_KIND) :: extra, in, out
    logical :: flag
    call check(extra == 5 .and. oldtype /= MPI_DATATYPE_NULL, 'state of copy')
    out = 2 * in
    flag = .true.
    copies = copies + 1
    ierror = MPI_SUCCESS
  end subroutine

  subroutine gone(datatype, keyval, value, extra, ierror)
    type(MPI_Datatype) :: datatype
    integer :: keyval, ierror
    integer(MPI_ADDRESS_KIND) :: value, extra
    deletes = deletes + 1
    ierror = MPI_SUCCESS
  end subroutine

  subroutine wrong(win, error_code)
    type(MPI_Win) :: win
    integer :: error_code
    call check(win /= MPI_WIN_NULL .and. error_code /= MPI_SUCCESS, 'arguments of the handler')
    errors = errors + 1
  end subroutine

  subroutine query(extra, status, ierror)
    integer(MPI_ADDRESS_KIND) :: extra
    type(MPI_Status) :: status
    integer :: ierror
    call check(extra == 42, 'state of query')
    status%MPI_SOURCE = 7
    status%MPI_TAG = 8
    call MPI_Status_set_elements(status, MPI_INTEGER, 3)
    call MPI_Status_set_cancelled(status, .false.)
    queries = queries + 1
    ierror = MPI_SUCCESS
  end subroutine

  subroutine free_it(extra, ierror)
    integer(MPI_ADDRESS_KIND) :: extra
    integer :: ierror
    frees = frees + 1
    ierror = MPI_SUCCESS
  end subroutine

  subroutine cancel(extra, complete, ierror)
    integer(MPI_ADDRESS_KIND) :: extra
    logical :: complete
    integer :: ierror
    if (.not. complete) cancels = cancels + 1
    ierror = MPI_SUCCESS
  end subroutine
end module

program new
  use callbacks
  implicit none
  integer :: rank, ranks, n, i, ierror, keyval, next, before, provided, version, subversion
  integer, asynchronous :: ones(1) = 1
  integer(MPI_ADDRESS_KIND), asynchronous :: zeros(1) = 0
  type(MPI_Datatype), asynchronous :: integers(1)
  integer :: a(8), b(8), f_status(MPI_STATUS_SIZE), weights(1), other(1)
  type(MPI_Comm) :: comm
  type(MPI_Op) :: op
  type(MPI_Datatype) :: pair, copy
  type(MPI_Request) :: request, requests(3)
  type(MPI_Status) :: status
  type(MPI_Win) :: win
  type(MPI_Errhandler) :: handler
  type(MPI_Info) :: info
  type(MPI_Session) :: session
  type(MPI_Group) :: group
  type(MPI_Message) :: message
  integer(MPI_ADDRESS_KIND) :: value, lb, extent
  integer(MPI_COUNT_KIND) :: many
  logical :: flag
  type(c_ptr) :: memory
  integer, pointer :: window(:)
  character(len=MPI_MAX_ERROR_STRING) :: text
  character(len=5) :: short
  double precision :: wide(3)
  complex :: both

  call MPI_Init_thread(MPI_THREAD_MULTIPLE, provided, ierror)
  call check(ierror == MPI_SUCCESS .and. provided >= MPI_THREAD_SINGLE, 'init')
  call MPI_Get_version(version, subversion)
  call check(version >= 4, 'version')
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  next = mod(rank + 1, ranks)
  before = mod(rank + ranks - 1, ranks)
  call MPI_Sizeof(wide, n)
  call check(n == 8, 'size of double precision')
  call MPI_Sizeof(both, n)
  call check(n == 8, 'size of complex')

  ! Operators, small and large.
  a = [(rank + i, i = 1, 8)]
  call MPI_Op_create(adder, .true., op)
  call MPI_Allreduce(a, b, 8, MPI_INTEGER, op, MPI_COMM_WORLD)
  call check(b(8) == 8 * ranks + ranks * (ranks - 1) / 2, 'operator')
  call MPI_Op_free(op)
  call check(op == MPI_OP_NULL, 'freed operator')
  call MPI_Op_create_c(adder_large, .true., op)
  call MPI_Allreduce(a, b, 8_MPI_COUNT_KIND, MPI_INTEGER, op, MPI_COMM_WORLD)
  call check(b(8) == 8 * ranks + ranks * (ranks - 1) / 2, 'large operator')
  call MPI_Allreduce(large, n, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call check(n > 0 .or. ranks == 1, 'calls of the large operator')
  call MPI_Op_free(op)

  ! Attributes of datatypes, predefined and own callbacks.
  call MPI_Type_create_keyval(copied, gone, keyval, 5_MPI_ADDRESS_KIND)
  call MPI_Type_contiguous(2, MPI_INTEGER, pair)
  call MPI_Type_set_attr(pair, keyval, 21_MPI_ADDRESS_KIND)
  call MPI_Type_dup(pair, copy)
  call MPI_Type_get_attr(copy, keyval, value, flag)
  call check(flag .and. value == 42 .and. copies == 1, 'copied attribute')
  call MPI_Type_free(copy)
  call MPI_Type_free(pair)
  call check(deletes == 2, 'deleted attributes')
  call MPI_Type_free_keyval(keyval)
  call MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, keyval, 0_MPI_ADDRESS_KIND)
  call MPI_Type_contiguous(2, MPI_INTEGER, pair)
  call MPI_Type_set_attr(pair, keyval, 21_MPI_ADDRESS_KIND)
  call MPI_Type_dup(pair, copy)
  call MPI_Type_get_attr(copy, keyval, value, flag)
  call check(.not. flag, 'not copied')
  call MPI_Type_get_extent(copy, lb, extent)
  call check(extent == 8, 'extent')
  call MPI_Type_size(copy, many)
  call check(many == 8, 'size as a large count')
  call MPI_Type_get_envelope(copy, n, i, provided, version)
  call check(version == MPI_COMBINER_DUP, 'envelope')
  call MPI_Type_free(copy)
  call MPI_Type_free(pair)

  ! Generalized requests.
  call MPI_Grequest_start(query, free_it, cancel, 42_MPI_ADDRESS_KIND, request)
  call MPI_Cancel(request)
  call MPI_Grequest_complete(request)
  call MPI_Wait(request, status)
  call check(queries == 1 .and. frees == 1 .and. cancels == 1, 'generalized request')
  call MPI_Get_count(status, MPI_INTEGER, n)
  call check(n == 3 .and. status%MPI_SOURCE == 7 .and. status%MPI_TAG == 8, 'its status')
  call MPI_Status_f082f(status, f_status)
  call check(f_status(MPI_SOURCE) == 7 .and. f_status(MPI_TAG) == 8, 'status to integers')
  f_status(MPI_TAG) = 9
  call MPI_Status_f2f08(f_status, status)
  call check(status%MPI_TAG == 9, 'status of integers')

  ! Matched probe, some requests.
  requests = MPI_REQUEST_NULL
  call MPI_Isend(a, 8, MPI_INTEGER, next, 1, MPI_COMM_WORLD, requests(2))
  call MPI_Mprobe(before, 1, MPI_COMM_WORLD, message, status)
  call MPI_Mrecv(b, 8, MPI_INTEGER, message, status)
  call check(message == MPI_MESSAGE_NULL .and. b(1) == before + 1, 'matched receive')
  call MPI_Waitany(3, requests, i, status)
  call check(i == 2 .and. requests(2) == MPI_REQUEST_NULL, 'waitany')
  call MPI_Testany(3, requests, i, flag, MPI_STATUS_IGNORE)
  call check(flag .and. i == MPI_UNDEFINED, 'testany without requests')

  ! Topologies with weights.
  call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, [before], [3], 1, [next], [4], MPI_INFO_NULL, .false., comm)
  call MPI_Dist_graph_neighbors(comm, 1, a, weights, 1, b, other)
  call check(a(1) == before .and. b(1) == next .and. weights(1) == 3 .and. other(1) == 4, 'weights')
  integers = MPI_INTEGER
  call MPI_Ineighbor_alltoallw(rank, ones, zeros, integers, b, ones, zeros, integers, comm, request)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call check(b(1) == before, 'a datatype for each neighbour')
  call MPI_Comm_set_name(comm, 'ring')
  call MPI_Comm_get_name(comm, short, n)
  call check(short == 'ring' .and. n == 4, 'name')
  call MPI_Comm_free(comm)

  ! Memory of C, windows, their errors.
  call MPI_Win_allocate(32_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, memory, win)
  call c_f_pointer(memory, window, [8])
  window = -1
  call MPI_Win_fence(0, win)
  call MPI_Put(rank, 1, MPI_INTEGER, next, 3_MPI_ADDRESS_KIND, 1, MPI_INTEGER, win)
  call MPI_Win_fence(0, win)
  call check(window(4) == before .and. window(3) == -1, 'put')
  call MPI_Win_create_errhandler(wrong, handler)
  call MPI_Win_set_errhandler(win, handler)
  call MPI_Put(rank, -1, MPI_INTEGER, next, 3_MPI_ADDRESS_KIND, 1, MPI_INTEGER, win, ierror)
  call check(errors == 1 .and. ierror /= MPI_SUCCESS, 'handler of the window')
  call MPI_Error_string(ierror, text, n)
  call check(n > 0 .and. text(n:n) /= ' ' .and. text(n + 1:) == ' ', 'error string')
  ! A section that cannot be passed: every second element of a vector with gaps.
  call MPI_Type_vector(2, 1, 2, MPI_INTEGER, pair)
  call MPI_Type_commit(pair)
  call MPI_Put(a(1:8:2), 1, pair, next, 3_MPI_ADDRESS_KIND, 2, MPI_INTEGER, win, ierror)
  call MPI_Error_string(ierror, text, n)
  call check(errors == 2 .and. text == 'MPI_Put: origin_addr must be contiguous: this section has gaps', 'refused section')
  call MPI_Type_free(pair)
  call MPI_Errhandler_free(handler)
  call MPI_Win_free(win)
  call MPI_Alloc_mem(64_MPI_ADDRESS_KIND, MPI_INFO_NULL, memory)
  call c_f_pointer(memory, window, [16])
  window = 1
  call MPI_Free_mem(window)

  ! A null handle gets C's error, with ierror.
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
  call MPI_Comm_size(MPI_COMM_NULL, n, ierror)
  call MPI_Error_class(ierror, n)
  call check(n == MPI_ERR_COMM, 'null communicator')
  call MPI_Send(a, 1, MPI_DATATYPE_NULL, rank, 0, MPI_COMM_WORLD, ierror)
  call MPI_Error_class(ierror, n)
  call check(n == MPI_ERR_TYPE, 'null datatype')
  call MPI_Send(a(1:8:2), 4, MPI_DATATYPE_NULL, rank, 0, MPI_COMM_WORLD, ierror)
  call MPI_Error_class(ierror, n)
  call check(n == MPI_ERR_TYPE, 'null datatype of a section')

  ! So does a handle that nobody has set, by the argument's name; a section that is no memory is told to the communicator.
  call MPI_Send(a, 1, MPI_Datatype(123456789), rank, 0, MPI_COMM_WORLD, ierror)
  call MPI_Error_string(ierror, text, n)
  call check(index(text, 'MPI_Send') > 0 .and. index(text, 'argument datatype') > 0, 'datatype that was not set')
  request = MPI_Request(-7)
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
  call MPI_Error_string(ierror, text, n)
  call check(index(text, 'MPI_Wait') > 0 .and. index(text, 'argument request') > 0, 'request that was not set')
  ! After an error, a request that is still pending keeps the copy of its section.
  call MPI_Type_vector(2, 1, 2, MPI_INTEGER, pair)
  call MPI_Type_commit(pair)
  b = -1
  a = [11, 12, 13, 14, 15, 16, 17, 18]
  requests(1:2) = [MPI_REQUEST_NULL, MPI_Request(-7)]
  call MPI_Irecv(b(1:7:2), 1, pair, rank, 3, MPI_COMM_WORLD, requests(1))
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierror)
  call check(ierror /= MPI_SUCCESS .and. requests(1) /= MPI_REQUEST_NULL, 'error of waitall')
  call MPI_Send(a, 2, MPI_INTEGER, rank, 3, MPI_COMM_WORLD)
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
  call check(b(1) == 11 .and. b(5) == 12 .and. b(3) == -1 .and. b(2) == -1, 'section after an error of waitall')
  call MPI_Type_free(pair)
  call MPI_Win_create(a(1:8:2), 16_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierror)
  call MPI_Error_class(ierror, n)
  call MPI_Error_string(ierror, text, i)
  call check(n == MPI_ERR_BUFFER .and. index(text, 'MPI_Win_create: base must be') == 1, 'section for a window')

  ! Sessions, groups, info.
  call MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, session)
  call MPI_Group_from_session_pset(session, 'mpi://WORLD', group)
  call MPI_Group_size(group, n)
  call check(n == ranks, 'group of a session')
  call MPI_Comm_create_from_group(group, 'fortran', MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, comm)
  call MPI_Allreduce(1, n, 1, MPI_INTEGER, MPI_SUM, comm)
  call check(n == ranks, 'communicator of a group')
  call MPI_Comm_free(comm)
  call MPI_Group_free(group)
  call MPI_Session_finalize(session)
  call MPI_Info_create(info)
  call MPI_Info_set(info, 'longer than a short string', 'v')
  call MPI_Info_get_nkeys(info, n)
  call check(n == 1, 'keys')
  call MPI_Info_get_valuelen(info, 'longer than a short string', n, flag)
  call check(flag .and. n == 1, 'length of a value')
  call MPI_Info_free(info)
  call check(info == MPI_INFO_NULL .and. .not. info /= MPI_INFO_NULL, 'comparison')
  call MPI_Finalize()
  if (rank == 0) print *, 'new: all checks passed'
end program
