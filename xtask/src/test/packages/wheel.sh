# pip leaves empty folders, and removes others that were empty before.
kinds="! -type d"
. /packages/common.sh
python3 -m venv /opt/venv
files > /tmp/before
pip="/opt/venv/bin/pip --disable-pip-version-check"
$pip install --quiet --no-index --no-cache-dir --find-links /packages/wheels weft-mpi mpi4py
export PATH=/opt/venv/bin:$PATH
test "$(files | wc -l)" -gt "$(wc -l < /tmp/before)"
mpiexec -n 4 python -m mpi4py.bench ringtest
mpiexec -n 4 python -c 'from mpi4py import MPI; print(MPI.Get_library_version()); assert MPI.COMM_WORLD.size == 4' > /tmp/version
test "$(grep -c '^Weft ' /tmp/version)" = 4 || { cat /tmp/version; exit 1; }
mpiexec -n 4 /packages/heat-wheel
# Without mpiexec and without variables, mpi4py finds the library in the environment's lib.
env -i /opt/venv/bin/python -c 'from mpi4py import MPI; assert MPI.COMM_WORLD.size == 1; print(MPI.Get_library_version())' | grep -q '^Weft '
env -i /opt/venv/bin/python -m mpi4py --mpi-lib-version | grep -q '^Weft '
env -i /opt/venv/bin/python -m mpi4py.bench helloworld | grep -q 'process 0 of 1'
mpiexec -n 2 python -m mpi4py -c 'from mpi4py import MPI; assert MPI.COMM_WORLD.size == 2'
test -s /opt/venv/share/bash-completion/completions/mpiexec && test -s /opt/venv/share/modulefiles/weft
# The name that programs of MPICH 5.0.0 use.
python -c 'import ctypes; ctypes.CDLL("/opt/venv/lib/libmpi_abi.so.0").MPI_Get_version'
weft info > /tmp/info
test -s /opt/venv/share/man/man3/MPI_Send.3 && test -s /opt/venv/share/weft/fortran/mpif.h
$pip show --files weft-mpi | grep -q 'licenses/THIRD-PARTY.md'
$pip uninstall --quiet --yes weft-mpi mpi4py
nothing_is_left
