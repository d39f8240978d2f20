# Reads the recipes in the folder $1 with linters. $2 is the Python that has EasyBuild. Prints a line "ok   NAME" for each recipe.
set -eu
packaging=$1 python=$2

# Versions of packages are not pinned, because Debian keeps only the newest.
hadolint --no-color --ignore DL3008 "$packaging/containers/Dockerfile"
shellcheck --shell=sh steps-dockerfile.sh
echo "ok   hadolint and shellcheck of the Dockerfile"
shellcheck --shell=sh steps-apptainer.sh
echo "ok   shellcheck of the sections of Apptainer's definition"
for script in postinst prerm postrm; do
    sed 's/@TRIPLET@/x86_64-linux-gnu/g' "$packaging/deb/$script" > "$script"
    shellcheck --shell=sh "$script"
done
echo "ok   shellcheck of the Debian package's scripts"

# The star import is Spack's convention.
flake8 --max-line-length 120 --extend-ignore F403,F405 "$packaging/spack"
flake8 --max-line-length 120 "$packaging/easybuild/toolchains"
echo "ok   flake8 of Spack's package and of EasyBuild's toolchain"
if spack --version > /dev/null 2>&1; then
    spack --config "repos:weft:$packaging/spack" style "$packaging/spack/packages/weft/package.py"
    spack --config "repos:weft:$packaging/spack" info weft > log
    echo "ok   Spack's style"
else
    echo "NOT RUN spack style: there is no spack, neither in PyPI nor in Debian"
fi

if test -n "${MODULECMD-}"; then
    . ./modules.sh
    "$python" read_easyconfigs.py "$packaging/easybuild" > log 2>&1 || { cat log; exit 1; }
    grep -q "^gweft 13.3.0: GCC 13.3.0, Weft 0.1.0-GCC-13.3.0$" log || { echo "FAILED: EasyBuild's toolchain"; cat log; exit 1; }
    echo "ok   EasyBuild reads its files and finds the toolchain"
else
    echo "NOT RUN EasyBuild: there are no Environment Modules"
fi
