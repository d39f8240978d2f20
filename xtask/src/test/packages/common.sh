# Common part of the scripts that run in the bare root.
for tool in cc gcc rustc cargo mpicc mpiexec; do
    if command -v $tool; then echo "the root is not bare: it has $tool"; exit 1; fi
done

# Lists all files and folders of these kinds (default: all), except those in which dpkg and ldconfig keep their own state.
kinds=${kinds:-}
files() {
    find / -xdev \( -path /packages -o -path /tmp -o -path /proc -o -path /dev -o -path /var/lib/dpkg/status-old \
        -o -path /var/cache/ldconfig -o -name 'alternatives.log' -o -name 'dpkg.log' \) -prune -o $kinds -print | sort
}

# Checks that the files are those of the list before the installation, and that jobs have left nothing in shared memory.
nothing_is_left() {
    files > /tmp/after
    diff /tmp/before /tmp/after || { echo "uninstalling has left files, or has removed too many"; exit 1; }
    test -z "$(ls /dev/shm)" || { ls -l /dev/shm; echo "jobs have left segments"; exit 1; }
}
