# Asks the commands of an installation as users and shells do: for help, completions, search paths and modules. $1 is the folder of the
# commands, $2 that of the share files. Prints a line "ok   NAME" for each passed test, and "NOT RUN NAME: REASON" for each that cannot run.
set -eu
bin=$1 share=$2
here=$PWD
prefix=$(dirname "$bin")

fail() {
    echo "FAILED: $*"
    exit 1
}

# Checks the help of a command: exit code 0, at most 100 columns, and a description of at least as many options as $1 says.
help() {
    least=$1
    shift
    "$@" > "$here/help" || fail "$*: exit code $?"
    wide=$(awk 'length > 100' "$here/help")
    test -z "$wide" || fail "$*: lines of more than 100 columns: $wide"
    test "$(grep -c '^ *-[-a-zA-Z]' "$here/help")" -ge "$least" || fail "$*: no more than $least options: $(cat "$here/help")"
}

for launcher in mpiexec mpirun; do
    for option in --help -help -h; do
        help 15 "$bin/$launcher" $option
    done
done
for wrapper in mpicc mpicxx mpic++ mpiCC mpifort mpif90 mpif77; do
    for option in -help --showme:help; do
        help 10 "$bin/$wrapper" $option
    done
done
help 2 "$bin/weft" --help
parts=$(awk '/^Commands:/ { on = 1; next } /^$/ { on = 0 } on && /^  [a-z]/ { print $1 }' help)
test "$(echo "$parts" | wc -w)" -ge 6 || fail "weft --help names no more parts than: $parts"
for part in $parts; do
    test "$part" = help && continue
    help 1 "$bin/weft" "$part" --help
    help 1 "$bin/weft" help "$part"
done
help 5 "$bin/weft" info --help
echo "ok   help of all commands"

# Prints bash's completions of the last word.
completed() {
    bash --norc -c '
        . "$1"
        shift
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
        function=$(complete -p "$1") function=${function#*-F } function=${function%% *}
        $function "$1" "${!#}" "${@: -2:1}"
        printf "%s\n" "${COMPREPLY[@]}"' bash "$share/bash-completion/completions/$1" "$@"
}
test "$(completed weft info --pro)" = --program || fail "bash completes weft info --pro to: $(completed weft info --pro)"
completed weft "" | grep -qx tune || fail "bash completes weft to: $(completed weft "")"
completed weft "" | grep -q rank && fail "bash offers parts of weft that are only for itself: $(completed weft "")"
for launcher in mpiexec mpirun; do
    test "$(completed $launcher --ho | sort | tr '\n' ' ')" = "--host --hostfile --hosts " \
        || fail "bash completes $launcher --ho to: $(completed $launcher --ho)"
done
echo "ok   completions of bash"
if command -v zsh > /dev/null; then
    for name in weft mpiexec mpirun; do
        zsh -f -n "$share/zsh/site-functions/_$name" || fail "zsh does not read the completions of $name"
        head -n 1 "$share/zsh/site-functions/_$name" | grep -q "^#compdef $name" || fail "zsh has no completions of $name"
    done
    echo "ok   completions of zsh"
else
    echo "NOT RUN completions of zsh: there is no zsh"
fi
if command -v fish > /dev/null; then
    complete='for file in $argv[1..-2]; source $file; end; complete -C $argv[-1]'
    fish_completions="$share/fish/vendor_completions.d"
    fish --no-config -c "$complete" "$fish_completions/weft.fish" "weft info --pro" | grep -q "^--program" || fail "fish: weft info --pro"
    fish --no-config -c "$complete" "$fish_completions/mpiexec.fish" "mpiexec --hostf" | grep -q "^--hostfile" || fail "fish: mpiexec --hostf"
    echo "ok   completions of fish"
else
    echo "NOT RUN completions of fish: there is no fish"
fi

# A shell that evaluates the lines finds the commands, and with --legacy the loader finds the libraries for older programs.
env=$("$bin/weft" env)
test "$(PATH=/usr/bin:/bin; eval "$env"; command -v mpiexec)" = "$bin/mpiexec" || fail "weft env: $env"
test "$(LD_LIBRARY_PATH=/other; eval "$("$bin/weft" env --legacy)"; echo "$LD_LIBRARY_PATH")" = "$prefix/lib/weft/legacy:/other" \
    || fail "weft env --legacy: $("$bin/weft" env --legacy)"
test -e "$prefix/lib/weft/legacy/libmpi.so.12" && test -e "$prefix/lib/weft/legacy/libmpi.so.40"
echo "ok   weft env"

if test -n "${MODULECMD-}" && command -v tclsh > /dev/null; then
    module() {
        eval "$(tclsh "$MODULECMD" sh "$@" 2> "$here/module")"
        ! grep -i error "$here/module" || fail "module $*: $(cat "$here/module")"
    }
    MODULEPATH=$share/modulefiles
    unset LD_LIBRARY_PATH
    export MODULEPATH
    module load weft
    test "$(command -v mpicc)" = "$bin/mpicc" || fail "module load weft: PATH=$PATH"
    test -z "${LD_LIBRARY_PATH-}" || fail "module load weft sets LD_LIBRARY_PATH=$LD_LIBRARY_PATH"
    module load weft-legacy
    # Behind the folder may be the libraries of Tcl.
    test "${LD_LIBRARY_PATH%%:*}" = "$prefix/lib/weft/legacy" || fail "module load weft-legacy: LD_LIBRARY_PATH=$LD_LIBRARY_PATH"
    test "$PKG_CONFIG_PATH" = "$prefix/lib/pkgconfig" || fail "module load weft: PKG_CONFIG_PATH=$PKG_CONFIG_PATH"
    module unload weft-legacy weft
    case ${LD_LIBRARY_PATH-}:$PATH in *"$prefix"*) fail "module unload leaves $LD_LIBRARY_PATH and $PATH" ;; esac
    echo "ok   modules"
else
    echo "NOT RUN modules: there is no Tcl, or no Environment Modules"
fi
