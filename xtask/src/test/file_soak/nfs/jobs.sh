#!/bin/sh
# Jobs on files of $1, which both of two machines have mounted. $2 is the installation, $3 the folder of programs, $4 a Python with mpi4py, $5
# the folder of mpi4py's tests, $6 what to run: `files` for a mount that keeps pages, `strict` for one that keeps nothing; then the names of
# the tests of mpi4py.
place=$1 prefix=$2 programs=$3 python=$4 tests=$5 what=$6
shift 6
names=$*
failed=0
# on RANKS WHAT-IT-SAYS WORDS
on() {
    ranks=$1 says=$2
    shift 2
    case $ranks in 2) hosts=vm0:1,vm1:1 ;; *) hosts=vm0:2,vm1:2 ;; esac
    if said=$("$prefix/bin/mpiexec" --timeout 1200 --launch-agent weft-vm-run --hosts $hosts -n "$ranks" \
        env TMPDIR="$place" LD_LIBRARY_PATH="$prefix/lib" "$@" 2>&1) &&
        echo "$said" | grep -q "$says"; then
        echo "ok   NFS, $what: $* on $ranks ranks of two hosts: $(echo "$said" | grep "$says" | tail -n 1)"
    else
        failed=1
        echo "FAILED   NFS, $what: $* on $ranks ranks of two hosts"
        echo "$said" | tail -n 30
    fi
}
if [ "$what" = files ]; then
    on 2 correct "$programs/files-between" "$place/file"
    on 4 correct "$programs/files-between" "$place/file"
    # A server with room for 5 MiB.
    free=$(df -k --output=avail /tmp/export | tail -n 1)
    fallocate -l $((free - 5120))K /tmp/export/taken
    on 2 correct "$programs/files-full-later" "$place/file"
    on 4 correct "$programs/files-full-later" "$place/file"
    rm /tmp/export/taken
    on 2 'Ran [0-9]' "$python" "$tests/main.py" --quiet $names
else
    on 2 correct "$programs/files"
    on 2 correct "$programs/files_access"
fi
exit $failed
