# Runs /packages/$4.sh in a copy of the bare root $1. The folder $2 receives the copy, which ends with this script, and the folder $3 is
# /packages there. Ends with 77 if this machine forbids the mounts.
set -eu
{
    mount -t tmpfs tmpfs "$2"
    mkdir "$2/upper" "$2/work" "$2/root"
    mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" "$2/root"
    cd "$2/root"
    mkdir -p packages dev/shm
    mount --bind "$3" packages
    mount -t proc proc proc
    mount -t tmpfs tmpfs tmp
    mount -t tmpfs tmpfs dev/shm
} || exit 77
exec chroot . /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C PYTHONDONTWRITEBYTECODE=1 \
    XDG_CACHE_HOME=/tmp/cache sh -eu "/packages/$4.sh"
