package libdata

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"cove/internal/core/problem"
)

// source is a place that items come from.
type source interface {
	// open opens a file by its path below the place. What is not there is a problem with the code data_unknown.
	open(ctx context.Context, name string) (io.ReadCloser, error)
	// list returns the paths of the files below a folder, where that can be told.
	list(folder string) ([]string, error)
}

func sourceOf(place string) source {
	if strings.HasPrefix(place, "https://") || strings.HasPrefix(place, "http://") {
		return address(strings.TrimSuffix(place, "/"))
	}
	return folder(place)
}

// address is a server. Proxies and certificates are those of this machine's environment.
type address string

func (a address) open(ctx context.Context, name string) (io.ReadCloser, error) {
	whole, err := url.Parse(string(a) + "/" + name)
	if err != nil {
		return nil, problem.New(problem.DataInvalid, string(a)+" is no address").WithCause(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, whole.String(), nil)
	if err != nil {
		return nil, problem.New(problem.DataInvalid, string(a)+" is no address").WithCause(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, unreachable(string(a), err)
	}
	switch {
	case resp.StatusCode == http.StatusNotFound, resp.StatusCode == http.StatusGone:
		_ = resp.Body.Close()
		return nil, problem.New(problem.DataUnknown, string(a)+" has no "+name)
	case resp.StatusCode != http.StatusOK:
		_ = resp.Body.Close()
		return nil, problem.New(problem.DataUnreachable, fmt.Sprintf("%s answers %s for %s", a, resp.Status, name)).WithHint("name another place with --from")
	}
	return resp.Body, nil
}

func (a address) list(string) ([]string, error) {
	return nil, problem.New(problem.DataInvalid, string(a)+" is an address, whose files cannot be listed").WithHint("name a folder with --from")
}

// folder is one of this machine.
type folder string

func (f folder) open(_ context.Context, name string) (io.ReadCloser, error) {
	root, err := os.OpenRoot(string(f))
	if err != nil {
		return nil, f.problem(err)
	}
	defer func() { _ = root.Close() }()
	file, err := root.Open(filepath.FromSlash(path.Clean(strings.SplitN(name, "?", 2)[0])))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, problem.New(problem.DataUnknown, string(f)+" has no "+name)
	}
	if err != nil {
		return nil, f.problem(err)
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		file.Close()
		return nil, problem.New(problem.DataUnknown, filepath.Join(string(f), name)+" is no file")
	}
	return file, nil
}

func (f folder) list(below string) (names []string, err error) {
	root, err := os.OpenRoot(string(f))
	if err != nil {
		return nil, f.problem(err)
	}
	defer func() { _ = root.Close() }()
	err = fs.WalkDir(root.FS(), path.Clean(below), func(name string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			names = append(names, name)
		}
		if len(names) > mostFiles {
			return problem.New(problem.DataTooLarge, string(f)+" has very many files")
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return names, err
}

func (f folder) problem(err error) error {
	return problem.New(problem.DataUnreachable, "cannot read the folder "+string(f)).WithCause(err).WithHint("name a folder or an address with --from")
}

func unreachable(place string, err error) error {
	return problem.New(problem.DataUnreachable, place+" cannot be reached").WithCause(err).WithHint("name a mirror, or a folder that has it, with --from")
}
