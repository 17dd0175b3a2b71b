#!/bin/sh
# Runs a `go build` of cove on a terminal, and says in one line that changes how many packages are compiled, and for how long: sh build.sh go build ARGUMENTS
set -eu
all=$("$1" list -deps ./cmd/cove | wc -l) # also downloads what is missing, and says so
{
	while sleep 1; do echo second; done &
	code=0
	GOFLAGS="${GOFLAGS-} -v" "$@" 2>&1 || code=$?
	kill $!
	echo "exit $code"
} | {
	n=0 seconds=0 doing=
	while IFS= read -r line; do
		case $line in
		'exit '*) printf '\r\033[K' && exit "${line#exit }" ;;
		second) seconds=$((seconds + 1)) ;;
		cove/cmd/cove) doing='linking the program' ;;
		'#'* | *' '* | '	'*) printf '\r\033[K%s\n' "$line" ;; # a message
		*) n=$((n + 1)) doing="$n of $all packages" ;;
		esac
		[ -z "$doing" ] || printf '\r\033[Kbuilding cove: %s, %d s' "$doing" "$seconds"
	done
}
