package e2e_test

import (
	"bytes"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"cove/internal/testkit/testneeds"
)

// passedScenarios is how many of the protocol's conformance tests this server passes at least in each version, so that one that comes to count as absent is noticed.
var passedScenarios = map[string]int{"2025-11-25": 10, "2026-07-28": 10}

// TestClientsMCPConformance runs the protocol's own conformance tests. Those that are about an example server's tools are absent, as e2e/suites/mcp.sh shows by name; of the others none fails. They need a newer
// Node.js than many systems have, which comes with their packages.
func TestClientsMCPConformance(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	testneeds.Asked(t, testneeds.Sandboxes)
	source := filepath.Join("testdata", "sdk", "mcpconformance")
	_, folder := nodeFolder(t, source)
	nodes, err := filepath.Glob(filepath.Join(folder, "node_modules", "node-linux-*", "bin", "node"))
	if err != nil || len(nodes) != 1 {
		t.Fatalf("%v %q", err, nodes)
	}
	s := startServer(t, "", testKey(t), "COVE_REQUESTS_PER_SECOND=0", "COVE_PROJECT_REQUESTS_PER_SECOND=0")
	target, err := url.Parse(s.base)
	if err != nil {
		t.Fatal(err)
	}
	alone := &http.Transport{DisableKeepAlives: true} // no other test closes its connections
	// The tests send no key.
	proxy := httptest.NewServer(&httputil.ReverseProxy{FlushInterval: -1, Transport: alone, ErrorLog: log.New(t.Output(), "", log.Ltime), Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
		r.Out.Header.Set("Authorization", "Bearer "+s.key)
	}})
	t.Cleanup(proxy.Close)
	for version, least := range passedScenarios {
		t.Run(version, func(t *testing.T) {
			out, err := conformance(t, folder, nodes[0], proxy.URL, version)
			if cut := []byte("got no result in response body"); bytes.Contains(out, cut) {
				// The tests' client takes an answer whose connection ends for one without content. Which end ends it is not known; it happens once in thousands of requests.
				t.Logf("once more, because an answer was cut off:\n%s", out)
				out, err = conformance(t, folder, nodes[0], proxy.URL, version)
			}
			count := regexp.MustCompile(`(?m)^` + version + `: (\d+) scenarios passed, 0 failed`).FindSubmatch(out)
			if err != nil || count == nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if passed, _ := strconv.Atoi(string(count[1])); passed < least {
				t.Errorf("%d scenarios passed, not %d\n%s", passed, least, out)
			}
		})
	}
}

// conformance runs the tests of a version of the protocol against an address, and returns how their scenarios ended; after a failure with what the tests printed.
func conformance(t *testing.T, folder, node, address, version string) ([]byte, error) {
	t.Helper()
	said := filepath.Join(t.TempDir(), "said")
	tests := sdkCommand(t, folder, filepath.Join("testdata", "sdk", "mcpconformance"), node, filepath.Join("node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js"))
	tests.Args = append(tests.Args, "server", "--url", address+"/mcp", "--requirements", version, "-o", said)
	tests.Env = append(os.Environ(), "NO_COLOR=1")
	printed, ended := tests.CombinedOutput() // it fails where anything is absent
	out, err := exec.CommandContext(t.Context(), node, filepath.Join("suites", "mcp_outcomes.mjs"), said, version).CombinedOutput()
	if err != nil {
		out = fmt.Appendf(out, "\n%v\n%.4000s", ended, printed)
	}
	return out, err
}
