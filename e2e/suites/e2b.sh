#!/bin/sh
# Runs the Python tests of E2B's repositories against `cove serve`, with E2B's libraries as they are published, and prints what passed and failed by name.
#
#   E2B_SOURCE=/path/to/checkout e2e/suites/e2b.sh [TESTS...]
#
# E2B_SOURCE is a checkout of E2B's repository of SDKs (tests in packages/python-sdk) or of its code interpreter (tests in python). TESTS are files or folders below "tests" there; all without.
# Nothing of the checkout is built or imported but its tests, which are copied. A test that passes where no server is does not need one, and is not counted.
# One that fails in both is counted, whether or not it needs a server: look at it.
# E2B_PACKAGES names the libraries (default: the newest e2b and e2b-code-interpreter); settings of the server come from the environment, as COVE_ROOT=true and COVE_NETWORK_ALLOW.
# It needs uv, curl, and bin/cove (`make build`, `make python`).
set -eu
[ -n "${E2B_SOURCE:-}" ] || { sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 2; }
root=$(cd "$(dirname "$0")/../.." && pwd)
for folder in "$E2B_SOURCE/packages/python-sdk" "$E2B_SOURCE/python" ""; do
	[ -n "$folder" ] || { echo "E2B_SOURCE=$E2B_SOURCE has no Python tests" >&2; exit 2; }
	[ -d "$folder/tests" ] && break
done
[ -x "$root/bin/cove" ] || { echo "there is no bin/cove: make build" >&2; exit 2; }

work=$(mktemp -d)
chmod 755 "$work"
server=
end() {
	[ -z "$server" ] || { kill "$server" 2>/dev/null && wait "$server" || true; }
	rm -rf "$work"
}
trap end EXIT
trap 'exit 130' INT TERM

cp -R "$folder/tests" "$work/tests"
[ ! -f "$folder/pytest.ini" ] || cp "$folder/pytest.ini" "$work/"
uv venv -q "$work/venv"
# shellcheck disable=SC2086 # several words
uv pip install -q --python "$work/venv/bin/python" ${E2B_PACKAGES:-e2b e2b-code-interpreter} pytest pytest-asyncio pytest-timeout python-dotenv
uv pip list -q --python "$work/venv/bin/python" 2>/dev/null | grep '^e2b'

port=$("$work/venv/bin/python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export E2B_API_URL="http://127.0.0.1:$port" E2B_SANDBOX_URL="http://127.0.0.1:$port"
[ $# -gt 0 ] || set -- tests

# outcomes writes the names of tests with how they ended: "PASSED tests/a.py::test_b".
outcomes() {
	timeout=$1
	shift
	(cd "$work" && venv/bin/python -m pytest -q -p no:cacheprovider --tb=no -rA --timeout="$timeout" "$@" 2>&1 || true) >"$work/said"
	tail -n 1 "$work/said" >&2
	sed -nE 's/^(PASSED|FAILED|ERROR) ([^ ]+).*/\1 \2/p' "$work/said" | sort -u
}

echo "without a server:" >&2
E2B_API_KEY=e2b_00 outcomes 20 "$@" | sed -n 's/^PASSED //p' >"$work/without"

COVE_SERVER_FOLDER="$work/server" COVE_DATABASE="$work/cove.db" COVE_RUNTIME="$work/run" "$root/bin/cove" serve --listen "127.0.0.1:$port" >"$work/log" 2>&1 &
server=$!
tries=0
until curl -fsS -o "$work/health" "$E2B_API_URL/api/v1/health" 2>/dev/null; do
	tries=$((tries + 1))
	if [ "$tries" -gt 600 ] || ! kill -0 "$server" 2>/dev/null; then
		cat "$work/log" >&2
		exit 1
	fi
	sleep 0.5
done
E2B_API_KEY=$(sed -nE 's/.*COVE_KEY=(cove_[^ ]+).*/\1/p' "$work/log" | head -n 1)
export E2B_API_KEY

echo "with cove:" >&2
outcomes 180 "$@" >"$work/with"
awk 'NR == FNR { free[$1]; next } !($2 in free) { print; n[$1]++ } END { printf "%d of %d tests that need a server passed\n", n["PASSED"], n["PASSED"] + n["FAILED"] + n["ERROR"] }' "$work/without" "$work/with"
