#!/bin/sh
# In the first of two virtual machines: exports a folder by NFS 4.2, and mounts it at $2 in both. $1 has Debian's server, unpacked; $3 are
# further options of the mounts. Then it becomes the rest of its words.
set -e
server=$1 place=$2 options=$3
shift 3
# Only the server's own programs need its libraries.
by() {
    LD_LIBRARY_PATH=$server/usr/lib/x86_64-linux-gnu:$server/lib/x86_64-linux-gnu "$server/usr/sbin/$@"
}
weft-vm-modprobe nfsd nfsv4 loop ext4
mkdir -p /tmp/export
truncate -s 200M /tmp/disk
# Nothing of it is kept for root, who writes here.
mkfs.ext4 -q -m 0 /tmp/disk
mount -o loop /tmp/disk /tmp/export
mount -t tmpfs none /var/lib
mkdir -p /var/lib/nfs/v4recovery
: >/var/lib/nfs/etab
mount -t nfsd nfsd /proc/fs/nfsd
# The server waits for nobody whom it knew before.
echo 10 >/proc/fs/nfsd/nfsv4gracetime
by exportfs -o rw,async,fsid=0,no_root_squash,insecure,no_subtree_check 10.78.0.0/24:/tmp/export 2>&1 | grep -v /etc/exports || true
by rpc.mountd -N 3 -V 4
by rpc.nfsd -N 3 -V 4.2 4
echo Y >/proc/fs/nfsd/v4_end_grace
for host in 1 2; do
    weft-vm-run "vm$((host - 1))" "weft-vm-modprobe nfsv4 && mkdir -p $place && mount -i -t nfs4 \
        -o addr=10.78.0.1,clientaddr=10.78.0.$host,vers=4.2$options 10.78.0.1:/ $place"
done
cd /tmp
"$@"
