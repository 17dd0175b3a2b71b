# shellcheck shell=sh
# Installs packages, and makes a tar file of the files that have come.
# Arguments: the name of the tar file, how many options for apt follow, the options, the packages.
exec 2>&1 </dev/null
files=$1
shift
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
# What was here before has been changed before that file: what packages write keeps its old time of change, but not that of its entry in the file system.
stamp=$(mktemp)
sleep 0.1
n=$1
shift
args=
while [ "$n" -gt 0 ]; do
	args="$args $1"
	shift
	n=$((n - 1))
done
# A source that cannot be reached is no reason to stop: the packages may come from the others. Where its disk is full, apt waits without end.
# shellcheck disable=SC2086 # a list
timeout --kill-after=10 900 apt-get $args update
# shellcheck disable=SC2086
apt-get $args install -y --no-install-recommends --no-remove -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold -- "$@" || exit 100
apt-get clean
list=$(mktemp)
find /usr /etc /var /opt \( -path /opt/cove -o -path /var/log -o -path /var/tmp -o -path /var/lib/apt -o -path /var/cache/apt -o -path /var/cache/debconf -o -path /var/cache/ldconfig \
	-o -path /var/cache/man -o -path /etc/apt -o -path /usr/local \) -prune -o -cnewer "$stamp" \( -type f -o -type l -o -type d \) -print0 >"$list"
tar --create --file="$files" --no-recursion --null --verbatim-files-from --files-from="$list" || exit 101
chmod 644 "$files"
