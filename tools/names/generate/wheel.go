package main

import (
	"archive/zip"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sort"
	"strconv"
	"strings"

	"cove/tools/names/wheelfiles"

	pep440 "github.com/aquasecurity/go-pep440-version"
)

const (
	tail           = 64 << 10 // bytes at the end of a wheel that are read first; most wheels' directories fit
	longestRead    = 48 << 20 // bytes of one wheel that are read at most
	longestHeaders = 1 << 20
)

// newestWheel picks the wheel to look into: of the newest final version that has one, that for Linux on x86-64 before others.
func newestWheel(releases []release) (release, bool) {
	type offer struct {
		release
		version pep440.Version
	}
	var offers []offer
	for _, r := range releases {
		parts := strings.Split(strings.TrimSuffix(r.Name, ".whl"), "-")
		if !strings.HasSuffix(r.Name, ".whl") || len(parts) < 5 || r.Yanked {
			continue
		}
		if v, err := pep440.Parse(parts[1]); err == nil {
			offers = append(offers, offer{r, v})
		}
	}
	sort.SliceStable(offers, func(i, j int) bool {
		a, b := offers[i], offers[j]
		if pre := a.version.IsPreRelease(); pre != b.version.IsPreRelease() {
			return !pre
		}
		if c := a.version.Compare(b.version); c != 0 {
			return c > 0
		}
		return fitness(a.Name) > fitness(b.Name)
	})
	if len(offers) == 0 {
		return release{}, false
	}
	return offers[0].release, true
}

// fitness ranks the wheels of one version: what Linux on x86-64 installs is the best.
func fitness(name string) int {
	score := 0
	for sign, points := range map[string]int{"x86_64": 2, "manylinux": 4, "-none-any": 6, "win": -2, "macosx": -1, "cp313-": 1} {
		if strings.Contains(name, sign) {
			score += points
		}
	}
	return score
}

// declared reads the names that a wheel's metadata declares (PEP 794), if it does.
func (x *index) declared(ctx context.Context, wheel release) ([]string, error) {
	response, err := x.get(ctx, wheel.URL+".metadata", nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	return importNames(io.LimitReader(response.Body, longestHeaders)), nil
}

func importNames(metadata io.Reader) []string {
	var out []string
	for lines := bufio.NewScanner(metadata); lines.Scan(); {
		if lines.Text() == "" {
			break
		}
		key, value, _ := strings.Cut(lines.Text(), ":")
		name, note, _ := strings.Cut(value, ";")
		if name = strings.TrimSpace(name); strings.EqualFold(key, "Import-Name") && strings.TrimSpace(note) != "private" && importable(name) {
			out = append(out, name)
		}
	}
	sort.Strings(out)
	return out
}

// listed reads the list of files at the end of a wheel without reading the rest.
func (x *index) listed(ctx context.Context, wheel release) ([]string, error) {
	remote := &remoteFile{ctx: ctx, index: x, url: wheel.URL}
	if err := remote.open(); err != nil {
		return nil, err
	}
	r, err := zip.NewReader(remote, remote.size)
	if remote.failed != nil {
		return nil, remote.failed
	}
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, fmt.Errorf("%s is no zip: %w: %w", wheel.Name, err, errNothing)
	}
	return wheelfiles.Modules(wheelfiles.Names(r), shared), nil
}

// remoteFile reads the end of a file over HTTP. What is before the part that it holds is fetched in one more request.
type remoteFile struct {
	ctx    context.Context
	index  *index
	url    string
	size   int64
	held   []byte // the end of the file
	failed error
}

func (f *remoteFile) open() error {
	response, err := f.index.get(f.ctx, f.url, http.Header{"Range": {fmt.Sprintf("bytes=-%d", tail)}})
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	f.held, err = io.ReadAll(io.LimitReader(response.Body, longestRead+1))
	if err != nil {
		return err
	}
	if len(f.held) > longestRead {
		return fmt.Errorf("the server reads no ranges, and the wheel is too big to be read whole: %w", errNothing)
	}
	f.size = int64(len(f.held))
	if response.StatusCode == http.StatusPartialContent {
		_, total, _ := strings.Cut(response.Header.Get("Content-Range"), "/")
		if f.size, err = strconv.ParseInt(total, 10, 64); err != nil || f.size < int64(len(f.held)) {
			return fmt.Errorf("the server does not say how long the wheel is: %w", errNothing)
		}
	}
	return nil
}

// ReadAt reads from the end that is held, after fetching more of it when needed.
func (f *remoteFile) ReadAt(p []byte, offset int64) (int, error) {
	start := f.size - int64(len(f.held))
	if offset < start {
		if err := f.fetch(offset, start); err != nil {
			f.failed = err
			return 0, err
		}
		start = offset
	}
	if offset >= f.size {
		return 0, io.EOF
	}
	n := copy(p, f.held[offset-start:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *remoteFile) fetch(from, to int64) error {
	if f.size-from > longestRead {
		return fmt.Errorf("the list of files is too long: %w", errNothing)
	}
	response, err := f.index.get(f.ctx, f.url, http.Header{"Range": {fmt.Sprintf("bytes=%d-%d", from, to-1)}})
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	more, err := io.ReadAll(io.LimitReader(response.Body, to-from))
	if err != nil {
		return err
	}
	if int64(len(more)) != to-from || response.StatusCode != http.StatusPartialContent {
		return fmt.Errorf("the server does not keep to ranges: %w", errNothing)
	}
	f.held = append(more, f.held...)
	return nil
}
