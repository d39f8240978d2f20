! Included by each program: the check of a result, and where the constants and interfaces come from.
module checks
  implicit none
contains
  subroutine check(right, what)
    logical, intent(in) :: right
    character(len=*), intent(in) :: what
    if (right) return
    print *, 'WRONG: ', what
    stop 1
  end subroutine
end module

#ifdef MODULE
#define USES use mpi
#define INCLUDES
#else
#define USES
#define INCLUDES include 'mpif.h'
#endif
