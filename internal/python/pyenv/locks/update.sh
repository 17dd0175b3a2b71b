#!/bin/sh
# Resolves every .in file here into a .txt with exact versions and hashes, for all
# supported Pythons (3.10 to 3.14) at once. The index is whatever uv is configured to use;
# nothing about it is written into the locks. Needs uv on the PATH.
#
# A new release is taken only when it is a few days old, so that a bad one has been noticed.
set -eu
cd "$(dirname "$0")"
for set in minimal standard standard-2024 fonts uv; do
	deps= age=${COVE_LOCK_AGE:-3 days}
	case $set in
	fonts | uv) deps=--no-deps ;;
	standard-2024) age=2025-01-01 ;;
	esac
	uv pip compile --quiet --upgrade --universal --generate-hashes --python-version 3.10 --no-python-downloads \
		--only-binary :all: --exclude-newer "$age" $deps \
		--no-emit-index-url --no-emit-find-links --no-header --no-annotate "$set.in" --output-file "$set.txt"
done
if grep -n '://' ./*.txt; then
	echo "update.sh: a lock names a host; see above" >&2
	exit 1
fi
for python in 3.10 3.11 3.12 3.13 3.14; do
	for machine in x86_64 aarch64; do
		for set in minimal standard standard-2024; do
			case $set$python in standard-20243.14) continue ;; esac # of 2024 there is nothing for it
			uv pip install --quiet --dry-run --target /nonexistent --no-python-downloads --python-version "$python" \
				--python-platform "$machine-manylinux_2_28" --only-binary :all: --require-hashes --requirements "$set.txt"
		done
	done
done
