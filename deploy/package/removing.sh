#!/bin/sh
# Before the files go: deb says "remove", rpm 0; an upgrade is none of them.
set -e
case "${1:-remove}" in
remove | 0)
	if [ -d /run/systemd/system ]; then systemctl disable --now cove.service || true; fi
	if [ -e /etc/apparmor.d/cove ] && command -v apparmor_parser >/dev/null && [ -d /sys/kernel/security/apparmor ]; then
		apparmor_parser --remove /etc/apparmor.d/cove || true
	fi
	;;
esac
