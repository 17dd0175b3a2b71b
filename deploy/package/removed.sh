#!/bin/sh
# After the files have gone. What the service kept goes when the package is purged, which only deb knows.
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
case "${1:-}" in
remove | 0)
	if [ ! -e /usr/bin/cove ]; then rm -f /etc/apparmor.d/cove; fi
	;;
purge)
	rm -f /etc/apparmor.d/cove
	rm -rf /var/lib/cove /var/cache/cove /etc/cove
	if getent passwd cove >/dev/null; then userdel cove; fi
	if getent group cove >/dev/null; then groupdel cove; fi
	;;
esac
