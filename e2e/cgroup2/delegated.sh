#!/bin/sh
# delegated.sh COMMAND [ARGUMENT...]: run a command as an ordinary user, in a cgroup of version 2 that is the user's to divide, as a service manager does it for a service with Delegate=. Takes root.
set -eu
group=/sys/fs/cgroup/given
echo "+cpu +memory +pids" >/sys/fs/cgroup/cgroup.subtree_control
mkdir -p "$group"
chown 1000:1000 "$group" "$group/cgroup.procs" "$group/cgroup.subtree_control" "$group/cgroup.threads"
echo $$ >"$group/cgroup.procs"
home=$(mktemp -d)
chown 1000:1000 "$home"
cd "$home"
exec env HOME="$home" setpriv --reuid 1000 --regid 1000 --clear-groups "$@"
