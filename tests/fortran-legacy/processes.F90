! Processes that a program starts, data representations, and more operators than a table of functions could hold. With mpif.h, with the
! module mpi if MODULE is defined, or with mpi_f08 if MODERN is defined.
#include "checks.h"

#ifdef MODERN
#define SOURCE use mpi_f08
#define HEADER
#define COMM type(MPI_Comm)
#define FILEHANDLE type(MPI_File)
#define INFO type(MPI_Info)
#define OPERATOR type(MPI_Op)
#define DATATYPE type(MPI_Datatype)
#define STATUS type(MPI_Status)
#else
#define SOURCE USES
#define HEADER INCLUDES
#define COMM integer
#define FILEHANDLE integer
#define INFO integer
#define OPERATOR integer
#define DATATYPE integer
#define STATUS integer, dimension(MPI_STATUS_SIZE)
#endif

module functions
  use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
  SOURCE
  implicit none
  HEADER
  integer :: reads = 0, writes = 0, extents = 0
contains
#ifdef MODERN
#define BYTES(n) type(c_ptr), value :: n
#define OPERANDS(left, right) type(c_ptr), value :: left, right
  subroutine add(left, right, n, more)
    OPERANDS(left, right)
    integer :: n, more
    integer, pointer :: a(:), b(:)
    call c_f_pointer(left, a, [n])
    call c_f_pointer(right, b, [n])
    b = a + b + more
  end subroutine
  subroutine flip(from, to, n)
    BYTES(from)
    BYTES(to)
    integer :: n
    integer, pointer :: a(:), b(:)
    call c_f_pointer(from, a, [n])
    call c_f_pointer(to, b, [n])
    b = not(a)
  end subroutine
#else
#define BYTES(n) integer :: n(*)
#define OPERANDS(left, right) integer :: left(*), right(*)
  subroutine add(left, right, n, more)
    integer :: left(*), right(*), n, more
    right(:n) = left(:n) + right(:n) + more
  end subroutine
  subroutine flip(from, to, n)
    integer :: from(*), to(*), n
    to(:n) = not(from(:n))
  end subroutine
#endif

  ! Buffers in the program are native, those of the file have all bits inverted. The position counts elements that are converted.
  subroutine reads_file(userbuf, datatype, count, filebuf, position, extra, ierr)
    BYTES(userbuf)
    BYTES(filebuf)
    DATATYPE :: datatype
    integer :: count, ierr
    integer(kind=MPI_OFFSET_KIND) :: position
    integer(kind=MPI_ADDRESS_KIND) :: extra
    ierr = merge(MPI_SUCCESS, MPI_ERR_OTHER, extra == 5 .and. position == 0)
    reads = reads + 1
    call flip(filebuf, userbuf, count)
  end subroutine

  subroutine writes_file(userbuf, datatype, count, filebuf, position, extra, ierr)
    BYTES(userbuf)
    BYTES(filebuf)
    DATATYPE :: datatype
    integer :: count, ierr
    integer(kind=MPI_OFFSET_KIND) :: position
    integer(kind=MPI_ADDRESS_KIND) :: extra
    ierr = merge(MPI_SUCCESS, MPI_ERR_OTHER, extra == 5 .and. position == 0)
    writes = writes + 1
    call flip(userbuf, filebuf, count)
  end subroutine

  subroutine extent_in_file(datatype, extent, extra, ierr)
    DATATYPE :: datatype
    integer(kind=MPI_ADDRESS_KIND) :: extent, extra
    integer :: ierr
    extents = extents + 1
    extent = 4
    ierr = merge(MPI_SUCCESS, MPI_ERR_OTHER, extra == 5 .and. datatype == MPI_INTEGER)
  end subroutine

  ! 200 operators: the sum of the operands and the operator's number.
#define OP(n) subroutine op/**/n(a, b, c, t); OPERANDS(a, b); integer :: c; DATATYPE :: t; call add(a, b, c, n); end subroutine
#include "operators.h"
end module

program processes
  use checks
  use functions
  implicit none
  integer :: ierr, rank
  COMM :: parent
  call MPI_Init(ierr)
  call MPI_Comm_get_parent(parent, ierr)
  if (parent /= MPI_COMM_NULL) then
    call child(parent)
  else
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    call spawned()
    call representation(rank)
    call operators()
  end if
  call MPI_Finalize(ierr)
  if (parent == MPI_COMM_NULL .and. rank == 0) print *, 'processes: all checks passed'
contains
  subroutine child(parent)
    COMM, intent(in) :: parent
    COMM :: all
    integer :: me, everyone, sum, ierr
    character(len=20) :: first, second
    COMM :: leaving
    call get_command_argument(1, first)
    call get_command_argument(2, second)
    call check(first == 'a child' .and. second == 'x', 'arguments')
    call MPI_Intercomm_merge(parent, .true., all, ierr)
    call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
    call MPI_Comm_size(all, everyone, ierr)
    call MPI_Allreduce(me + 100, sum, 1, MPI_INTEGER, MPI_SUM, all, ierr)
    call MPI_Comm_disconnect(all, ierr)
    leaving = parent
    call MPI_Comm_disconnect(leaving, ierr)
  end subroutine

  ! Joins the children, and adds their numbers.
  subroutine join(inter, children)
    COMM, intent(in) :: inter
    integer, intent(in) :: children
    COMM :: all, leaving
    integer :: remote, sum, ierr
    call MPI_Comm_remote_size(inter, remote, ierr)
    call check(remote == children, 'number of children')
    call MPI_Intercomm_merge(inter, .false., all, ierr)
    call MPI_Allreduce(0, sum, 1, MPI_INTEGER, MPI_SUM, all, ierr)
    call check(sum == children * 100 + children * (children - 1) / 2, 'sum of the children')
    call MPI_Comm_disconnect(all, ierr)
    leaving = inter
    call MPI_Comm_disconnect(leaving, ierr)
  end subroutine

  subroutine spawned()
    character(len=512) :: command, commands(2)
    character(len=20) :: arguments(3), lists(2, 3)
    integer :: codes(3), most(2), ierr
    COMM :: inter
    INFO :: infos(2)
    call get_command_argument(0, command)
    arguments = [character(len=20) :: 'a child', 'x', ' ']
    codes = -1
    call MPI_Comm_spawn(command, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, inter, codes, ierr)
    call check(ierr == MPI_SUCCESS .and. all(codes(:2) == MPI_SUCCESS) .and. codes(3) == -1, 'codes')
    call join(inter, 2)
    commands = command
    lists(1, :) = arguments
    lists(2, :) = arguments
    most = [1, 2]
    infos = MPI_INFO_NULL
    codes = -1
    call MPI_Comm_spawn_multiple(2, commands, lists, most, infos, 0, MPI_COMM_WORLD, inter, codes, ierr)
    call check(ierr == MPI_SUCCESS .and. all(codes == MPI_SUCCESS), 'codes of several commands')
    call join(inter, 3)
    call MPI_Comm_spawn_multiple(2, commands, lists, most, infos, 0, MPI_COMM_SELF, inter, MPI_ERRCODES_IGNORE, ierr)
    call join(inter, 3)
  end subroutine

  subroutine representation(rank)
    integer, intent(in) :: rank
    character(len=512) :: name
    character(len=4) :: number
    integer :: numbers(4), again(4), raw(4), ierr, i
    integer(kind=MPI_OFFSET_KIND), parameter :: zero = 0
    integer(kind=MPI_ADDRESS_KIND) :: extra = 5
    FILEHANDLE :: fh
    STATUS :: st
    call MPI_Register_datarep('inverted', reads_file, writes_file, extent_in_file, extra, ierr)
    call check(ierr == MPI_SUCCESS, 'registered')
    call get_environment_variable('LEGACY_FILE', name)
    write (number, '(i0)') rank
    name = trim(name) // '.' // number
    numbers = [(rank * 10 + i, i = 1, 4)]
    call MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE + MPI_MODE_RDWR + MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, fh, ierr)
    call check(ierr == MPI_SUCCESS, 'opened')
    call MPI_File_set_view(fh, zero, MPI_INTEGER, MPI_INTEGER, 'inverted', MPI_INFO_NULL, ierr)
    call check(ierr == MPI_SUCCESS, 'view')
    call MPI_File_write_at(fh, zero, numbers, 4, MPI_INTEGER, st, ierr)
    call check(ierr == MPI_SUCCESS .and. writes > 0, 'written')
    call MPI_File_read_at(fh, zero, again, 4, MPI_INTEGER, st, ierr)
    call check(ierr == MPI_SUCCESS .and. reads > 0 .and. all(again == numbers), 'read')
    call MPI_File_set_view(fh, zero, MPI_INTEGER, MPI_INTEGER, 'native', MPI_INFO_NULL, ierr)
    call MPI_File_read_at(fh, zero, raw, 4, MPI_INTEGER, st, ierr)
    call check(all(raw == not(numbers)) .and. extents > 0, 'bytes of the file')
    call MPI_File_close(fh, ierr)
  end subroutine

  subroutine operators()
    integer :: ranks, ierr
    OPERATOR :: op
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
#define OPS(n) call tried(op/**/n, n, ranks)
#undef OP
#define OP(n) OPS(n)
#include "operators.h"
    call MPI_Op_create(op100, .true., op, ierr)
    call MPI_Op_free(op, ierr)
  end subroutine

  subroutine tried(function, number, ranks)
    external :: function
    integer, intent(in) :: number, ranks
    integer :: a(3), b(3), ierr
    OPERATOR :: op
    call MPI_Op_create(function, .true., op, ierr)
    a = 1
    call MPI_Allreduce(a, b, 3, MPI_INTEGER, op, MPI_COMM_WORLD, ierr)
    call check(all(b == ranks + (ranks - 1) * number), 'operator')
    call MPI_Op_free(op, ierr)
  end subroutine
end program
