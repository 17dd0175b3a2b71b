#!/bin/busybox sh
# shellcheck shell=dash
# The first program of the machine that vm.sh boots.
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t devtmpfs dev /dev
for module in /modules/*.ko; do insmod "$module" || echo "cannot load $module"; done

mkdir -p /host /disk /share /new
mount -t ext4 /dev/vda /disk
mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=loose,ro host /host
mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000 share /share
mkdir /disk/upper /disk/work /disk/tmp
chmod 1777 /disk/tmp
mount -t overlay -o lowerdir=/host,upperdir=/disk/upper,workdir=/disk/work overlay /new

cd /new || exit 2
mount -t proc proc proc
mount -t sysfs sys sys
mount -t cgroup2 cgroup sys/fs/cgroup
mount --move /dev dev
mkdir -p dev/pts dev/shm
mount -t devpts devpts dev/pts
mount -t tmpfs tmpfs dev/shm
mount -t tmpfs -o mode=755 tmpfs run
mount --bind /disk/tmp tmp
ip link set lo up
hostname cgroup2
# The sandboxes make user namespaces, which only what lives in the real root may.
mkdir -p /new/run/share
mount --move /share /new/run/share
cat >/new/run/first <<'END'
sh /run/share/command </dev/null
echo $? >/run/share/status
sync
echo o >/proc/sysrq-trigger
while :; do :; done
END
umount /proc
exec switch_root /new /bin/sh /run/first
