#!/bin/sh
# Makes the secrets of compose.yaml that are not there yet, in the folder secrets/ beside this file. None is ever replaced: the database keeps the password that it was made with.
set -eu
cd "$(dirname "$0")"
umask 077
mkdir -p secrets
for name in database_password grafana_password; do
	[ -s "secrets/$name" ] || od -An -N24 -tx1 /dev/urandom | tr -d ' \n' >"secrets/$name"
done
# cove is given the whole address, which has the password.
[ -s secrets/database_url ] || printf 'postgres://cove:%s@postgres:5432/cove?sslmode=disable' "$(cat secrets/database_password)" >secrets/database_url
chmod 0444 secrets/* # each is shown to its own container alone, as that container's user; the folder is closed to everybody else here
