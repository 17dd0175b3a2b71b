package cli_test

import (
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"cove/internal/commands/cli"
	"cove/internal/core/config"
)

func TestOpenPrintsAnAddressWithACode(t *testing.T) {
	t.Parallel()
	open := func(address string, args ...string) result {
		return run(t, &scripted{}, func(_ string, p *cli.Program) { p.Served = func(config.Config) string { return address } }, append([]string{"open"}, args...)...)
	}
	r := open("http://127.0.0.1:8700")
	if r.code != 0 || !regexp.MustCompile(`^http://127\.0\.0\.1:8700/#setup=[0-9a-z]{32}\n$`).MatchString(r.out) {
		t.Errorf("exit code %d, %q, %s", r.code, r.out, r.err)
	}
	if r = open("http://127.0.0.1:8700", "--json"); r.code != 0 || !strings.Contains(r.out, `"page": "http://127.0.0.1:8700/#setup=`) {
		t.Errorf("exit code %d, %q", r.code, r.out)
	}
	if r = open("http://127.0.0.1:8700", "--user", "nobody"); r.code != 125 || !strings.Contains(r.err, "no such user") {
		t.Errorf("exit code %d, %s", r.code, r.err)
	}
	if r = open(""); r.code != 125 || !strings.Contains(r.err, "cove serve") || r.out != "" {
		t.Errorf("exit code %d, %s", r.code, r.err)
	}
	if r = open("unix:/run/cove.sock"); r.code != 125 || !strings.Contains(r.err, "socket") || r.out != "" {
		t.Errorf("exit code %d, %s", r.code, r.err)
	}
}

func TestServeSaysWhereThePageIs(t *testing.T) {
	t.Parallel()
	with := about
	with.Page = "http://127.0.0.1:8700/#setup=abc"
	r := serve(t, &standIn{about: with}, []os.Signal{syscall.SIGTERM})
	if !strings.Contains(r.out, "page       "+with.Page+"\n") || !strings.Contains(r.out, "signs one browser in, within 15 minutes") {
		t.Errorf("the welcome is\n%s", r.out)
	}
	r = serve(t, &standIn{about: with}, []os.Signal{syscall.SIGTERM}, "--json")
	if !strings.Contains(r.out, `"page":"`+with.Page+`"`) {
		t.Errorf("the line is %s", r.out)
	}
	with.Page = "http://127.0.0.1:8700/"
	if r = serve(t, &standIn{about: with}, []os.Signal{syscall.SIGTERM}); !strings.Contains(r.out, "`cove open` prints an address") {
		t.Errorf("the welcome is\n%s", r.out)
	}
}
