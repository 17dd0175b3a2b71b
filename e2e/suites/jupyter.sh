#!/bin/sh
# Runs jupyter_server's tests of its services against `cove serve`, and prints what passed and failed by name.
#
#   JUPYTER_SOURCE=/path/to/jupyter_server-2.21.1 e2e/suites/jupyter.sh [ARGUMENTS OF PYTEST...]
#
# JUPYTER_SOURCE is an unpacked source distribution of jupyter_server, whose tests are copied. Without arguments they are those of contents, kernels, sessions, kernel specifications and api, each with the first of
# its configurations: the others are those of the server in the tests' own process, which some tests look into, too.
# It needs uv, curl, and bin/cove (`make build`, `make python`).
set -eu
[ -n "${JUPYTER_SOURCE:-}" ] || { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }
root=$(cd "$(dirname "$0")/../.." && pwd)
[ -d "$JUPYTER_SOURCE/tests/services" ] || { echo "JUPYTER_SOURCE=$JUPYTER_SOURCE has no tests/services" >&2; exit 2; }
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

cp -R "$JUPYTER_SOURCE/tests" "$work/tests"
cp "$root/e2e/suites/jupyter_conftest.py" "$work/tests/services/conftest.py"
printf '[pytest]\nasyncio_mode = auto\n' >"$work/pytest.ini"
uv venv -q "$work/venv"
uv pip install -q --python "$work/venv/bin/python" "jupyter_server==$(basename "$JUPYTER_SOURCE" | sed 's/.*-//')" jupyter_server_terminals ipykernel nbformat 'pytest<9' pytest-jupyter pytest-timeout pytest-console-scripts requests-mock flaky

port=$("$work/venv/bin/python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
COVE_SERVER_FOLDER="$work/server" COVE_DATABASE="$work/cove.db" COVE_RUNTIME="$work/run" COVE_SESSIONS="$work/sessions" "$root/bin/cove" serve --listen "127.0.0.1:$port" >"$work/log" 2>&1 &
server=$!
export COVE_TEST_URL="http://127.0.0.1:$port"
tries=0
until curl -fsS -o "$work/health" "$COVE_TEST_URL/api/v1/health" 2>/dev/null; do
	tries=$((tries + 1))
	if [ "$tries" -gt 600 ] || ! kill -0 "$server" 2>/dev/null; then
		cat "$work/log" >&2
		exit 1
	fi
	sleep 0.5
done
COVE_TEST_KEY=$(sed -n 's/^ *\(cove_[0-9a-z_]*\)$/\1/p' "$work/log" | head -n 1)
export COVE_TEST_KEY

[ $# -gt 0 ] || set -- tests/services/contents/test_api.py tests/services/kernels/test_api.py tests/services/kernels/test_execution_state.py tests/services/sessions/test_api.py \
	tests/services/kernelspecs/test_api.py tests/services/api/test_api.py -k 'not config1 and not config2 and not config3'
(cd "$work" && venv/bin/python -m pytest -q -p no:cacheprovider -p no:unraisableexception -p no:threadexception --tb=no -rA --color=no --no-header --timeout=60 "$@" 2>&1 || true) >"$work/said"
sed -nE 's/^(PASSED|FAILED|ERROR|SKIPPED) ([^ ].*)/\1 \2/p' "$work/said" | sort -u
tail -n 1 "$work/said"
