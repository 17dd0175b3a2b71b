package cli_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestMistakesWithServers wants flags that a server does not ask for to be refused, above all the one that keeps a question out of the history,
// and what a server says to be said in the words of the command line.
func TestMistakesWithServers(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"status":401,"kind":"denied","code":"unauthenticated","detail":"the key is not valid","hint":"send a valid key as Authorization"}`)
	}))
	t.Cleanup(server.Close)
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"kept nowhere":         {[]string{"ask", "--no-history", "q"}, "--no-history is for this machine"},
		"kept nowhere in chat": {[]string{"chat", "--no-history"}, "--no-history is for this machine"},
		"an engine":            {[]string{"ask", "--engine", "local", "q"}, "--engine is for this machine"},
		"a time":               {[]string{"ask", "--timeout", "1s", "q"}, "--timeout is for this machine"},
		"no packages":          {[]string{"ask", "--no-install", "q"}, "--no-install is for this machine"},
		"a bad key":            {[]string{"ask", "q"}, "set COVE_KEY, or give --key"},
		"a bad key, history":   {[]string{"history"}, "set COVE_KEY, or give --key"},
		"half an id":           {[]string{"ask", "--continue", "cnv_06h01", "q"}, "cnv_06h01 is not the id of a conversation"},
		"an execution's id":    {[]string{"ask", "--continue", "exe_06f1k3t3y4m0v8s2k5r7w9x1z4", "q"}, "is not the id of a conversation"},
		"no steps":             {[]string{"chat", "--max-steps", "0"}, "--max-steps must be at least 1"},
		"nothing to go on":     {[]string{"chat", "cnv_06f1k3t3y4m0v8s2k5r7w9x1z4"}, "add --continue"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := run(t, &scripted{}, nil, append(test.args[:1:1], append([]string{"--server", server.URL, "--key", "cove_x"}, test.args[1:]...)...)...)
			if r.code != 125 || !strings.Contains(r.err, test.want) {
				t.Errorf("exit code %d, stderr %q; want 125 and %q", r.code, r.err, test.want)
			}
		})
	}
}

// TestMistakesWithTheHistory wants what can be wrong with flags alone to be said, and not to be taken for something else.
func TestMistakesWithTheHistory(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"a key for no time":   {[]string{"key", "create", "--name", "a", "--expires", "0s"}, "--expires must be above 0"},
		"no rows":             {[]string{"audit", "--limit", "0"}, "--limit must be at least 1"},
		"rows of some time":   {[]string{"audit", "--since", "yesterday"}, "neither a day"},
		"no conversations":    {[]string{"history", "--limit", "0"}, "--limit must be at least 1"},
		"no source":           {[]string{"history", "--source", "web"}, `"cli","api","openai"`},
		"no words":            {[]string{"search", " "}, "there are no words"},
		"no format":           {[]string{"export", "-o", "a.pdf"}, "--format ipynb, md or py"},
		"nothing for a quota": {[]string{"project", "quota", "lab"}, "--default"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if r := run(t, &scripted{}, nil, test.args...); r.code != 125 || !strings.Contains(r.err, test.want) {
				t.Errorf("exit code %d, stderr %q; want 125 and %q", r.code, r.err, test.want)
			}
		})
	}
}

// TestShowOfARunningTurn wants what there is to be shown, not the turn's end to be waited for.
func TestShowOfARunningTurn(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(r.URL.Path, "/turns"):
			_, _ = io.WriteString(w, `{"items":[{"id":"trn_06f1k3t3y4m0v8s2k5r7w9x1z4","conversation":"cnv_06f1k3t3y4m0v8s2k5r7w9x1z4","state":"running","prompt":"how long?"}]}`)
		case strings.HasSuffix(r.URL.Path, "/conversations"):
			_, _ = io.WriteString(w, `{"items":[{"id":"cnv_06f1k3t3y4m0v8s2k5r7w9x1z4","title":"how long?"}]}`)
		default: // its events, which do not end
			<-r.Context().Done()
		}
	}))
	t.Cleanup(server.Close)
	r := run(t, &scripted{}, nil, "show", "--server", server.URL, "--key", "cove_x")
	if r.code != 0 || !strings.Contains(r.out, "› how long?") || !strings.Contains(r.out, "[this turn is running]") {
		t.Errorf("exit code %d:\n%s%s", r.code, r.out, r.err)
	}
}
