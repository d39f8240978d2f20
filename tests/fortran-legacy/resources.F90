! The same for error handlers, texts, files, windows and generalized requests.
#include "checks.h"

module counters
  use checks
  implicit none
  integer :: errors = 0, file_errors = 0, queries = 0, frees = 0
end module

program resources
  use counters
  USES
  implicit none
  INCLUDES
  integer :: ierr, rank, ranks
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  call handlers(rank)
  call texts(rank)
  call files(rank, ranks)
  call windows(rank, mod(rank + 1, ranks), mod(rank + ranks - 1, ranks))
  call generalized()
#ifdef MODULE
  call sizes()
#endif
  call MPI_Finalize(ierr)
  if (rank == 0) print *, 'resources: all checks passed'
end program

subroutine handlers(rank)
  use counters
  USES
  implicit none
  INCLUDES
  integer, intent(in) :: rank
  external :: wrong, wrong_file
  integer :: handler, found, a(1), ierr, class, length, fh
  character(len=MPI_MAX_ERROR_STRING) :: text
  call MPI_Comm_create_errhandler(wrong, handler, ierr)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler, ierr)
  call MPI_Errhandler_free(handler, ierr)
  call check(handler == MPI_ERRHANDLER_NULL, 'freed handler')
  call MPI_Send(a, -1, MPI_INTEGER, rank, 0, MPI_COMM_WORLD, ierr)
  call check(errors == 1 .and. ierr /= MPI_SUCCESS, 'handler')
  call MPI_Error_class(ierr, class, ierr)
  call check(class == MPI_ERR_COUNT, 'class')
  call MPI_Error_string(MPI_ERR_TRUNCATE, text, length, ierr)
  call check(length > 0 .and. text(length + 1:) == ' ' .and. text(:length) /= ' ', 'error string')
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierr)
  call MPI_Comm_get_errhandler(MPI_COMM_WORLD, found, ierr)
  call check(found == MPI_ERRORS_RETURN, 'predefined handler')
  call MPI_Send(a, 1, MPI_DATATYPE_NULL, rank, 0, MPI_COMM_WORLD, ierr)
  call check(ierr /= MPI_SUCCESS .and. errors == 1, 'returned')
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL, ierr)
  call MPI_File_create_errhandler(wrong_file, handler, ierr)
  call MPI_File_set_errhandler(MPI_FILE_NULL, handler, ierr)
  call MPI_File_open(MPI_COMM_SELF, 'no/such/folder/file', MPI_MODE_RDONLY, MPI_INFO_NULL, fh, ierr)
  call check(ierr /= MPI_SUCCESS .and. file_errors == 1, 'handler of files')
  call MPI_Error_class(ierr, class, ierr)
  call check(class == MPI_ERR_NO_SUCH_FILE, 'class of files')
  call MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN, ierr)
end subroutine

subroutine wrong(comm, code)
  use counters
  USES
  implicit none
  INCLUDES
  integer :: comm, code
  call check(comm == MPI_COMM_WORLD .and. code /= MPI_SUCCESS, 'communicator of the error')
  errors = errors + 1
end subroutine

subroutine wrong_file(file, code)
  use counters
  USES
  implicit none
  INCLUDES
  integer :: file, code
  call check(file == MPI_FILE_NULL .and. code /= MPI_SUCCESS, 'file of the error')
  file_errors = file_errors + 1
end subroutine

subroutine texts(rank)
  use counters
  USES
  implicit none
  INCLUDES
  integer, intent(in) :: rank
  character(len=MPI_MAX_OBJECT_NAME) :: name
  character(len=MPI_MAX_PROCESSOR_NAME) :: host
  character(len=MPI_MAX_INFO_KEY) :: key
  character(len=12) :: short
  integer :: comm, info, length, ierr
  logical :: flag
  call MPI_Comm_dup(MPI_COMM_SELF, comm, ierr)
  call MPI_Comm_set_name(comm, '  a name  ', ierr)
  short = 'xxxxxxxxxxxx'
  call MPI_Comm_get_name(comm, short, length, ierr)
  call check(short(:length) == '  a name' .and. short(length + 1:) == ' ' .and. rank >= 0, 'name')
  call MPI_Comm_free(comm, ierr)
  call MPI_Comm_get_name(MPI_COMM_WORLD, name, length, ierr)
  call check(name == 'MPI_COMM_WORLD' .and. length == 14, 'name of the world')
  call MPI_Get_processor_name(host, length, ierr)
  call check(length > 0 .and. host(length + 1:) == ' ', 'host')
  call MPI_Info_create(info, ierr)
  call MPI_Info_set(info, ' key ', '  a value   ', ierr)
  short = 'xxxxxxxxxxxx'
  call MPI_Info_get(info, 'key', 12, short, flag, ierr)
  call check(flag .and. short == 'a value', 'info')
  short = 'xxxxxxxxxxxx'
  call MPI_Info_get(info, 'key', 3, short, flag, ierr)
  call check(flag .and. short == 'a v', 'a short value')
  call MPI_Info_get(info, 'other', 12, short, flag, ierr)
  call check(.not. flag .and. short == 'a v', 'no such key')
  call MPI_Info_get_valuelen(info, 'key', length, flag, ierr)
  call check(flag .and. length == 7, 'length of a value')
  call MPI_Info_get_nthkey(info, 0, key, ierr)
  call check(key == 'key', 'key')
  call MPI_Info_free(info, ierr)
  call check(info == MPI_INFO_NULL, 'freed info')
end subroutine

subroutine files(rank, ranks)
  use counters
  USES
  implicit none
  INCLUDES
  integer, intent(in) :: rank, ranks
  integer, volatile :: b(2)
  integer :: fh, ierr, a(2), st(MPI_STATUS_SIZE), etype, filetype, n, amode, request
  integer(kind=MPI_OFFSET_KIND) :: place, bytes, displacement
  character(len=MPI_MAX_DATAREP_STRING) :: representation
  character(len=200) :: path
  call get_environment_variable('LEGACY_FILE', path)
  if (path == ' ') path = 'resources.data'
  call MPI_File_open(MPI_COMM_WORLD, trim(path) // '   ', ior(MPI_MODE_RDWR, MPI_MODE_CREATE), MPI_INFO_NULL, fh, ierr)
  call check(ierr == MPI_SUCCESS, 'open')
  bytes = 0
  call MPI_File_set_size(fh, bytes, ierr)
  a = [rank, 2 * rank]
  place = 8 * rank
  call MPI_File_write_at_all(fh, place, a, 2, MPI_INTEGER, st, ierr)
  call MPI_Get_count(st, MPI_INTEGER, n, ierr)
  call check(ierr == MPI_SUCCESS .and. n == 2, 'write')
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  call MPI_File_get_size(fh, bytes, ierr)
  call check(bytes == 8 * ranks, 'size of the file')
  displacement = 8 * mod(rank + 1, ranks)
  call MPI_File_set_view(fh, displacement, MPI_INTEGER, MPI_INTEGER, 'native', MPI_INFO_NULL, ierr)
  call MPI_File_get_view(fh, place, etype, filetype, representation, ierr)
  call check(place == displacement .and. etype == MPI_INTEGER .and. representation == 'native', 'view')
  place = 0
  call MPI_File_iread_at(fh, place, b, 2, MPI_INTEGER, request, ierr)
  call MPI_Wait(request, st, ierr)
  call check(all(b == mod(rank + 1, ranks) * [1, 2]), 'read')
  call MPI_File_get_amode(fh, amode, ierr)
  call check(iand(amode, MPI_MODE_RDWR) /= 0, 'mode')
  call MPI_File_close(fh, ierr)
  call check(fh == MPI_FILE_NULL, 'closed')
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  if (rank == 0) call MPI_File_delete(path, MPI_INFO_NULL, ierr)
  if (rank == 0) call check(ierr == MPI_SUCCESS, 'delete')
end subroutine

subroutine windows(rank, next, before)
  use counters
  USES
  implicit none
  INCLUDES
  integer, intent(in) :: rank, next, before
  integer, volatile :: a(8)
  integer :: win, ierr, model
  integer(kind=MPI_ADDRESS_KIND) :: bytes, place, value
  logical :: flag
  a = -1
  bytes = 32
  call MPI_Win_create(a, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)
  call MPI_Win_get_attr(win, MPI_WIN_SIZE, value, flag, ierr)
  call check(flag .and. value == 32, 'size of the window')
  call MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, value, flag, ierr)
  call check(flag .and. value == 4, 'unit of the window')
  call MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, value, flag, ierr)
  call check(flag .and. value == MPI_WIN_FLAVOR_CREATE, 'flavor of the window')
  call MPI_Win_get_attr(win, MPI_WIN_BASE, value, flag, ierr)
  call MPI_Get_address(a, place, ierr)
  call check(flag .and. value == place, 'base of the window')
  call MPI_Win_get_attr(win, MPI_WIN_MODEL, value, flag, ierr)
  model = int(value)
  call check(flag .and. (model == MPI_WIN_UNIFIED .or. model == MPI_WIN_SEPARATE), 'model of the window')
  call MPI_Win_fence(0, win, ierr)
  place = 2
  call MPI_Put(rank, 1, MPI_INTEGER, next, place, 1, MPI_INTEGER, win, ierr)
  call MPI_Win_fence(MPI_MODE_NOSUCCEED, win, ierr)
  call check(a(3) == before, 'put')
  call MPI_Win_free(win, ierr)
  call check(win == MPI_WIN_NULL, 'freed window')
end subroutine

subroutine generalized()
  use counters
  USES
  implicit none
  INCLUDES
  external :: query, free, cancel
  integer :: request, ierr, st(MPI_STATUS_SIZE), n
  integer(kind=MPI_ADDRESS_KIND) :: extra
  extra = 5
  call MPI_Grequest_start(query, free, cancel, extra, request, ierr)
  call MPI_Grequest_complete(request, ierr)
  call MPI_Wait(request, st, ierr)
  call MPI_Get_count(st, MPI_INTEGER, n, ierr)
  call check(queries >= 1 .and. frees == 1 .and. n == 3 .and. st(MPI_TAG) == 12, 'generalized request')
end subroutine

subroutine query(extra, st, ierr)
  use counters
  USES
  implicit none
  INCLUDES
  integer(kind=MPI_ADDRESS_KIND) :: extra
  integer :: st(MPI_STATUS_SIZE), ierr
  call check(extra == 5, 'state of the request')
  call MPI_Status_set_elements(st, MPI_INTEGER, 3, ierr)
  call MPI_Status_set_cancelled(st, .false., ierr)
  st(MPI_SOURCE) = MPI_UNDEFINED
  st(MPI_TAG) = 12
  queries = queries + 1
  ierr = 0
end subroutine

subroutine free(extra, ierr)
  use counters
  implicit none
  integer(8) :: extra
  integer :: ierr
  call check(extra == 5, 'state of the freed request')
  frees = frees + 1
  ierr = 0
end subroutine

subroutine cancel(extra, complete, ierr)
  implicit none
  integer(8) :: extra
  logical :: complete
  integer :: ierr
  ierr = merge(0, int(extra), complete)
end subroutine

#ifdef MODULE
subroutine sizes()
  use counters
  use mpi
  implicit none
  integer :: n, ierr
  double precision :: x
  real :: y(3)
  call MPI_Sizeof(x, n, ierr)
  call check(n == 8, 'size of a number')
  call MPI_Sizeof(y, n, ierr)
  call check(n == 4, 'size of an element')
end subroutine
#endif
