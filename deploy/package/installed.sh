#!/bin/sh
# After the files are in place, on installation and upgrade.
set -e

if ! getent passwd cove >/dev/null; then
	if command -v systemd-sysusers >/dev/null; then
		systemd-sysusers /usr/lib/sysusers.d/cove.conf
	elif command -v useradd >/dev/null; then
		useradd --system --user-group --home-dir /var/lib/cove --no-create-home --shell /usr/sbin/nologin cove
	else # busybox
		addgroup -S cove
		adduser -S -D -H -h /var/lib/cove -s /sbin/nologin -G cove cove
	fi
fi
chown root:cove /etc/cove /etc/cove/config.toml
chmod 0750 /etc/cove

# The profile needs AppArmor 4; an older one would complain of it whenever the machine starts.
if [ -e /etc/apparmor.d/abi/4.0 ] && [ ! -e /etc/apparmor.d/cove ]; then
	cp /usr/share/cove/apparmor /etc/apparmor.d/cove
fi
if [ -e /etc/apparmor.d/cove ] && [ -d /sys/kernel/security/apparmor ] && command -v apparmor_parser >/dev/null; then
	apparmor_parser --replace --write-cache --skip-bad-cache /etc/apparmor.d/cove || echo "cove: its AppArmor profile could not be loaded; cove doctor says whether sandboxes start" >&2
fi

if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	if systemctl is-active --quiet cove.service; then
		systemctl restart cove.service
	else
		echo "cove is installed. To serve on this machine: systemctl enable --now cove (the first start downloads about 220 MB of Python packages)"
	fi
fi
