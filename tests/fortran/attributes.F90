! Attributes and states of callbacks, set in one language and seen in another (MPI 5.0, sections 7.7, 13.2 and 19.3.7);
! attributes.c is C's part. Compiled for mpi_f08 with -DNEW, else for mpi.
#ifdef NEW
#define USES use mpi_f08
#define COMM_TYPE type(MPI_Comm)
#define WIN_TYPE type(MPI_Win)
#define TYPE_TYPE type(MPI_Datatype)
#define INFO_TYPE type(MPI_Info)
#define REQUEST_TYPE type(MPI_Request)
#define STATUS_TYPE type(MPI_Status) :: status
#define INT_OF(handle) handle%MPI_VAL
#else
#define USES use mpi
#define COMM_TYPE integer
#define WIN_TYPE integer
#define TYPE_TYPE integer
#define INFO_TYPE integer
#define REQUEST_TYPE integer
#define STATUS_TYPE integer :: status(MPI_STATUS_SIZE)
#define INT_OF(handle) handle
#endif
module callbacks
  USES
  implicit none
  integer :: copies = 0, deletes = 0
contains
  subroutine copy(comm, keyval, extra_state, attribute_val_in, attribute_val_out, flag, ierror)
    COMM_TYPE :: comm
    integer :: keyval, ierror
    integer(MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
    logical :: flag
    copies = copies + 1
    attribute_val_out = attribute_val_in + extra_state
    flag = .true.
    ierror = MPI_SUCCESS
  end subroutine

  subroutine delete(comm, keyval, attribute_val, extra_state, ierror)
    COMM_TYPE :: comm
    integer :: keyval, ierror
    integer(MPI_ADDRESS_KIND) :: attribute_val, extra_state
    deletes = deletes + int(modulo(attribute_val, 1000_MPI_ADDRESS_KIND))
    ierror = MPI_SUCCESS
  end subroutine

  subroutine query(extra_state, status, ierror)
    integer(MPI_ADDRESS_KIND) :: extra_state
    STATUS_TYPE
    integer :: ierror
    extra_state = extra_state + 10
    call MPI_Status_set_elements(status, MPI_BYTE, 0, ierror)
    call MPI_Status_set_cancelled(status, .false., ierror)
    ierror = MPI_SUCCESS
  end subroutine

  subroutine release(extra_state, ierror)
    integer(MPI_ADDRESS_KIND) :: extra_state
    integer :: ierror
    extra_state = extra_state + 100
    ierror = MPI_SUCCESS
  end subroutine

  subroutine cancel(extra_state, complete, ierror)
    integer(MPI_ADDRESS_KIND) :: extra_state
    logical :: complete
    integer :: ierror
    ierror = MPI_SUCCESS
  end subroutine
end module

program attributes
  USES
  use callbacks
  use, intrinsic :: iso_c_binding
  implicit none
  interface
    integer(c_int) function c_create_key(key) bind(C)
      import
      integer(c_int) :: key
    end function
    integer(c_int) function c_set(comm, key) bind(C)
      import
      integer(c_int), intent(in) :: comm, key
    end function
    integer(c_int) function c_got_address(comm, key) bind(C)
      import
      integer(c_int), intent(in) :: comm, key
    end function
    integer(c_intptr_t) function c_address() bind(C)
      import
    end function
    integer(c_int) function c_got_aint(comm, key, expected) bind(C)
      import
      integer(c_int), intent(in) :: comm, key
      integer(c_intptr_t), intent(in) :: expected
    end function
    integer(c_int) function c_win_got_aint(win, key, expected) bind(C)
      import
      integer(c_int), intent(in) :: win, key
      integer(c_intptr_t), intent(in) :: expected
    end function
    integer(c_int) function c_type_got_aint(type, key, expected) bind(C)
      import
      integer(c_int), intent(in) :: type, key
      integer(c_intptr_t), intent(in) :: expected
    end function
    integer(c_int) function c_got_int(comm, key, expected) bind(C)
      import
      integer(c_int), intent(in) :: comm, key, expected
    end function
    integer(c_int) function c_calls() bind(C)
      import
    end function
    integer(c_int) function c_predefined(win, upper, base, size) bind(C)
      import
      integer(c_int), intent(in) :: win, upper
      integer(c_intptr_t), intent(in) :: base, size
    end function
  end interface
  integer(MPI_ADDRESS_KIND), parameter :: large = 2_MPI_ADDRESS_KIND**40 + 7
  integer :: ckey, fkey, ierror, i
  COMM_TYPE :: comm, other
  call MPI_Init(ierror)
  call MPI_Comm_dup(MPI_COMM_SELF, comm, ierror)
  call check(c_create_key(ckey) == 0, 'a key of C')
  call MPI_Comm_create_keyval(copy, delete, fkey, 1_MPI_ADDRESS_KIND, ierror)
  do i = 1, 2
    call keys_of_c()
    call keys_of_fortran()
  end do
  call windows_and_types()
  call predefined()
  call old_ones()
  call states()
  call texts()
  call MPI_Comm_free(comm, ierror)
  call MPI_Finalize(ierror)
  print *, 'attributes: all checks passed'
contains
  subroutine check(right, what)
    logical, intent(in) :: right
    character(*), intent(in) :: what
    if (right) return
    print *, 'WRONG: ', what
    error stop 1
  end subroutine

  ! Fortran gets an attribute of COMM.
  integer(MPI_ADDRESS_KIND) function got(of, key)
    COMM_TYPE, intent(in) :: of
    integer, intent(in) :: key
    logical :: flag
    call MPI_Comm_get_attr(of, key, got, flag, ierror)
    call check(flag .and. ierror == MPI_SUCCESS, 'an attribute that is there')
  end function

  subroutine keys_of_c()
    integer :: before
    before = c_calls()
    ! C sets the attribute, C and Fortran get it. A copy is C's address, too.
    call check(c_set(INT_OF(comm), ckey) == 0, 'C sets')
    call check(c_got_address(INT_OF(comm), ckey) == 0, 'C gets what C set')
    call check(got(comm, ckey) == c_address(), 'Fortran gets the address that C set')
    call MPI_Comm_dup(comm, other, ierror)
    call check(c_got_address(INT_OF(other), ckey) == 0, 'C gets a copy of what C set')
    call check(got(other, ckey) == c_address(), 'Fortran gets a copy of what C set')
    call MPI_Comm_free(other, ierror)
    ! Fortran sets the attribute, C gets its address, Fortran its value.
    call MPI_Comm_set_attr(comm, ckey, large, ierror)
    call check(c_got_aint(INT_OF(comm), ckey, large) == 0, 'C gets the address of what Fortran set')
    call check(got(comm, ckey) == large, 'Fortran gets what Fortran set')
    call MPI_Comm_dup(comm, other, ierror)
    call MPI_Comm_delete_attr(comm, ckey, ierror)
    call check(c_got_aint(INT_OF(other), ckey, large) == 0, 'C gets a copy of what Fortran set')
    call check(got(other, ckey) == large, 'Fortran gets a copy by C of what Fortran set')
    call MPI_Comm_free(other, ierror)
    ! The expected calls: two copies, and four deleted values.
    call check(c_calls() - before == 204, 'C''s functions run')
  end subroutine

  subroutine keys_of_fortran()
    copies = 0
    deletes = 0
    call check(c_set(INT_OF(comm), fkey) == 0, 'C sets by a key of Fortran')
    call check(c_got_address(INT_OF(comm), fkey) == 0, 'C gets by a key of Fortran')
    call check(got(comm, fkey) == c_address(), 'Fortran gets what C set by its key')
    call MPI_Comm_dup(comm, other, ierror)
    call check(got(other, fkey) == c_address() + 1, 'a copy of an address is one')
    call MPI_Comm_free(other, ierror)
    deletes = 0
    call MPI_Comm_set_attr(comm, fkey, -5_MPI_ADDRESS_KIND, ierror)
    call check(deletes == modulo(c_address(), 1000_MPI_ADDRESS_KIND), 'an address is deleted')
    deletes = 0
    call check(c_got_aint(INT_OF(comm), fkey, -5_MPI_ADDRESS_KIND) == 0, 'C gets by Fortran''s key')
    call MPI_Comm_set_attr(comm, fkey, large, ierror)
    call check(deletes == 995, 'Fortran deletes what it set')
    deletes = 0
    call MPI_Comm_dup(comm, other, ierror)
    call check(got(other, fkey) == large + 1, 'Fortran copies what it set')
    call check(c_got_aint(INT_OF(other), fkey, large + 1) == 0, 'C gets Fortran''s copy')
    call check(c_got_aint(INT_OF(comm), fkey, large) == 0, 'the original stays')
    call MPI_Comm_delete_attr(comm, fkey, ierror)
    call MPI_Comm_free(other, ierror)
    call check(copies == 2 .and. deletes == 2 * modulo(large, 1000_MPI_ADDRESS_KIND) + 1, 'counts')
  end subroutine

  subroutine windows_and_types()
    integer :: wkey, tkey, memory(4)
    WIN_TYPE :: win
    TYPE_TYPE :: type, again
    logical :: flag
    integer(MPI_ADDRESS_KIND) :: value
    call MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, wkey, 0_MPI_ADDRESS_KIND, ierror)
    call MPI_Win_create(memory, 16_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, comm, win, ierror)
    call MPI_Win_set_attr(win, wkey, large, ierror)
    call check(c_win_got_aint(INT_OF(win), wkey, large) == 0, 'C gets of a window')
    call MPI_Win_get_attr(win, wkey, value, flag, ierror)
    call check(flag .and. value == large, 'Fortran gets of a window')
    call MPI_Win_free(win, ierror)
    call MPI_Win_free_keyval(wkey, ierror)
    call MPI_Type_create_keyval(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, tkey, 0_MPI_ADDRESS_KIND, ierror)
    call MPI_Type_dup(MPI_INTEGER, type, ierror)
    call MPI_Type_set_attr(type, tkey, -large, ierror)
    call MPI_Type_dup(type, again, ierror)
    call MPI_Type_free(type, ierror)
    call check(c_type_got_aint(INT_OF(again), tkey, -large) == 0, 'C gets of a datatype')
    call MPI_Type_get_attr(again, tkey, value, flag, ierror)
    call check(flag .and. value == -large, 'Fortran gets of a datatype')
    call MPI_Type_free(again, ierror)
    call MPI_Type_free_keyval(tkey, ierror)
  end subroutine

  subroutine predefined()
    WIN_TYPE :: win
    integer, target :: memory(4)
    integer(MPI_ADDRESS_KIND) :: upper, base, size, unit
    logical :: flag
    upper = got(MPI_COMM_WORLD, MPI_TAG_UB)
    call MPI_Win_create(memory, 16_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, comm, win, ierror)
    call MPI_Win_get_attr(win, MPI_WIN_BASE, base, flag, ierror)
    call MPI_Win_get_attr(win, MPI_WIN_SIZE, size, flag, ierror)
    call MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, unit, flag, ierror)
    call check(size == 16 .and. unit == 4, 'attributes of a window')
    call check(base == transfer(c_loc(memory), base), 'the base of a window')
    call check(c_predefined(INT_OF(win), int(upper), base, size) == 0, 'predefined ones in C')
    call MPI_Win_free(win, ierror)
  end subroutine

  ! Callbacks of a request change the program's variable. An expression is allowed, too.
  subroutine states()
    integer(MPI_ADDRESS_KIND), volatile :: state
    REQUEST_TYPE :: request
    state = 1
    call MPI_Grequest_start(query, release, cancel, state, request, ierror)
    call MPI_Grequest_complete(request, ierror)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    call check(ierror == MPI_SUCCESS .and. state == 111, 'the state of a request')
    call MPI_Grequest_start(query, release, cancel, 2 * state + 1, request, ierror)
    call MPI_Grequest_complete(request, ierror)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    call check(ierror == MPI_SUCCESS .and. state == 111, 'a state that is no variable')
  end subroutine

  ! If only the length is asked for, the text stays unchanged.
  subroutine texts()
    INFO_TYPE :: info
    character(8) :: text
    integer :: length
    logical :: flag
    call MPI_Info_create(info, ierror)
    call MPI_Info_set(info, 'key', 'value', ierror)
    text = 'as it is'
    length = 0
    call MPI_Info_get_string(info, 'key', length, text, flag, ierror)
    call check(flag .and. length == 5 .and. text == 'as it is', 'a length')
    call MPI_Info_get_string(info, 'key', length, text, flag, ierror)
    call check(flag .and. length == 5 .and. text == 'value', 'a text')
    call MPI_Info_free(info, ierror)
  end subroutine

  ! Tests the deprecated procedures, whose attributes are default integers. mpi_f08 does not have them.
  subroutine old_ones()
#ifndef NEW
    integer :: key, value
    logical :: flag
    call MPI_Attr_put(comm, ckey, -7, ierror)
    call check(c_got_int(comm, ckey, -7) == 0, 'C gets an integer of the old kind')
    call check(got(comm, ckey) == -7, 'an old one is extended by its sign')
    call MPI_Attr_get(comm, ckey, value, flag, ierror)
    call check(flag .and. value == -7, 'an old one')
    call MPI_Comm_set_attr(comm, ckey, large, ierror)
    call MPI_Attr_get(comm, ckey, value, flag, ierror)
    call check(flag .and. value == 7, 'the least significant part')
    call MPI_Attr_delete(comm, ckey, ierror)
    call MPI_Attr_get(MPI_COMM_WORLD, MPI_TAG_UB, value, flag, ierror)
    call check(flag .and. value == got(MPI_COMM_WORLD, MPI_TAG_UB), 'a predefined one')
    call MPI_Keyval_create(MPI_DUP_FN, MPI_NULL_DELETE_FN, key, 0, ierror)
    call MPI_Attr_put(comm, key, 9, ierror)
    call MPI_Comm_dup(comm, other, ierror)
    call check(c_got_int(other, key, 9) == 0, 'C gets a copy of an old one')
    call MPI_Attr_get(other, key, value, flag, ierror)
    call check(flag .and. value == 9, 'a copy of an old one')
    call MPI_Comm_free(other, ierror)
    call MPI_Attr_delete(comm, key, ierror)
    call MPI_Keyval_free(key, ierror)
#endif
  end subroutine
end program
