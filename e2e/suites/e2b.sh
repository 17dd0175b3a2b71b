#!/bin/sh
# Runs the tests of E2B's repositories against `cove serve`, with E2B's libraries as they are published, and prints what passed and failed by name.
#
#   E2B_SOURCE=/path/to/checkout e2e/suites/e2b.sh [TESTS...]
#
# E2B_SOURCE is a checkout of E2B's repository of SDKs (packages/python-sdk, packages/js-sdk) or of its code interpreter (python, js). TESTS are files or folders below its "tests", as tests/sync; all without.
# With SUITE=js it runs the JavaScript ones, by vitest. Of the checkout nothing is built; what the tests import of it directly is the source beside them, and the library itself is the published one.
# A test that passes where no server is, with the library of its own commit, does not need one, and is not counted. So a test is counted that fails in both, whether or not it needs a server: look at it.
# E2B_PACKAGES names the libraries (default: the newest); with SUITE=js it may be "source", the library beside the tests. Settings of the server come from the environment, as COVE_ROOT=true and COVE_NETWORK_ALLOW.
# With STAND_IN=true all runs in a network and mount namespace of its own, where internet.py stands in for the addresses that the tests connect to, ports have names, and there is no other network. That takes root,
# openssl and iproute2.
# It needs uv or npm, curl, and bin/cove (`make build`, `make python`).
# shellcheck disable=SC2086 # several words in some variables
set -eu
[ -n "${E2B_SOURCE:-}" ] || { sed -n '2,15s/^# \{0,1\}//p' "$0" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
suite=${SUITE:-python}
for folder in "$E2B_SOURCE/packages/$suite-sdk" "$E2B_SOURCE/$suite" ""; do
	[ -n "$folder" ] || { echo "E2B_SOURCE=$E2B_SOURCE has no tests of $suite" >&2; exit 2; }
	[ -d "$folder/tests" ] && break
done
[ -x "$root/bin/cove" ] || { echo "there is no bin/cove: make build" >&2; exit 2; }

work=$(mktemp -d)
chmod 755 "$work"
server= internet=
end() {
	for process in $server $internet; do kill "$process" 2>/dev/null && wait "$process" || true; done
	rm -rf "$work"
}
trap end EXIT
trap 'exit 130' INT TERM

cp -R "$folder/tests" "$work/tests"
if [ "$suite" = js ]; then
	cp -R "$folder/src" "$work/src"
	name=$(sed -nE 's/^  "name": "(.*)",/\1/p' "$folder/package.json")
	cp "$folder/package.json" "$work/" # the source knows its version by it
	cp "$here/vitest.config.mjs" "$here/outcomes.mjs" "$work/"
	packages=${E2B_PACKAGES:-$name@latest}
	[ "$packages" != source ] || packages=
	(cd "$work" && sed -i '/"\(devD\|optionalD\)ependencies": {/,/}/d' package.json && npm install --silent --no-audit --no-fund --legacy-peer-deps vitest@4 msw@2 dotenv@16 undici8@npm:undici@8 error-stack-parser-es $packages)
else
	[ ! -f "$folder/pytest.ini" ] || cp "$folder/pytest.ini" "$work/"
	uv venv -q "$work/venv"
	uv pip install -q --python "$work/venv/bin/python" "$(sed -nE 's/^name = "(.*)"/\1/p' "$folder/pyproject.toml")==$(sed -nE 's/^version = "(.*)"/\1/p' "$folder/pyproject.toml")" pytest pytest-asyncio pytest-timeout pytest-xdist python-dotenv
fi
python3=$(command -v python3)
port=$("$python3" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export E2B_API_URL="http://127.0.0.1:$port" E2B_SANDBOX_URL="http://127.0.0.1:$port"
[ $# -gt 0 ] || set -- tests

within= # what a program is run by: it enters the namespaces of the stand-in, where there is one
if [ "${STAND_IN:-}" = true ]; then
	domain=sbx.test
	openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=an authority" -keyout "$work/authority.key" -out "$work/authority.pem" 2>/dev/null
	printf 'subjectAltName=DNS:*.%s,DNS:connectivitycheck.gstatic.com,IP:1.1.1.1,IP:8.8.8.8\n' "$domain" >"$work/extensions"
	openssl req -newkey rsa:2048 -nodes -subj "/CN=$domain" -keyout "$work/key.pem" -out "$work/request.pem" 2>/dev/null
	openssl x509 -req -days 2 -in "$work/request.pem" -CA "$work/authority.pem" -CAkey "$work/authority.key" -CAcreateserial -extfile "$work/extensions" -out "$work/certificate.pem" 2>/dev/null
	cat /etc/ssl/certs/ca-certificates.crt "$work/authority.pem" >"$work/bundle.pem"
	echo 'nameserver 127.0.0.1' >"$work/resolv.conf"
	unshare --net --mount sh -c "ip link set lo up && for a in 1.1.1.1 8.8.8.8 8.8.4.4 9.9.9.9; do ip address add \$a/32 dev lo; done &&
		mount --bind '$work/resolv.conf' /etc/resolv.conf && mount --bind '$work/bundle.pem' /etc/ssl/certs/ca-certificates.crt &&
		exec \"\$@\"" sh "$python3" "$here/internet.py" "$domain" "$port" "$work/certificate.pem" "$work/key.pem" >"$work/internet.log" 2>&1 &
	internet=$!
	until nsenter -t $internet -n -m curl -sS -o "$work/health" https://8.8.8.8 2>/dev/null; do kill -0 $internet || { cat "$work/internet.log" >&2; exit 1; }; sleep 0.2; done
	within="nsenter -t $internet -n -m --wdns=$work"
	export COVE_PORTS="https://$domain" SSL_CERT_FILE="$work/bundle.pem" NODE_EXTRA_CA_CERTS="$work/authority.pem"
	export COVE_NETWORK_ALLOW="1.1.1.1,8.8.8.8,8.8.4.4,9.9.9.9,*.$domain,connectivitycheck.gstatic.com${COVE_NETWORK_ALLOW:+,$COVE_NETWORK_ALLOW}"
fi

# outcomes writes the names of tests with how they ended: "PASSED tests/a.py::test_b".
outcomes() {
	timeout=$1
	shift
	cd "$work"
	if [ "$suite" = js ]; then
		TEST_SECONDS=$timeout $within node_modules/.bin/vitest run --reporter=json --outputFile=said.json "$@" >said.log 2>&1 || true
		node outcomes.mjs said.json | sort -u
	else
		$within venv/bin/python -m pytest -q -p no:cacheprovider --tb=line -rA --timeout="$timeout" $together "$@" >said 2>&1 || true
		tail -n 1 said >&2
		sed -nE 's/ - .*//; s/^(PASSED|FAILED|ERROR) (tests.*)/\1 \2/p' said | sort -u
		[ -z "${E2B_SAID:-}" ] || cp said "$E2B_SAID"
	fi
}

echo "without a server:" >&2
together="-n 8"
(unset E2B_API_URL E2B_SANDBOX_URL && E2B_SAID= E2B_CONNECTION_RETRIES=0 E2B_API_KEY=e2b_00 outcomes 20 "$@") >"$work/alone"
sed -n 's/^PASSED //p' "$work/alone" >"$work/without"
# Files with none that failed are not run again: what stands in for a server there waits for requests to another address.
# shellcheck disable=SC2046 # no name of a file has a blank
set -- $(sed -nE 's/^(FAILED|ERROR) ([^: ]+).*/\2/p' "$work/alone" | sort -u)
echo "$(grep -c '' "$work/alone") tests, of which $(grep -c '' "$work/without") pass without a server" >&2

if [ "$suite" = python ]; then
	uv pip install -q --python "$work/venv/bin/python" --upgrade ${E2B_PACKAGES:-e2b e2b-code-interpreter}
	uv pip list -q --python "$work/venv/bin/python" 2>/dev/null | grep '^e2b'
elif [ -n "$packages" ]; then
	printf "export * from '%s'\nexport { default } from '%s'\n" "$name" "$name" >"$work/src/index.ts"
	[ ! -f "$work/src/errors.ts" ] || printf "export * from '%s'\n" "$name" >"$work/src/errors.ts"
	sed -nE "s/^  \"version\": \"(.*)\",/$(echo "$name" | sed 's|/|\\/|') \1/p" "$work/node_modules/$name/package.json"
else
	sed -nE 's/^  "version": "(.*)",/the library of the source, \1/p' "$folder/package.json"
fi

export COVE_SERVER_FOLDER="$work/server" COVE_DATABASE="$work/cove.db" COVE_RUNTIME="$work/run"
export COVE_REQUESTS_PER_SECOND="${COVE_REQUESTS_PER_SECOND:-0}" COVE_PROJECT_REQUESTS_PER_SECOND="${COVE_PROJECT_REQUESTS_PER_SECOND:-0}" # the tests do not come again
$within "$root/bin/cove" serve --listen "127.0.0.1:$port" >"$work/log" 2>&1 &
server=$!
tries=0
until $within curl -fsS -o "$work/health" "$E2B_API_URL/api/v1/health" 2>/dev/null; do
	tries=$((tries + 1))
	if [ "$tries" -gt 600 ] || ! kill -0 "$server" 2>/dev/null; then
		cat "$work/log" >&2
		exit 1
	fi
	sleep 0.5
done
COVE_KEY=$(sed -nE 's/.*COVE_KEY=(cove_[^ ]+).*/\1/p' "$work/log" | head -n 1)
E2B_API_KEY=$(COVE_KEY=$COVE_KEY COVE_SERVER=$E2B_API_URL $within "$root/bin/cove" key create --name tests --e2b | head -n 1) # the form that some libraries want
export E2B_API_KEY
[ -z "$within" ] || $within "$python3" "$here/httpbin.py" "$E2B_API_URL" "$E2B_API_KEY"

together="-n 2"
echo "with cove:" >&2
outcomes 120 "$@" >"$work/with"
awk 'FILENAME == ARGV[1] { free[$0]; next } { kind = $1; $1 = ""; name = substr($0, 2) } !(name in free) { print kind, name; n[kind]++ } END { printf "%d of %d tests that need a server passed\n", n["PASSED"], n["PASSED"] + n["FAILED"] + n["ERROR"] }' "$work/without" "$work/with"
