! What this compiler writes for .true. and .false.
subroutine weft_logicals(yes, no) bind(C, name="weft_logicals")
  logical, intent(out) :: yes, no
  yes = .true.
  no = .false.
end subroutine
