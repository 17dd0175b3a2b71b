#!/bin/sh
# Runs the conformance tests of the Model Context Protocol, and its inspector, against `cove serve`, and prints how each scenario ended by name.
#
#   e2e/suites/mcp.sh
#
# Each scenario is PASSED, FAILED, or ABSENT: about a tool, a prompt or a resource that the tests' own example server has, or an optional part of the protocol, which is named.
# MCP_CONFORMANCE and MCP_INSPECTOR are the versions of the two packages. They need Node 22; where that of the machine is older, npm's package "node" has one.
# It needs npm, curl, python3 and bin/cove (`make build`, `make python`).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
[ -x "$root/bin/cove" ] || { echo "there is no bin/cove: make build" >&2; exit 2; }
work=$(mktemp -d)
chmod 755 "$work"
server= proxy=
end() {
	for process in $proxy $server; do kill "$process" 2>/dev/null && wait "$process" || true; done
	rm -rf "$work"
}
trap end EXIT
trap 'exit 130' INT TERM

cd "$work"
major=$(node --version 2>/dev/null | sed -nE 's/^v([0-9]+).*/\1/p')
if [ "${major:-0}" -lt 22 ]; then
	npm install --silent --no-audit --no-fund --prefix "$work/node" node@22
	PATH="$work/node/node_modules/node/bin:$PATH"
fi
npm install --silent --no-audit --no-fund --prefix "$work/conformance" "@modelcontextprotocol/conformance@${MCP_CONFORMANCE:-0.2.0-alpha.12}"
npm install --silent --no-audit --no-fund --prefix "$work/inspector" "@modelcontextprotocol/inspector@${MCP_INSPECTOR:-2.12.0}"
conformance="$work/conformance/node_modules/.bin/conformance" inspector="$work/inspector/node_modules/.bin/mcp-inspector"

free() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
port=$(free) keyless=$(free)
export COVE_SERVER_FOLDER="$work/server" COVE_DATABASE="$work/cove.db" COVE_RUNTIME="$work/run" COVE_REQUESTS_PER_SECOND=0 COVE_PROJECT_REQUESTS_PER_SECOND=0
"$root/bin/cove" serve --listen "127.0.0.1:$port" >"$work/log" 2>&1 &
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
COVE_KEY=$(sed -nE 's/.*COVE_KEY=(cove_[^ ]+).*/\1/p' "$work/log" | head -n 1)
export COVE_KEY
node "$here/mcp_key.mjs" "$keyless" "http://127.0.0.1:$port" "$COVE_KEY" & # the tests send no key
proxy=$!
until curl -sS -o "$work/health" "http://127.0.0.1:$keyless/api/v1/health" 2>/dev/null; do sleep 0.2; done

status=0
for version in 2025-11-25 2026-07-28; do
	"$conformance" server --url "http://127.0.0.1:$keyless/mcp" --requirements "$version" -o "$work/said-$version" >"$work/conformance.log" 2>&1 || true
	node "$here/mcp_outcomes.mjs" "$work/said-$version" "$version" || status=1
done

# inspect asks by the inspector, over HTTP or what is started by "cove mcp", and looks for a text in the answer.
inspect() {
	name=$1 want=$2
	shift 2
	for over in http stdio; do
		if [ "$over" = http ]; then
			"$inspector" --cli "http://127.0.0.1:$port/mcp" --transport http --header "Authorization: Bearer $COVE_KEY" "$@" >"$work/answer" 2>&1 || true
		else
			"$inspector" --cli -e "COVE_KEY=$COVE_KEY" -e "COVE_SERVER=http://127.0.0.1:$port" "$root/bin/cove" mcp "$@" >"$work/answer" 2>&1 || true
		fi
		if grep -q "$want" "$work/answer"; then
			echo "PASSED inspector/$over/$name"
		else
			echo "FAILED inspector/$over/$name: $(tail -n 3 "$work/answer" | tr '\n' ' ')"
			status=1
		fi
	done
}
inspect tools/list '"install_packages"' --method tools/list --strict
inspect tools/call '"result": "42"' --method tools/call --tool-name python --tool-arg "code=open('a.txt', 'w').write('words'); 6 * 7"
session=$(grep -o 'ses_[0-9a-z]*' "$work/answer" | head -n 1)
inspect resources/list '"resources"' --method resources/list
inspect resources/templates/list 'cove://{session}' --method resources/templates/list
inspect resources/read '"words"' --method resources/read --uri "cove://$session/a.txt"
inspect prompts/list '"prompts"' --method prompts/list
exit $status
