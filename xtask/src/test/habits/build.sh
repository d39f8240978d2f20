# Builds the programs of this folder as projects do: by CMake, Meson, Autoconf, pkg-config and make, and runs each on two ranks.
# $1 is the folder of an installation's commands, $2 that of its files for pkg-config, and $3 that of autoconf-archive's macros.
# PATH leads to the build systems. Prints a line "ok   NAME" for each passed test, and "NOT RUN NAME: REASON" for each that cannot run.
set -eu
bin=$1 pkgconfig=$2 macros=$3
here=$PWD
PATH=$bin:$PATH
export PATH
unset CC CXX FC MPICC MPICXX MPIFC MPI_HOME LD_LIBRARY_PATH OMPI_CC MPICH_CC WEFT_CC

# Runs a command. Prints its output only if the command fails.
quiet() {
    "$@" > "$here/log" 2>&1 || { echo "FAILED: $*"; tail -n 40 "$here/log"; exit 1; }
}

# Runs programs on two ranks.
runs() {
    for program; do
        quiet mpiexec --timeout 60 -n 2 "$program"
        grep -q "size 2 sum 1" "$here/log" || { echo "FAILED: $program printed:"; cat "$here/log"; exit 1; }
    done
}

# Copies the programs into a new folder, and goes there.
project() {
    mkdir "$here/$1"
    cp "$here"/sum.* "$here/Makefile.in" "$here/$1"
    cd "$here/$1"
}

# Goes on if there is a tool.
has() {
    command -v "$1" > /dev/null || { echo "NOT RUN $2: there is no $1"; return 1; }
}

# The first mpifort builds the modules and prints a line about it.
quiet mpifort -c sum.f90 -o sum.o

if has cmake CMake; then
    quiet cmake -S . -B "with cmake"
    quiet cmake --build "with cmake" --parallel 2
    quiet env CTEST_OUTPUT_ON_FAILURE=1 cmake --build "with cmake" --target test
    grep -q "100% tests passed, 0 tests failed out of 3" log || { cat log; exit 1; }
    grep -q "^MPI_C_LIBRARIES\|^MPI_mpi_abi_LIBRARY:FILEPATH=$(dirname "$bin")/lib" "with cmake/CMakeCache.txt" \
        || { echo "FAILED: FindMPI has found another library"; grep MPI_ "with cmake/CMakeCache.txt"; exit 1; }
    echo "ok   CMake"
fi

if has meson Meson && has ninja Meson; then
    quiet meson setup "with meson"
    test "$(grep -c "$bin/mpi" log)" = 4 || { echo "FAILED: Meson has found other commands"; cat log; exit 1; }
    quiet meson test -C "with meson" --print-errorlogs
    grep -q "Ok: *3" log || { cat log; exit 1; }
    echo "ok   Meson"
fi

if test -f "$macros/ax_mpi.m4" && has autoconf Autoconf && has aclocal Autoconf; then
    for macro in configure prog_cc; do
        project "with $macro"
        cp "$here/$macro.ac" configure.ac
        quiet aclocal -I "$macros"
        quiet autoconf
        quiet ./configure
        quiet make -j 4
        runs ./sum_c ./sum_cxx ./sum_fortran
        cd "$here"
        echo "ok   Autoconf: $macro"
    done
else
    echo "NOT RUN Autoconf: there is no autoconf, or no autoconf-archive"
fi

if has pkg-config pkg-config; then
    for language in "mpi cc c" "mpi-c cc c" "mpi-cxx c++ cc" "mpi-fort gfortran f90"; do
        set -- $language
        flags=$(PKG_CONFIG_PATH=$pkgconfig pkg-config --cflags --libs "$1")
        eval "set -- $language $flags"
        compiler=$2 source=sum.$3 program=./pkg-$1
        shift 3
        quiet "$compiler" "$source" -o "$program" "$@"
        runs "$program"
    done
    echo "ok   pkg-config: mpi, mpi-c, mpi-cxx, mpi-fort"
fi

# The wrapper is the compiler of a parallel make.
project "with make"
quiet make -f Makefile.in -j 4 CC=mpicc CXX=mpicxx FC=mpifort
runs ./sum_c ./sum_cxx ./sum_fortran
cd "$here"
echo "ok   make -j with CC=mpicc"

# Commands of other projects are made from what the wrappers print, in the options of both other families.
for query in -show "-showme" "-show -c sum.c" "-compile_info -c sum.c" "-compile-info -c sum.c" "-show-compile-info -c sum.c"; do
    quiet mpicc $query
    eval "set -- $(cat log)"
    case $query in
        *sum.c) quiet "$@" ;;
        *)
            compiler=$1
            shift
            # Libraries come behind the sources that need them.
            quiet "$compiler" sum.c -o by-query "$@"
            runs ./by-query
            ;;
    esac
done
for options in "--showme:compile --showme:link" "-showme:compile -showme:link"; do
    for language in "mpicc c" "mpicxx cc" "mpifort f90"; do
        set -- $options $language
        compiler=$($3 --showme:command) source=sum.$4
        flags="$("$3" "$1") $("$3" "$2")"
        eval "set -- $flags"
        quiet "$compiler" "$source" -o by-query "$@"
        runs ./by-query
    done
done
for language in "mpicc c" "mpicxx cc" "mpifort f90"; do
    set -- $language
    quiet "$1" -c "sum.$2" -o by-query.o
    eval "quiet $("$1" -link_info by-query.o -o by-query)"
    runs ./by-query
done
quiet mpicc --showme:incdirs && test -s "$(sed 's/"//g' log)/mpi.h"
quiet mpicc --showme:libdirs && test -e "$(sed 's/"//g' log)/libmpi_abi.so.1"
echo "ok   what the wrappers print"

# Other compilers, by the variables of the three families.
mkdir "other compilers"
cat > "other compilers/mycc" <<'END'
#!/bin/sh
echo used >> "$MARK"
exec cc "$@"
END
chmod +x "other compilers/mycc"
MARK=$here/mark
export MARK
for variable in WEFT_CC MPICH_CC OMPI_CC; do
    rm -f mark
    quiet env "$variable=$here/other compilers/mycc" mpicc sum.c -o by-variable
    test -s mark || { echo "FAILED: $variable names no compiler for mpicc"; exit 1; }
    runs ./by-variable
done
rm mark
quiet mpicc "-cc=$here/other compilers/mycc" sum.c -o by-option && test -s mark
echo "ok   compilers by WEFT_CC, MPICH_CC, OMPI_CC and -cc="

if has ccache ccache; then
    CCACHE_DIR=$here/cache
    export CCACHE_DIR
    for file in 1 2; do
        quiet env WEFT_CC="ccache cc" mpicc -c sum.c -o "cached-$file.o"
    done
    quiet ccache mpicc -c sum.c -o cached-3.o
    quiet mpicc cached-2.o -o cached
    runs ./cached
    ccache --show-stats > log
    grep -Eq "[Hh]its?:? *[(a-z) ]*[1-9]" log || { echo "FAILED: ccache has no hit"; cat log; exit 1; }
    echo "ok   ccache"
fi
if has clang clang; then
    quiet env OMPI_CC=clang mpicc sum.c -o by-clang
    runs ./by-clang
    echo "ok   clang"
fi
