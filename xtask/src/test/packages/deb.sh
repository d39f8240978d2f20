. /packages/common.sh
files > /tmp/before
dpkg --install /packages/weft-mpi_*.deb > /tmp/dpkg
weft=$(echo /usr/lib/*/weft)
for name in mpicc mpicxx mpiCC mpifort mpif90 mpiexec mpirun; do
    path=$(readlink -f /usr/bin/$name)
    case $path in "$weft"/bin/*) ;; *) echo "/usr/bin/$name is $path"; exit 1 ;; esac
done
for group in mpi mpirun "mpi-$(basename "$(dirname "$weft")")"; do
    update-alternatives --query "$group" | grep -q "^Value: .*weft"
done
test -s "$(dirname "$weft")/libmpi.so" && test -s /usr/include/*/mpi/mpi.h
test -s "$(sed -n 's/^prefix=//p' "$(dirname "$weft")/pkgconfig/mpi-c.pc")/include/mpi.h"
for name in mpi mpi-cxx mpi-fort; do
    test -d "$(sed -n 's/^prefix=//p' "$(dirname "$weft")/pkgconfig/$name.pc")/lib/pkgconfig"
done
for file in bash-completion/completions/weft zsh/vendor-completions/_weft fish/vendor_completions.d/weft.fish \
    bash-completion/completions/mpiexec zsh/vendor-completions/_mpirun fish/vendor_completions.d/mpiexec.fish; do
    test -s "/usr/share/$file"
done
test -s "$weft/share/modulefiles/weft" && eval "$(weft env --legacy)" && test "$LD_LIBRARY_PATH" = "$weft/lib/weft/legacy"
unset LD_LIBRARY_PATH
mpicc -show | grep -q -- "-I$weft/include"
mpirun -n 4 /packages/heat-deb
# The loader finds the library without mpirun.
/packages/heat-deb
weft info > /tmp/info
test -s /usr/share/doc/weft-mpi/copyright && test -s /usr/share/doc/weft-mpi/THIRD-PARTY.md
dpkg --purge weft-mpi > /tmp/dpkg
nothing_is_left
