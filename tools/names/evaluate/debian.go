package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strings"

	"cove/internal/python/deps/require"
	"cove/tools/names/wheelfiles"
)

const aptLists = "/var/lib/apt/lists"

// debianLists returns the files to read: those named, or those that apt-file has fetched.
func debianLists(named string) []string {
	if named != "" {
		return strings.Split(named, ",")
	}
	found, err := filepath.Glob(filepath.Join(aptLists, "*_main_Contents-*"))
	if err != nil {
		return nil
	}
	return found
}

var metadata = regexp.MustCompile(`^([^/]+?)-[0-9][^/]*\.(?:dist|egg)-info(?:/|$)`)

// fromDebian reads Debian's lists of contents: a binary package with exactly one dist-info or egg-info below python3/dist-packages tells what that distribution
// provides. Packages with several are left out, as nothing says which file is whose.
func fromDebian(lists []string, shared func(string) bool) ([]truth, error) {
	files := map[string][]string{}
	for _, list := range lists {
		if err := readContents(list, files); err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(list), err)
		}
	}
	modules := map[string]map[string]bool{}
	for _, in := range files {
		dists := map[string]bool{}
		for _, f := range in {
			if m := metadata.FindStringSubmatch(f); m != nil {
				dists[require.Normalize(m[1])] = true
			}
		}
		if len(dists) != 1 {
			continue
		}
		for dist := range dists {
			if modules[dist] == nil {
				modules[dist] = map[string]bool{}
			}
			for _, m := range wheelfiles.Modules(in, shared) {
				modules[dist][m] = true
			}
		}
	}
	var out []truth
	for dist, set := range modules {
		t := truth{dist: dist}
		for m := range set {
			t.modules = append(t.modules, m)
		}
		sort.Strings(t.modules)
		out = append(out, t)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].dist < out[j].dist })
	return out, nil
}

// readContents adds the files below dist-packages to those of their packages ("path   section/package,section/package").
func readContents(name string, files map[string][]string) error {
	var input io.ReadCloser
	var done func() error
	if ext := filepath.Ext(name); ext == ".lz4" || ext == ".gz" || ext == ".xz" || ext == ".zst" {
		cat := exec.Command("/usr/lib/apt/apt-helper", "cat-file", name)
		cat.Stderr = os.Stderr
		out, err := cat.StdoutPipe()
		if err != nil {
			return err
		}
		if err := cat.Start(); err != nil {
			return err
		}
		input, done = out, cat.Wait
	} else {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		input, done = f, f.Close
	}
	lines := bufio.NewScanner(input)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		file, ok := strings.CutPrefix(lines.Text(), "usr/lib/python3/dist-packages/")
		if !ok {
			continue
		}
		i := strings.LastIndexAny(file, " \t")
		if i < 0 {
			continue
		}
		for pkg := range strings.SplitSeq(file[i+1:], ",") {
			files[pkg] = append(files[pkg], strings.TrimSpace(file[:i]))
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return done()
}
