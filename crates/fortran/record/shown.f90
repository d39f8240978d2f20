! Shows what a call left behind, a line for each variable.
module shown
  implicit none
  integer :: variant_ = 0, first_ = 0
  interface show
    procedure :: one_integer, integers, one_large, larges, one_logical, logicals, text, real
  end interface
  interface
    subroutine weft_record(number, name)
      integer, intent(in) :: number
      character(len=*), intent(in) :: name
    end subroutine
  end interface
contains
  subroutine ready()
    variant_ = setting('WEFT_VARIANT')
    first_ = setting('WEFT_FIRST')
  end subroutine

  integer function setting(name)
    character(len=*), intent(in) :: name
    character(len=20) :: value
    integer :: status
    setting = 0
    call get_environment_variable(name, value, status=status)
    if (status == 0) read(value, *) setting
  end function

  subroutine begin(number, name)
    integer, intent(in) :: number
    character(len=*), intent(in) :: name
    flush(6)
    call weft_record(number, name)
  end subroutine

  subroutine one_integer(name, value)
    character(len=*), intent(in) :: name
    integer, intent(in) :: value
    write(6, '(3A,I0)') 'f ', name, '=', value
  end subroutine

  subroutine integers(name, value)
    character(len=*), intent(in) :: name
    integer, intent(in) :: value(:)
    write(6, '(3A,*(I0,:,","))') 'f ', name, '=', value
  end subroutine

  subroutine one_large(name, value)
    character(len=*), intent(in) :: name
    integer(8), intent(in) :: value
    write(6, '(3A,I0)') 'f ', name, '=', value
  end subroutine

  subroutine larges(name, value)
    character(len=*), intent(in) :: name
    integer(8), intent(in) :: value(:)
    write(6, '(3A,*(I0,:,","))') 'f ', name, '=', value
  end subroutine

  subroutine one_logical(name, value)
    character(len=*), intent(in) :: name
    logical, intent(in) :: value
    write(6, '(3A,L1)') 'f ', name, '=', value
  end subroutine

  subroutine logicals(name, value)
    character(len=*), intent(in) :: name
    logical, intent(in) :: value(:)
    write(6, '(3A,*(L1,:,","))') 'f ', name, '=', value
  end subroutine

  subroutine text(name, value)
    character(len=*), intent(in) :: name, value
    write(6, '(5A)') 'f ', name, '="', trim(value), '"'
  end subroutine

  ! In thousandths.
  subroutine real(name, value)
    character(len=*), intent(in) :: name
    double precision, intent(in) :: value
    write(6, '(3A,I0)') 'f ', name, '=', nint(1000 * value)
  end subroutine
end module
