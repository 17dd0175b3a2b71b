package gateway_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"cove/internal/python/deps/gateway"
	"cove/internal/python/deps/indextest"
	"cove/internal/python/pyindex"
	"cove/internal/testkit/testneeds"
)

// realUV returns a uv: the one that cove has here, or one that is fetched as cove would.
func realUV(t *testing.T) string {
	t.Helper()
	return testneeds.FindUV(t)
}

// compile has uv resolve requirements through a gateway of its own.
func compile(t *testing.T, uv, cache string, o gateway.Options, requirements string) (answer string, g *gateway.Gateway) {
	t.Helper()
	g = open(t, o)
	proxy, err := g.Serve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), uv, "pip", "compile", "-", "--cache-dir", cache, "--only-binary", ":all:", "--generate-hashes", "--no-header", "--no-annotate")
	// What would lead uv elsewhere is not to reach it.
	cmd.Env = gateway.Environment(append(os.Environ(), "UV_INDEX=http://192.0.2.1/simple", "no_proxy=*", "NO_PROXY=.invalid", "UV_OFFLINE=1"), proxy)
	cmd.Stdin = strings.NewReader(requirements)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "failed: " + string(out), g
	}
	return string(out), g
}

func TestUVResolvesThroughTheGateway(t *testing.T) {
	t.Parallel()
	uv := realUV(t)
	for name, style := range map[string]indextest.Style{"JSON": indextest.JSON, "HTML": indextest.Mirror} {
		t.Run(name, func(t *testing.T) {
			index := indextest.New(t)
			index.Speak(style)
			index.Metadata(name == "JSON")
			top := indextest.Wheel{Name: "top", Version: "1.0", Require: []string{"below>=1"}}
			below := indextest.Wheel{Name: "below", Version: "1.5", Padding: 1 << 20}
			young := indextest.Wheel{Name: "below", Version: "2.0", Listed: indextest.Listed{Uploaded: time.Now().Add(-time.Hour)}}
			only := indextest.Wheel{Name: "fresh", Version: "1.0", Listed: indextest.Listed{Uploaded: time.Now().Add(-time.Hour)}}
			index.Add(top, below, young, only, indextest.Sdist{Name: "source", Version: "1.0"})
			o := options(t, pyindex.Source{Name: "test", URL: index.URL})
			o.Now = nil
			o.Rules.MinAge = 24 * time.Hour
			cache := t.TempDir()
			var asked int
			for i := range 3 { // the later ones with a new gateway, at another port
				got, _ := compile(t, uv, cache, o, "top\n")
				if !strings.Contains(got, "top==1.0") || !strings.Contains(got, "below==1.5") || !strings.Contains(got, "--hash=sha256:"+below.SHA256()) {
					t.Fatalf("got %s", got)
				}
				if i == 0 {
					asked = index.Requests("")
				}
			}
			if asked == 0 || index.Requests("") != asked {
				t.Errorf("the index was asked %d times for the first resolution, and %d times altogether", asked, index.Requests(""))
			}
			got, g := compile(t, uv, cache, o, "top\nfresh\nsource\n")
			if !strings.HasPrefix(got, "failed") {
				t.Errorf("withheld files were used: %s", got)
			}
			if why := join(g.Reasons()["fresh"]); why != "1.0: it was uploaded 1 hour ago, and files have to be 1 day old" {
				t.Errorf("the reason is %q", why)
			}
		})
	}
}

func TestUVHearsOfTroubleSoon(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	uv := realUV(t)
	index := indextest.New(t)
	index.Misbehave("/simple/demo/", indextest.ServerError, 0)
	index.Misbehave("/simple/slow/", indextest.SlowHeaders, 0)
	o := options(t, pyindex.Source{Name: "test", URL: index.URL})
	o.Times.Answer, o.Times.Connect = time.Second, time.Second
	for name, code := range map[string]string{"demo": "index_unreachable", "slow": "index_timeout"} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		got, g := compile(t, uv, t.TempDir(), o, name+"\n")
		if !strings.HasPrefix(got, "failed") || ctx.Err() != nil {
			t.Errorf("%s: %s", name, got)
		}
		cancel()
		wantProblem(t, g.Failures()[name], code)
	}
}
