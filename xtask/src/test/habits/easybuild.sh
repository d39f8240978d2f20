# Installs the tar archive in the folder $2 by EasyBuild with the easyconfig in the folder $1, and runs its checks. The toolchain is the
# system's compiler, because EasyBuild would build GCC first. $3 is the Python that has EasyBuild.
set -eu
. ./modules.sh
sed "s/^toolchain = .*/toolchain = SYSTEM/" "$1"/easybuild/Weft-*.eb > Weft-0.1.0.eb
EB_PYTHON=$3
export EB_PYTHON
eb --allow-use-as-root-and-accept-consequences --modules-tool=EnvironmentModules --module-syntax=Tcl --allow-modules-tool-mismatch \
    --disable-rpath --prefix="$PWD/eb" --sourcepath="$2" --robot-paths="$1/easybuild" Weft-0.1.0.eb > log 2>&1 || { cat log; exit 1; }
grep -q "COMPLETED: Installation ended successfully" log || { cat log; exit 1; }
test -s eb/software/Weft/0.1.0/lib/fortran/default/mpi_f08.mod
echo "ok   EasyBuild installs the tar archive"
