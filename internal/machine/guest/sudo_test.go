package guest

import (
	"slices"
	"strings"
	"testing"
)

// TestReadSudo reads the command lines of sudo that scripts have.
func TestReadSudo(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]struct {
		args string
		user bool
		ok   bool
	}{
		"id -u":                                {"id -u", false, true},
		"-n apt-get install -y jq":             {"apt-get install -y jq", false, true},
		"-E -H pip install x":                  {"pip install x", false, true},
		"-u root id":                           {"id", false, true},
		"-u user id":                           {"id", true, true},
		"--user=postgres psql":                 {"psql", true, true},
		"-- -odd":                              {"-odd", false, true},
		"A=1 B=2 env":                          {"env", false, true},
		"-i":                                   {"bash -l", false, true},
		"-s":                                   {"bash", false, true},
		"-S -p prompt ls -l":                   {"ls -l", false, true},
		"-v":                                   {"", false, true},
		"-k":                                   {"", false, true},
		"":                                     {"", false, false},
		"--help":                               {"", false, false},
		"-u":                                   {"", false, false},
		"DEBIAN_FRONTEND=x apt-get -y install": {"apt-get -y install", false, true},
	} {
		wish, ok := readSudo(strings.Fields(line))
		if got := strings.Join(wish.Args, " "); got != want.args || ok != want.ok || ok && len(wish.Args) > 0 && wish.User != want.user {
			t.Errorf("sudo %s: %q, as user %v, %v", line, got, wish.User, ok)
		}
	}
	wish, _ := readSudo([]string{"A=1", "env"})
	if !slices.Contains(wish.Env, "A=1") || !slices.Contains(wish.Env, "HOME=/root") || !slices.Contains(wish.Env, "SUDO_USER=user") {
		t.Errorf("its environment is %q", wish.Env)
	}
}

// TestRootEnvironment keeps what was set, but for who it is.
func TestRootEnvironment(t *testing.T) {
	t.Parallel()
	got := rootEnvironment([]string{"PATH=/usr/bin:/bin", "HOME=/home/user", "X=1", "DEBIAN_FRONTEND=readline"})
	want := []string{"PATH=/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin", "X=1", "DEBIAN_FRONTEND=readline", "HOME=/root", "USER=root", "LOGNAME=root", "SUDO_USER=user"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
