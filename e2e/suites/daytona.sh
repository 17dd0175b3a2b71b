#!/bin/sh
# Runs the tests of Daytona's repository of clients against `cove serve`, with Daytona's library as it is published, and prints what passed and failed by name.
#
#   DAYTONA_SOURCE=/path/to/checkout [LANGUAGE=javascript] e2e/suites/daytona.sh [TESTS...]
#
# DAYTONA_SOURCE is a checkout that has sdk-python/tests, and for LANGUAGE=javascript sdk-typescript/src/__tests__. TESTS are files there (default: those that need a server). Nothing of the checkout is
# built or imported but its tests, which are copied.
# The tests clone a repository from a public host. With STAND_IN=true a server on this machine, with a certificate of its own, stands in for that host: its name and its authority are known in
# cove's mount namespace alone, and sandboxes reach it by the rules of the network as they would reach the host. That takes root, git and openssl.
# COVE_NETWORK_ALLOW has what else sandboxes may reach, as the package index (HOST:443); other settings of the server come from the environment, too. DAYTONA_PACKAGE is the library (default: daytona,
# and for JavaScript @daytonaio/sdk). It needs uv, curl, and bin/cove (`make build`, `make python`), for JavaScript npm.
set -eu
[ -n "${DAYTONA_SOURCE:-}" ] || { sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 2; }
root=$(cd "$(dirname "$0")/../.." && pwd)
case "${LANGUAGE:=python}" in
python) folder=sdk-python/tests ;;
javascript) folder=sdk-typescript/src/__tests__ ;;
*) echo "LANGUAGE=$LANGUAGE: there are python and javascript" >&2; exit 2 ;;
esac
[ -d "$DAYTONA_SOURCE/$folder" ] || { echo "DAYTONA_SOURCE=$DAYTONA_SOURCE has no $folder" >&2; exit 2; }
[ -x "$root/bin/cove" ] || { echo "there is no bin/cove: make build" >&2; exit 2; }

work=$(mktemp -d)
chmod 755 "$work"
server= host=
end() {
	for process in $server $host; do kill "$process" 2>/dev/null && wait "$process" || true; done
	rm -rf "$work"
}
trap end EXIT
trap 'exit 130' INT TERM

mkdir "$work/src"
cp -R "$DAYTONA_SOURCE/$folder" "$work/src/tests"
uv venv -q "$work/venv"

installPython() {
	uv pip install -q --python "$work/venv/bin/python" "${DAYTONA_PACKAGE:-daytona}" pytest pytest-asyncio pytest-timeout python-dotenv
	uv pip list -q --python "$work/venv/bin/python" 2>/dev/null | grep '^daytona '
}

# installJavaScript puts the library in the place of the sources that the tests import. The tests are for Jest, of which they use what Vitest has by the same names.
installJavaScript() {
	(cd "$work" && echo '{"type":"module"}' >package.json && npm install --silent --no-audit --no-fund --no-package-lock "library@npm:${DAYTONA_PACKAGE:-@daytonaio/sdk}" vitest@3)
	sed -n 's/^  "version": "\(.*\)",/daytona \1/p' "$work/node_modules/library/package.json"
	mkdir "$work/src/errors"
	# shellcheck disable=SC2013 # words
	for module in $(sed -nE "s/^.* from '\.\.\/([A-Za-z\/]+)'.*/\1/p" "$work/src/tests"/*e2e*.ts | sort -u); do echo "export * from 'library'" >"$work/src/$module.ts"; done
	echo "import { vi } from 'vitest'; globalThis.jest = Object.assign(Object.create(vi), { setTimeout: (ms) => vi.setConfig({ testTimeout: ms, hookTimeout: ms }) })" >"$work/setup.mjs"
	echo 'export default { test: { globals: true, setupFiles: ["./setup.mjs"], testTimeout: 180000, hookTimeout: 180000 } }' >"$work/vitest.config.mjs"
}

case "$LANGUAGE" in python) installPython ;; *) installJavaScript ;; esac
port=$("$work/venv/bin/python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')

# standIn starts the server that stands in for the public host.
standIn() {
	name=github.com
	address=$("$work/venv/bin/python" -c 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(("192.0.2.1", 9)); print(s.getsockname()[0])')
	openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=an authority" -keyout "$work/authority.key" -out "$work/authority.pem" 2>/dev/null
	printf 'subjectAltName=DNS:%s\n' "$name" >"$work/extensions"
	openssl req -newkey rsa:2048 -nodes -subj "/CN=$name" -keyout "$work/key.pem" -out "$work/request.pem" 2>/dev/null
	openssl x509 -req -days 2 -in "$work/request.pem" -CA "$work/authority.pem" -CAkey "$work/authority.key" -CAcreateserial -extfile "$work/extensions" -out "$work/certificate.pem" 2>/dev/null
	cat /etc/ssl/certs/ca-certificates.crt "$work/authority.pem" >"$work/bundle.pem"
	git init -q -b master "$work/made"
	(cd "$work/made" && echo 'Hello World!' >README && git add . && git -c user.name=a -c user.email=a@example.com commit -q -m first && git branch test)
	mkdir -p "$work/repositories/octocat"
	git clone -q --bare "$work/made" "$work/repositories/octocat/Hello-World.git"
	"$work/venv/bin/python" "$root/e2e/suites/githost.py" "$work/repositories" "$address:443" "$work/certificate.pem" "$work/key.pem" >"$work/host.log" 2>&1 &
	host=$!
	{ cat /etc/hosts; echo "$address $name"; } >"$work/hosts"
	export COVE_NETWORK_ALLOW="$name:443,$address:443${COVE_NETWORK_ALLOW:+,$COVE_NETWORK_ALLOW}"
}
[ "${STAND_IN:-}" != true ] || standIn

start="exec \"\$0\" serve --listen 127.0.0.1:$port"
[ -z "$host" ] || start="mount --bind '$work/hosts' /etc/hosts && mount --bind '$work/bundle.pem' /etc/ssl/certs/ca-certificates.crt && $start"
export COVE_SERVER_FOLDER="$work/server" COVE_DATABASE="$work/cove.db" COVE_RUNTIME="$work/run"
export COVE_REQUESTS_PER_SECOND="${COVE_REQUESTS_PER_SECOND:-0}" COVE_PROJECT_REQUESTS_PER_SECOND="${COVE_PROJECT_REQUESTS_PER_SECOND:-0}" # the tests do not come again
if [ -n "$host" ]; then
	unshare --mount sh -c "$start" "$root/bin/cove" >"$work/log" 2>&1 &
else
	sh -c "$start" "$root/bin/cove" >"$work/log" 2>&1 &
fi
server=$!
tries=0
until curl -fsS -o "$work/health" "http://127.0.0.1:$port/api/v1/health" 2>/dev/null; do
	tries=$((tries + 1))
	if [ "$tries" -gt 600 ] || ! kill -0 "$server" 2>/dev/null; then
		cat "$work/log" >&2
		exit 1
	fi
	sleep 0.5
done
DAYTONA_API_URL="http://127.0.0.1:$port/daytona"
DAYTONA_API_KEY=$(sed -nE 's/.*COVE_KEY=(cove_[^ ]+).*/\1/p' "$work/log" | head -n 1)
export DAYTONA_API_URL DAYTONA_API_KEY

runPython() {
	[ $# -gt 0 ] || set -- test_e2e.py test_async_e2e.py
	(cd "$work/src/tests" && ../../venv/bin/python -m pytest -q -p no:cacheprovider --tb=line -rA --timeout=180 "$@" 2>&1 || true) >"$work/said"
	sed -nE 's/^(PASSED|FAILED|ERROR|SKIPPED) ([^ ]+).*/\1 \2/p' "$work/said" | sort -u
	grep -E '^(FAILED|ERROR) ' "$work/said" | cut -c1-300 >&2 || true
	tail -n 1 "$work/said"
}

runJavaScript() {
	[ $# -gt 0 ] || set -- e2e.test.ts
	(cd "$work" && NO_COLOR=1 npx vitest run --reporter=json --outputFile=said.json "$@" 2>&1 || true) >"$work/said"
	"$work/venv/bin/python" - "$work/said.json" <<-'END'
		import json, sys
		said = json.load(open(sys.argv[1]))
		for test in (test for file in said["testResults"] for test in file["assertionResults"]):
		    print(test["status"].upper(), test["title"])
		    if test["status"] == "failed":
		        print("FAILED", test["title"], "-", " ".join(test["failureMessages"])[:300].replace("\n", " "), file=sys.stderr)
		print(f'{said["numPassedTests"]} of {said["numTotalTests"]} passed')
	END
}

case "$LANGUAGE" in python) runPython "$@" ;; *) runJavaScript "$@" ;; esac
