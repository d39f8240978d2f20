! Sections of arrays in every family that takes a buffer, beside contiguous copies of them.
program sections
  use mpi_f08
  implicit none
  type :: point
    sequence
    double precision :: x
    integer :: k(2)
  end type
  integer, parameter :: n1 = 9, n2 = 7, n3 = 5
  integer :: rank, ranks, next, before, kind, number, tests = 0
  integer, asynchronous, target :: from(n1, n2, n3), to(n1, n2, n3)

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  next = mod(rank + 1, ranks)
  before = mod(rank + ranks - 1, ranks)
  do kind = 1, 9
    call fill()
    select case (kind)
    case (1)
      call all(from(1:9:2, :, :), to(1:9:2, :, :))
    case (2)
      call all(from(9:1:-2, :, :), to(:5, :, :))
    case (3)
      call all(from(:, 7:1:-1, 1:5:2), to(9:1:-1, :, 5:1:-2))
    case (4)
      call all(from(3:4, 2:6:2, 2:5:3), to(8:9, 1:7:3, 4:5))
    case (5)
      call all(from(:, :, 2:2), to(:, :, 4:4))
    case (6)
      call all(from(5:5, :, 1:1), to(1:1, 7:1:-1, 3:3))
    case (7)
      call all(from(2:9:3, 1:1, 5:1:-4), to(1:3, 3:3, 1:2))
    case (8)
      call all(from(4:3, :, :), to(4:3, :, :))
    case (9)
      call all(from(1:8:7, :, :), to(4:6:2, :, :))
    end select
  end do
  call others()
  call derived()
  call optimised()
  call windows()
  if (rank == 0) print *, 'sections: ', tests, ' checks passed'
  call MPI_Finalize()

contains

  subroutine fill()
    integer :: i
    from = reshape([(i + 1000 * rank, i = 1, n1 * n2 * n3)], [n1, n2, n3])
    to = -1
  end subroutine

  subroutine check(right, what)
    logical, intent(in) :: right
    character(len=*), intent(in) :: what
    tests = tests + 1
    if (right) return
    print *, 'WRONG: ', what, ', section', kind, ', rank', rank
    error stop 1
  end subroutine

  ! What the neighbour before sent: the same elements with its rank in them.
  subroutine all(a, b)
    integer, intent(in), asynchronous, target :: a(:, :, :)
    integer, intent(inout), asynchronous, target :: b(:, :, :)
    integer :: n
    integer, allocatable :: flat(:), got(:), many(:)
    type(MPI_Request) :: requests(2)
    type(MPI_Status) :: status, statuses(2)
    integer, allocatable :: saved(:, :, :)
    logical :: done

    n = size(a)
    ! Without this, gfortran 12 leaves the distance of its elements unset.
    allocate(flat(n))
    flat = pack(a, .true.)
    saved = to
    allocate(got(n), many(n * ranks))

    call MPI_Sendrecv(a, n, MPI_INTEGER, next, 1, b, n, MPI_INTEGER, before, 1, MPI_COMM_WORLD, status)
    call MPI_Get_count(status, MPI_INTEGER, number)
    call check(number == n, 'count of sendrecv')
    call equal(b, flat + 1000 * (before - rank), 'sendrecv')
    call untouched(b, saved, 'sendrecv')

    b = -1
    call MPI_Irecv(b, n, MPI_INTEGER, before, 2, MPI_COMM_WORLD, requests(1))
    call MPI_Isend(a, n, MPI_INTEGER, next, 2, MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, statuses)
    call check(statuses(1)%MPI_SOURCE == before, 'source of irecv')
    call equal(b, flat + 1000 * (before - rank), 'isend and irecv')
    call untouched(b, saved, 'isend and irecv')

    ! Fewer elements than the section has: the first ones.
    if (n > 3) then
      b = -1
      call MPI_Sendrecv(a, n - 3, MPI_INTEGER, next, 1, b, n - 3, MPI_INTEGER, before, 1, MPI_COMM_WORLD, status)
      call equal(b, [flat(:n - 3) + 1000 * (before - rank), -1, -1, -1], 'a part of the section')
    end if

    ! Persistent: what stands in the section when it is started.
    b = -1
    call MPI_Send_init(a, n, MPI_INTEGER, next, 3, MPI_COMM_WORLD, requests(1))
    call MPI_Recv_init(b, n, MPI_INTEGER, before, 3, MPI_COMM_WORLD, requests(2))
    call MPI_Startall(2, requests)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call equal(b, flat + 1000 * (before - rank), 'persistent')
    b = -1
    call MPI_Startall(2, requests)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call equal(b, flat + 1000 * (before - rank), 'persistent, again')
    call MPI_Request_free(requests(1))
    call MPI_Request_free(requests(2))

    b = -1
    if (rank == 0) b = a
    call MPI_Bcast(b, n, MPI_INTEGER, 0, MPI_COMM_WORLD)
    call equal(b, flat - 1000 * rank, 'bcast')
    b = -1
    if (rank == 0) b = a
    call MPI_Ibcast(b, n, MPI_INTEGER, 0, MPI_COMM_WORLD, requests(1))
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
    call equal(b, flat - 1000 * rank, 'ibcast')

    call MPI_Allgather(a, n, MPI_INTEGER, many, n, MPI_INTEGER, MPI_COMM_WORLD)
    call check(all_of(many, flat), 'allgather of a section')
    many = -1
    call MPI_Iallgather(a, n, MPI_INTEGER, many, n, MPI_INTEGER, MPI_COMM_WORLD, requests(1))
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
    call check(all_of(many, flat), 'iallgather of a section')

    b = -1
    call MPI_Scatter(many, n, MPI_INTEGER, b, n, MPI_INTEGER, 0, MPI_COMM_WORLD)
    call equal(b, flat, 'scatter to a section')

    ! Blocks: a piece of the section for each rank.
    if (mod(n, ranks) == 0) then
      b = -1
      call MPI_Alltoall(a, n / ranks, MPI_INTEGER, got, n / ranks, MPI_INTEGER, MPI_COMM_WORLD)
      call MPI_Alltoall(a, n / ranks, MPI_INTEGER, b, n / ranks, MPI_INTEGER, MPI_COMM_WORLD)
      call equal(b, got, 'alltoall between sections')
      b = -1
      call MPI_Ialltoall(a, n / ranks, MPI_INTEGER, b, n / ranks, MPI_INTEGER, MPI_COMM_WORLD, requests(1))
      done = .false.
      do while (.not. done)
        call MPI_Test(requests(1), done, MPI_STATUS_IGNORE)
      end do
      call equal(b, got, 'ialltoall between sections')
      b = -1
      call MPI_Allgather(flat, n / ranks, MPI_INTEGER, got, n / ranks, MPI_INTEGER, MPI_COMM_WORLD)
      call MPI_Allgather(flat, n / ranks, MPI_INTEGER, b, n / ranks, MPI_INTEGER, MPI_COMM_WORLD)
      call equal(b, got, 'allgather to a section')
      b = -1
      call MPI_Scatter(a, n / ranks, MPI_INTEGER, got, n / ranks, MPI_INTEGER, 0, MPI_COMM_WORLD)
      b = a
      call MPI_Gather(got, n / ranks, MPI_INTEGER, b, n / ranks, MPI_INTEGER, 0, MPI_COMM_WORLD)
      call equal(b, flat, 'scatter of a section, gather to one')
    end if

    b = -1
    call MPI_Allreduce(a, got, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    call check(sum(got - (flat - 1000 * rank) * ranks) == n * 500 * ranks * (ranks - 1), 'allreduce of a section')
    call MPI_Allreduce(a, b, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    call equal(b, got, 'allreduce to a section')
    b = a
    call MPI_Allreduce(MPI_IN_PLACE, b, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    call equal(b, got, 'allreduce in place')
    b = -1
    call MPI_Iallreduce(a, b, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(1))
    call MPI_Waitany(1, requests, number, MPI_STATUS_IGNORE)
    call check(number == 1, 'index of waitany')
    call equal(b, got, 'iallreduce to a section')
    call untouched(b, saved, 'iallreduce')
    b = -1
    call MPI_Allreduce_init(a, b, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, requests(1))
    call MPI_Start(requests(1))
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
    call equal(b, got, 'allreduce_init')
    b = -1
    call MPI_Start(requests(1))
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
    call equal(b, got, 'allreduce_init, again')
    call MPI_Request_free(requests(1))
    b = -1
    call MPI_Reduce(a, b, n, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD)
    if (rank == 0) call equal(b, got, 'reduce')
    b = -1
    call MPI_Scan(a, b, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    if (rank == ranks - 1) call equal(b, got, 'scan')
    to = saved
  end subroutine


  subroutine equal(b, expected, what)
    integer, intent(in) :: b(:, :, :), expected(:)
    character(len=*), intent(in) :: what
    integer :: flat(size(b))
    flat = pack(b, .true.)
    call check(.not. any(flat /= expected), what)
  end subroutine

  ! Nothing beside the section was written.
  subroutine untouched(b, saved, what)
    integer, intent(inout), target :: b(:, :, :)
    integer, intent(in) :: saved(:, :, :)
    character(len=*), intent(in) :: what
    integer, allocatable :: kept(:, :, :)
    kept = b
    b = -1
    call check(.not. any(to /= -1) .and. size(saved) == size(to), what // ': beside the section')
    b = kept
  end subroutine

  logical function all_of(many, flat)
    integer, intent(in) :: many(:), flat(:)
    integer :: i
    all_of = .true.
    do i = 0, ranks - 1
      if (any(many(i * size(flat) + 1:(i + 1) * size(flat)) /= flat + 1000 * (i - rank))) all_of = .false.
    end do
  end function

  ! Allocatable, pointer, assumed size, one dimension, characters, large counts, datatypes of several elements.
  subroutine others()
    integer, allocatable, target, asynchronous :: big(:, :)
    integer, pointer, asynchronous :: part(:, :)
    integer, asynchronous :: line(40), back(40)
    character(len=3) :: words(8), read(4)
    type(MPI_Datatype) :: pair
    type(MPI_Request) :: request
    integer :: i, position, place(2)
    character :: packed(400)

    kind = 100
    allocate(big(20, 10))
    big = reshape([(i, i = 1, 200)], [20, 10])
    part => big(2:20:3, 1:10:4)
    back = -1
    call MPI_Sendrecv(part, 21, MPI_INTEGER, rank, 0, back, 21, MPI_INTEGER, rank, 0, MPI_COMM_WORLD, &
      MPI_STATUS_IGNORE)
    call check(.not. any(back(:21) /= pack(part, .true.)), 'pointer')
    line = [(i, i = 1, 40)]
    call sized(line)
    back = -1
    call MPI_Irecv(back(40:2:-2), 20_MPI_COUNT_KIND, MPI_INTEGER, rank, 5, MPI_COMM_WORLD, request)
    call MPI_Send(line(1:39:2), 20_MPI_COUNT_KIND, MPI_INTEGER, rank, 5, MPI_COMM_WORLD)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(.not. any(back(40:2:-2) /= line(1:39:2)) .and. all_minus(back(1:39:2)), 'large counts')
    words = [('w' // char(64 + i) // 'x', i = 1, 8)]
    call MPI_Sendrecv(words(2:8:2), 12, MPI_CHARACTER, rank, 0, read, 12, MPI_CHARACTER, rank, 0, MPI_COMM_WORLD, &
      MPI_STATUS_IGNORE)
    call check(.not. any(read /= words(2:8:2)), 'characters')
    call MPI_Type_contiguous(2, MPI_INTEGER, pair)
    call MPI_Type_commit(pair)
    back = -1
    call MPI_Sendrecv(line(1:39:2), 10, pair, rank, 0, back, 20, MPI_INTEGER, rank, 0, MPI_COMM_WORLD, &
      MPI_STATUS_IGNORE)
    call check(.not. any(back(:20) /= line(1:39:2)), 'a datatype of two elements')
    call MPI_Type_free(pair)
    ! A datatype with gaps of its own: of a section's elements each second one.
    call MPI_Type_vector(5, 1, 2, MPI_INTEGER, pair)
    call MPI_Type_commit(pair)
    back = -1
    call MPI_Irecv(back, 5, MPI_INTEGER, rank, 6, MPI_COMM_WORLD, request)
    call MPI_Send(line(1:39:2), 1, pair, rank, 6, MPI_COMM_WORLD)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(.not. any(back(:5) /= line(1:17:4)), 'a datatype with gaps over a section')
    call MPI_Type_free(pair)
    position = 0
    call MPI_Pack(line(40:1:-3), 14, MPI_INTEGER, packed, 400, position, MPI_COMM_WORLD)
    position = 0
    back = -1
    call MPI_Unpack(packed, 400, position, back(1:27:2), 14, MPI_INTEGER, MPI_COMM_WORLD)
    call check(.not. any(back(1:27:2) /= line(40:1:-3)) .and. all_minus(back(2:26:2)), 'pack and unpack')
    place = [3, 4]
    call MPI_Bcast(place(2:2), 1, MPI_INTEGER, 0, MPI_COMM_WORLD)
    call check(place(2) == 4, 'one element')
  end subroutine

  subroutine sized(a)
    integer, intent(in) :: a(*)
    integer :: back(20)
    call MPI_Sendrecv(a, 20, MPI_INTEGER, rank, 0, back, 20, MPI_INTEGER, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call check(.not. any(back /= a(:20)), 'assumed size')
    call MPI_Sendrecv(a(2:20:3), 7, MPI_INTEGER, rank, 0, back, 7, MPI_INTEGER, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call check(.not. any(back(:7) /= a(2:20:3)), 'a section of assumed size')
  end subroutine


  logical function all_minus(a)
    integer, intent(in) :: a(:)
    all_minus = .not. any(a /= -1)
  end function

  ! Components of derived types stand apart; a derived type itself is bytes.
  subroutine derived()
    type(point), asynchronous :: points(12), got(12)
    double precision :: xs(12)
    integer :: i
    kind = 200
    do i = 1, 12
      points(i) = point(i * 1.5d0, [i, -i])
      got(i) = point(0, [0, 0])
    end do
    call MPI_Sendrecv(points%x, 12, MPI_DOUBLE_PRECISION, next, 0, xs, 12, MPI_DOUBLE_PRECISION, before, 0, &
      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call check(.not. any(xs /= points%x), 'a component')
    call MPI_Sendrecv(points(12:1:-1), 12 * 16, MPI_BYTE, next, 0, got(1:12), 12 * 16, MPI_BYTE, before, 0, &
      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call check(.not. any(got%x /= points(12:1:-1)%x) .and. .not. any(got(2:)%k(2) /= points(11:1:-1)%k(2)), 'whole types')
  end subroutine

  ! A section of a local array is sent, changed by others' messages alone, and read at -O3.
  subroutine optimised()
    double precision, asynchronous :: field(64, 64), halo(64)
    type(MPI_Request) :: requests(2)
    integer :: round, i
    kind = 300
    do round = 1, 20
      field = round + 100 * rank
      halo = -1
      call MPI_Irecv(halo(64:1:-1), 64, MPI_DOUBLE_PRECISION, before, 1, MPI_COMM_WORLD, requests(1))
      do i = 1, 64
        field(7, i) = field(7, i) + i
      end do
      call MPI_Isend(field(7, :), 64, MPI_DOUBLE_PRECISION, next, 1, MPI_COMM_WORLD, requests(2))
      call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
      if (.not. MPI_ASYNC_PROTECTS_NONBLOCKING) call MPI_F_sync_reg(halo)
      do i = 1, 64
        call check(halo(65 - i) == round + 100 * before + i, 'a section at -O3')
      end do
    end do
  end subroutine

  subroutine windows()
    integer, asynchronous :: mine(30), line(30), back(30)
    type(MPI_Win) :: window
    type(MPI_Request) :: request
    integer :: i
    kind = 400
    mine = -1
    line = [(i + 100 * rank, i = 1, 30)]
    call MPI_Win_create(mine, 120_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, window)
    call MPI_Win_fence(0, window)
    call MPI_Put(line(29:1:-2), 15, MPI_INTEGER, next, 0_MPI_ADDRESS_KIND, 15, MPI_INTEGER, window)
    call MPI_Win_fence(0, window)
    call check(.not. any(mine(:15) /= line(29:1:-2) + 100 * (before - rank)), 'put')
    back = -1
    call MPI_Get(back(2:30:2), 15, MPI_INTEGER, next, 0_MPI_ADDRESS_KIND, 15, MPI_INTEGER, window)
    call MPI_Win_fence(0, window)
    call check(.not. any(back(2:30:2) /= line(29:1:-2)) .and. all_minus(back(1:29:2)), 'get')
    call MPI_Accumulate(line(1:30:2), 15, MPI_INTEGER, next, 0_MPI_ADDRESS_KIND, 15, MPI_INTEGER, MPI_SUM, window)
    call MPI_Win_fence(0, window)
    call check(.not. any(mine(:15) /= line(29:1:-2) + line(1:30:2) + 200 * (before - rank)), 'accumulate')
    call MPI_Win_lock(MPI_LOCK_SHARED, next, 0, window)
    back = -1
    call MPI_Rget(back(30:2:-2), 15, MPI_INTEGER, next, 0_MPI_ADDRESS_KIND, 15, MPI_INTEGER, window, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call MPI_Win_unlock(next, window)
    call check(.not. any(back(30:2:-2) /= line(29:1:-2) + line(1:30:2)), 'rget')
    call MPI_Win_free(window)
  end subroutine
end program
