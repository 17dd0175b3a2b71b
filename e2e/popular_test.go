package e2e_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cove/internal/core/config"
	"cove/internal/python/deps/names"
	"cove/internal/python/pyenv"
	"cove/internal/testkit/testneeds"
)

// popular is one line of testdata/popular.tsv.
type popular struct{ rank, distribution, module string }

func loadPopular(t *testing.T) []popular {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "popular.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var list []popular
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		field := strings.Split(lines.Text(), "\t")
		if len(field) != 3 {
			t.Fatalf("popular.tsv: %q", lines.Text())
		}
		list = append(list, popular{field[0], field[1], field[2]})
	}
	if len(list) != 300 {
		t.Fatalf("popular.tsv has %d lines", len(list))
	}
	return list
}

// spoken is the part of cove's JSON lines that tells how a run went.
type spoken struct {
	Type     string
	Outcome  string
	Name     string
	Value    string
	Packages []struct {
		Name, Version string
		Asked         bool
	}
	Refused []struct{ Name, Code, Reason string }
	Failure *struct{ Code, Message string }
	Message string
}

// TestScalePopularPackages runs one program in a session of its own for each of the most downloaded distributions that the environment lacks. It
// downloads gigabytes, so that an ordinary run of the tests takes the first few alone; `make popular` takes them all.
func TestScalePopularPackages(t *testing.T) {
	testneeds.FullTier(t)
	cfg, err := testneeds.Config()
	if err != nil {
		t.Fatal(err)
	}
	list := loadPopular(t)
	const few = 6
	if os.Getenv("COVE_SOAK") != "full" {
		list = list[:few]
	}
	home := emptyHome(t, cfg)
	var mu sync.Mutex
	var failures []string
	wrong, began := 0, time.Now()
	work := make(chan popular)
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for p := range work {
				why, other := tryPopular(t, home, p)
				mu.Lock()
				if why != "" {
					failures = append(failures, fmt.Sprintf("%s (%s, import %s): %s", p.distribution, p.rank, p.module, why))
				}
				if other {
					wrong++
				}
				mu.Unlock()
			}
		})
	}
	for _, p := range list {
		work <- p
	}
	close(work)
	workers.Wait()
	slices.Sort(failures)
	t.Logf("%d of %d were installed and imported in %.0f s; %d by another distribution\n%s",
		len(list)-len(failures), len(list), time.Since(began).Seconds(), wrong, strings.Join(failures, "\n"))
	if allowed := len(list) / 100; len(failures) > allowed {
		t.Errorf("%d failures, %d are allowed", len(failures), allowed)
	}
}

// emptyHome makes a data folder that has this machine's environments and nothing installed.
func emptyHome(t *testing.T, cfg config.Config) string {
	t.Helper()
	for _, set := range []pyenv.Set{pyenv.Minimal, pyenv.Standard} {
		testneeds.Environment(t, set) // an index of a test's own has nothing to make them of
	}
	home := os.Getenv("COVE_POPULAR_HOME") // to look at what was installed afterwards
	if home == "" {
		home = t.TempDir()
	}
	for _, name := range []string{"pyenv", "tools", "templates"} {
		if err := os.MkdirAll(filepath.Join(cfg.Folders.Data, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(cfg.Folders.Data, name), filepath.Join(home, name)); err != nil && !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
	}
	return home
}

// tryPopular says why a module could not be imported, and whether another distribution than the expected one was installed for it.
func tryPopular(t *testing.T, home string, p popular) (why string, other bool) {
	c := newCommand(t, "run", "--json", "-c", "import "+p.module)
	c.setenv("COVE_HOME="+home, "COVE_PACKAGES=standard")
	r := c.run()
	installed, asked := []string{}, []string{}
	for line := range strings.Lines(r.stdout) {
		var s spoken
		if json.Unmarshal([]byte(line), &s) != nil {
			continue
		}
		switch s.Type {
		case "install":
			for _, one := range s.Packages {
				installed = append(installed, one.Name)
				if one.Asked {
					asked = append(asked, one.Name)
				}
			}
			for _, one := range s.Refused {
				why += one.Code + ": " + one.Reason + "; "
			}
			if s.Failure != nil {
				why += s.Failure.Code + ": " + s.Failure.Message + "; "
			}
		case "error":
			why += s.Name + ": " + s.Value + "; "
		}
	}
	switch {
	case why == "" && r.code != 0:
		why = fmt.Sprintf("exit code %d: %s", r.code, r.stderr)
	case why == "" && len(installed) == 0:
		why = "nothing was installed: " + r.stderr
	}
	same := append(names.Interchangeable(p.distribution), p.distribution)
	if why == "" && !slices.ContainsFunc(asked, func(n string) bool { return slices.Contains(same, n) }) {
		other = true
		t.Logf("import %s installed %q, not %s", p.module, asked, p.distribution)
	}
	return why, other
}
