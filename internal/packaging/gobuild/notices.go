package gobuild

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Notices is the name of the file with the licences of everything that the program contains.
const Notices = "THIRD_PARTY_NOTICES"

// pageLicences match the files in which Vite collects the licences of the npm packages that are in the built page (build.license of web/vite.*.ts).
var pageLicences = []string{"web/dist/licenses.txt", "web/dist/assets/frame/licenses-*.txt"}

// goModule is a module that the program is linked from.
type goModule struct {
	Path, Version, Dir string
	Main               bool
}

// licenceFile matches the names that modules give the texts of their licences, and what these ask to be passed on.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice|patents)([-.].*)?$`)

// WriteNotices writes the licences of the Go standard library, of all modules that the program is linked from, and of the packages in the page, for a program of an architecture.
func WriteNotices(ctx context.Context, arch, to string) error {
	root, err := goOutput(ctx, arch, "env", "GOROOT")
	if err != nil {
		return err
	}
	modules, err := linkedModules(ctx, arch)
	if err != nil {
		return err
	}
	modules = append([]goModule{{Path: "The Go standard library", Dir: strings.TrimSpace(string(root))}}, modules...)
	var out bytes.Buffer
	out.WriteString("cove contains the following works of others, under the licences printed with each.\n")
	for _, m := range modules {
		if err := m.writeLicences(&out); err != nil {
			return err
		}
	}
	fmt.Fprintf(&out, "\n%s\nThe web page\n", strings.Repeat("=", 80))
	for _, pattern := range pageLicences {
		paths, err := filepath.Glob(pattern)
		if err == nil && len(paths) == 0 {
			err = fmt.Errorf("there is no %s, with the licences of the page's packages; `make web` writes it", pattern)
		}
		if err != nil {
			return err
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&out, "\n%s\n", bytes.TrimSpace(text))
		}
	}
	return os.WriteFile(to, out.Bytes(), 0o644)
}

// linkedModules returns the modules of others that have a package in the program, by path.
func linkedModules(ctx context.Context, arch string) ([]goModule, error) {
	text, err := goOutput(ctx, arch, "list", "-deps", "-json=Module", "./cmd/cove")
	if err != nil {
		return nil, err
	}
	var modules []goModule
	for packages := json.NewDecoder(bytes.NewReader(text)); ; {
		var p struct{ Module *goModule }
		if err := packages.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read the list of packages: %w", err)
		}
		if p.Module != nil && !p.Module.Main {
			modules = append(modules, *p.Module)
		}
	}
	slices.SortFunc(modules, func(a, b goModule) int { return strings.Compare(a.Path, b.Path) })
	return slices.Compact(modules), nil
}

// goOutput runs the go command for linux and an architecture, as gobuild.Source.Program does.
func goOutput(ctx context.Context, arch string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOFLAGS=-mod=readonly")
	text, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
	}
	if err != nil {
		return nil, fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return text, nil
}

// writeLicences writes a module's name and the texts at its top. A module without any is an error: somebody has to look at its terms.
func (m goModule) writeLicences(w io.Writer) error {
	entries, err := os.ReadDir(m.Dir)
	if err != nil {
		return fmt.Errorf("the licence of %s: %w", m.Path, err)
	}
	fmt.Fprintf(w, "\n%s\n%s\n", strings.Repeat("=", 80), strings.TrimSpace(m.Path+" "+m.Version))
	found := false
	for _, e := range entries {
		if e.IsDir() || !licenceFile.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(m.Dir, e.Name()))
		if err != nil {
			return err
		}
		found = true
		fmt.Fprintf(w, "\n%s\n", bytes.TrimSpace(text))
	}
	if !found {
		return fmt.Errorf("%s has no file with its licence in %s", m.Path, m.Dir)
	}
	return nil
}
