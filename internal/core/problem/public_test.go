package problem_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/http/httpstatus"
)

func TestWhatClientsAreTold(t *testing.T) {
	t.Parallel()
	write := &fs.PathError{Op: "write", Path: "/var/lib/cove/sessions/ses_1/session.json", Err: syscall.ENOSPC}
	for name, c := range map[string]struct {
		err    error
		status int
		code   string
		same   bool
	}{
		"a provider's words":               {problem.New(problem.ModelAuth, "127.0.0.1:18431 refused the key (401): no key sk-secret").WithHint("check the environment variable OPENAI_API_KEY"), 502, "model_auth", false},
		"a provider's address":             {problem.New(problem.ModelUnavailable, "secret.internal:8000 failed to answer (500): secret"), 503, "model_unavailable", false},
		"a fault":                          {errors.New("open /var/lib/secret: secret"), 500, "internal", false},
		"a full disk":                      {fmt.Errorf("save: %w", write), 507, "disk_full", false},
		"a full disk, in words":            {fmt.Errorf("the warden: write /var/lib/secret: no space left on device"), 507, "disk_full", false},
		"a full disk, explained otherwise": {problem.New(problem.SessionsUnwritable, "cove cannot write to /var/lib/secret").WithCause(write), 507, "disk_full", false},
		"a full disk of the database":      {problem.New(problem.DiskFull, "the disk of the database is full").WithHint("make room, see COVE_SECRET"), 507, "disk_full", false},
		"a folder":                         {problem.New(problem.SessionsUnwritable, "cove cannot write to /var/lib/secret").WithHint("set COVE_SECRET"), 503, "sessions_unwritable", false},
		"an address":                       {problem.New(problem.PackageIndexUnreachable, "http://10.0.0.7:8080/secret does not answer"), 503, "package_index_unreachable", false},
		"an address of version 6":          {problem.New(problem.PackageIndexUnreachable, "http://[fd00::5ec]:80/secret does not answer"), 503, "package_index_unreachable", false},
		"a place in a request":             {problem.New(problem.InvalidRequest, "input[0].content[12] is none"), 422, "invalid_request", true},
		"a workspace's path":               {problem.New(problem.FileNotFound, "there is no file /home/user/a.csv").WithHint("see /api/v1/docs"), 404, "file_not_found", true},
		"a full workspace":                 {problem.New(problem.WorkspaceFull, "the workspace is full").WithCause(syscall.ENOSPC), 507, "workspace_full", true},
	} {
		p, differs := problem.Public(c.err)
		if p.Code != c.code || httpstatus.Of(p) != c.status || differs == c.same {
			t.Errorf("%s: %d %s %v", name, httpstatus.Of(p), p.Code, differs)
		}
		for _, word := range []string{"secret", "SECRET", "fd00", "/var/", "127.0.0.1", "10.0.0.7", "API_KEY"} {
			if strings.Contains(p.Message+" "+p.Hint, word) {
				t.Errorf("%s: clients are told %q (%s)", name, p.Message, p.Hint)
			}
		}
		if c.code == "disk_full" && p.Hint == "" {
			t.Errorf("%s: there is no hint", name)
		}
	}
	if p, differs := problem.Public(nil); p != nil || differs {
		t.Error("nothing is a problem")
	}
}

// TestPathsOfASandboxStay: what a sandbox says of its own files is for those who use it.
func TestPathsOfASandboxStay(t *testing.T) {
	t.Parallel()
	const message = "mkdir /opt/x/y: read-only file system"
	inside := problem.New(problem.FileDenied, message)
	inside.Inside = true
	if p, differs := problem.Public(fmt.Errorf("write: %w", inside)); p.Message != message || differs {
		t.Errorf("%q", p.Message)
	}
	for _, err := range []error{problem.New(problem.FileDenied, message), inside.Reworded(message)} {
		if p, differs := problem.Public(err); strings.Contains(p.Message, "/opt") || !differs {
			t.Errorf("of the server: %q", p.Message)
		}
	}
}
