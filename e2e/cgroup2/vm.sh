#!/bin/sh
# vm.sh COMMAND [ARGUMENT...]: run a command on a machine with cgroup v2: Debian's kernel under qemu, over this machine's files. What it writes is gone
# afterwards. Its output and exit status are the command's.
#
# It is emulated, so that it works everywhere, and 10 to 20 times slower than this machine; VM_ACCEL=kvm uses the processor's own help instead. VM_CPUS and
# VM_MEMORY (MiB) say how large it is. Root on Debian or Ubuntu gets what is missing installed.
set -eu

modules="virtio_pci virtio_blk virtio_rng 9pnet_virtio 9p overlay ext4 loop"

install_missing() {
	missing=
	command -v qemu-system-x86_64 >/dev/null || missing="$missing qemu-system-x86"
	command -v busybox >/dev/null || missing="$missing busybox-static"
	command -v cpio >/dev/null || missing="$missing cpio"
	command -v mkfs.ext4 >/dev/null || missing="$missing e2fsprogs"
	[ -n "$(newest_kernel)" ] || missing="$missing linux-image-amd64"
	[ -z "$missing" ] && return
	if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
		echo "install first:$missing" >&2
		exit 1
	fi
	# shellcheck disable=SC2086 # a list
	apt-get install -y --no-install-recommends $missing >&2 || { apt-get update && apt-get install -y --no-install-recommends $missing; } >&2
}

# newest_kernel prints the version of a kernel with the file system over which the machine sees ours.
newest_kernel() {
	for module in /lib/modules/*/kernel/fs/9p/9p.ko*; do
		version=${module#/lib/modules/}
		version=${version%%/*}
		[ -r "/boot/vmlinuz-$version" ] && echo "$version"
	done | sort -V | tail -1
}

# module_files prints the files of the modules, each after those that it needs.
module_files() {
	for name in $modules; do
		modprobe --set-version "$1" --show-depends "$name" 2>/dev/null || true
	done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }'
}

make_initramfs() {
	mkdir -p "$work/root/bin" "$work/root/modules" "$work/root/proc" "$work/root/dev"
	cp "$(command -v busybox)" "$work/root/bin/busybox"
	number=100
	module_files "$1" | while read -r file; do
		case $file in
		*.xz) xz -dc "$file" ;;
		*.zst) zstd -qdc "$file" ;;
		*) cat "$file" ;;
		esac >"$work/root/modules/$number.ko"
		number=$((number + 1))
	done
	cp "$here/init.sh" "$work/root/init"
	(cd "$work/root" && find . | cpio -o -H newc --quiet) >"$work/initramfs"
}

# quoted prints its arguments as a line for a shell.
quoted() {
	for word; do
		printf "'%s' " "$(printf %s "$word" | sed "s/'/'\\\\''/g")"
	done
}

here=$(cd "$(dirname "$0")" && pwd)
install_missing
version=$(newest_kernel)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
make_initramfs "$version"
truncate -s 16G "$work/disk"
mkfs.ext4 -q "$work/disk"
mkdir "$work/share"
{
	env | grep '^COVE_TEST' | while IFS='=' read -r name value; do echo "export $name=$(quoted "$value")"; done
	echo "export HOME=$(quoted "$HOME") PATH=$(quoted "$PATH")"
	echo "cd $(quoted "$PWD")"
	quoted "$@"
} >"$work/share/command"

# No network but loopback. The machine's console is ours.
nice qemu-system-x86_64 -M q35 -accel "${VM_ACCEL:-tcg,thread=multi}" -cpu max -smp "${VM_CPUS:-2}" -m "${VM_MEMORY:-4096}" \
	-nodefaults -no-reboot -display none -serial stdio -device virtio-rng-pci \
	-kernel "/boot/vmlinuz-$version" -initrd "$work/initramfs" \
	-append "console=ttyS0 quiet loglevel=3 panic=-1 cgroup_no_v1=all swapaccount=1 mitigations=off" \
	-drive "file=$work/disk,format=raw,if=virtio,cache=unsafe" \
	-virtfs "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap" \
	-virtfs "local,path=$work/share,mount_tag=share,security_model=none" </dev/null
exit "$(cat "$work/share/status" 2>/dev/null || echo 125)"
