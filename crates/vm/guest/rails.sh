#!/bin/sh
# Makes the rails inside the virtual machine, as root, with the host's own programs: devices, addresses, soft-RoCE.
#   rails.sh NUMBER MACHINES MTU_A MTU_B DEVICE_MODE NETEM...
# One machine: rail R is a veth pair, vaR (10.77.R.1) and vbR (10.77.R.2), an rxe device on each end.
# Two: rail R is railR, 10.77.R.1 in machine 0 and 10.77.R.2 in machine 1; the device ctl carries what is not tested.
set -eu
number=$1 machines=$2 mtu_a=$3 mtu_b=$4 mode=$5
shift 5
PATH=/usr/sbin:/usr/bin:/sbin:/bin

place=/tmp/weft-vm
mkdir -p $place
echo "vm$number" >/proc/sys/kernel/hostname
for default in all default; do
    echo 0 >/proc/sys/net/ipv4/conf/$default/rp_filter
    echo 1 >/proc/sys/net/ipv4/conf/$default/accept_local
    # No wait for duplicate address detection before IPv6 addresses, and so their GIDs, can be used.
    echo 0 >/proc/sys/net/ipv6/conf/$default/accept_dad
done

links() {
    echo "link set lo up"
    for r in 0 1; do
        if [ "$machines" = 1 ]; then
            echo "link add va$r mtu $mtu_a address 02:77:00:00:0$r:01 type veth" \
                "peer name vb$r mtu $mtu_b address 02:77:00:00:0$r:02"
            echo "address add 10.77.$r.1/24 dev va$r"
            echo "address add 10.77.$r.2/24 dev vb$r"
        else
            mtu=$mtu_a
            [ "$number" = 0 ] || mtu=$mtu_b
            echo "link set eth$r name rail$r"
            echo "link set rail$r mtu $mtu"
            echo "address add 10.77.$r.$((number + 1))/24 dev rail$r"
        fi
        for device in $(ends $r); do
            echo "link set $device up"
        done
    done
    if [ "$machines" = 2 ]; then
        other=$((2 - number))
        for r in 0 1; do
            echo "neigh replace 10.77.$r.$other lladdr 02:77:00:00:0$r:0$other dev rail$r nud permanent"
        done
        echo "link set eth2 name ctl"
        echo "address add 10.78.0.$((number + 1))/24 dev ctl"
        echo "link set ctl up"
    fi
}

# The devices of a rail in this machine.
ends() {
    if [ "$machines" = 1 ]; then echo "va$1 vb$1"; else echo "rail$1"; fi
}

# With one machine both ends are local addresses, which the kernel would join inside the loopback device. These rules put
# packets from one end to the other on the wire: what comes in on a rail is for us; what leaves by one goes to the other
# end; only then come the local addresses. Neighbours are fixed, so that no loss can hit their discovery.
rules() {
    table=100
    for r in 0 1; do
        for pair in "va 1 vb 2" "vb 2 va 1"; do
            # shellcheck disable=SC2086 # split on purpose
            set -- $pair
            table=$((table + 1))
            echo "rule add pref 10 iif $1$r lookup local"
            echo "route add 10.77.$r.$4 dev $1$r src 10.77.$r.$2 table $table"
            echo "rule add pref 20 oif $1$r to 10.77.$r.$4 lookup $table"
            echo "rule add pref 20 from 10.77.$r.$2 to 10.77.$r.$4 lookup $table"
            echo "neigh replace 10.77.$r.$4 lladdr 02:77:00:00:0$r:0$4 dev $1$r nud permanent"
        done
    done
    echo "rule add pref 30 lookup local"
    echo "rule del pref 0 lookup local"
}

links | ip -batch -
if [ "$machines" = 1 ]; then
    rules | ip -batch -
    control="127.0.0.1 vm0"
    echo vm0 >$place/hosts
else
    control="10.78.0.1 vm0
10.78.0.2 vm1"
    printf 'vm0\nvm1\n' >$place/hosts
fi
printf '127.0.0.1 localhost\n%s\n' "$control" >$place/etc-hosts
mount --bind $place/etc-hosts /etc/hosts

all="$(ends 0) $(ends 1)"
for device in $all; do
    echo "link add rxe_$device type rxe netdev $device"
done | rdma -b -
for device in $all; do
    tries=100
    until read -r state </sys/class/infiniband/rxe_"$device"/ports/1/state && [ "$state" = "4: ACTIVE" ]; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || {
            echo "weft-vm: the port of rxe_$device did not become active: $state" >&2
            exit 1
        }
        sleep 0.05
    done
    [ $# = 0 ] || tc qdisc add dev "$device" root netem limit 10000 "$@"
done
[ "$mode" = - ] || chmod "$mode" /dev/infiniband/uverbs*
