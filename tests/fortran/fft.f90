! A plane wave through FFTW's parallel transform: one peak, and itself again. For cargo xtask soak --fortran.
program fft
  use, intrinsic :: iso_c_binding
  use mpi_f08
  implicit none
  include 'fftw3-mpi.f03'
  integer(C_INTPTR_T), parameter :: l = 24, m = 20, n = 16
  type(C_PTR) :: forward, backward, memory
  complex(C_DOUBLE_COMPLEX), pointer :: data(:, :, :)
  complex(C_DOUBLE_COMPLEX), allocatable :: first(:, :, :)
  integer(C_INTPTR_T) :: room, local_n, offset, i, j, k, kk
  double precision :: pi, worst, all
  integer :: rank, ranks
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call fftw_mpi_init()
  pi = acos(-1d0)
  room = fftw_mpi_local_size_3d(n, m, l, MPI_COMM_WORLD%MPI_VAL, local_n, offset)
  memory = fftw_alloc_complex(room)
  call c_f_pointer(memory, data, [l, m, local_n])
  forward = fftw_mpi_plan_dft_3d(n, m, l, data, data, MPI_COMM_WORLD%MPI_VAL, FFTW_FORWARD, FFTW_ESTIMATE)
  backward = fftw_mpi_plan_dft_3d(n, m, l, data, data, MPI_COMM_WORLD%MPI_VAL, FFTW_BACKWARD, FFTW_ESTIMATE)
  do k = 1, local_n
    do j = 1, m
      do i = 1, l
        kk = k + offset
        data(i, j, k) = exp((0, 1) * 2 * pi * (3d0 * (i - 1) / l + 5d0 * (j - 1) / m + 7d0 * (kk - 1) / n))
      end do
    end do
  end do
  allocate (first, source=data)
  call fftw_mpi_execute_dft(forward, data, data)
  worst = 0
  do k = 1, local_n
    do j = 1, m
      do i = 1, l
        kk = k + offset
        if (i == 4 .and. j == 6 .and. kk == 8) then
          worst = max(worst, abs(data(i, j, k) - l * m * n))
        else
          worst = max(worst, abs(data(i, j, k)))
        end if
      end do
    end do
  end do
  call fftw_mpi_execute_dft(backward, data, data)
  if (local_n > 0) worst = max(worst, maxval(abs(data / (l * m * n) - first)))
  call MPI_Allreduce(worst, all, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD)
  if (rank == 0) print *, 'fft:', ranks, 'worst', all, merge('right', 'WRONG', all < 1d-8)
  call MPI_Finalize()
end program
