package e2b

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"path"
	"strings"

	"connectrpc.com/connect"

	"cove/internal/core/problem"
	"cove/internal/http/byterange"
	"cove/internal/machine/filesystem"
	"cove/internal/machine/guestlink"
	"cove/internal/server/hub"
)

const (
	// mostUnsized bounds a file whose size the system does not say, as of those in /proc.
	mostUnsized = 16 << 20
	mostParts   = 1000 // files of one request
	// mostMetadata bounds the names and values of a file's metadata, in bytes.
	mostMetadata   = 4096
	metadataHeader = "X-Metadata-"
)

// named returns the path that the address of a file means, and whose rights count there.
func named(r *http.Request, given string) (path, user string, err error) {
	if user = r.URL.Query().Get("username"); user == "" {
		user, err = sandboxOf(r.Context()).userOf(r.Header)
	} else {
		err = knownUser(user)
	}
	if err != nil {
		return "", "", err
	}
	path, err = absolute(user, given)
	return path, user, err
}

// asRoot says whether files are used with the rights of root for a user; in sandboxes without a root it is done as the sandbox's user.
func (s *server) asRoot(user string) bool { return s.Root && user == "root" }

// refuseFile writes why a file cannot be had, or not be written.
func refuseFile(w http.ResponseWriter, err error) {
	code, message := said(err)
	if c, ok := errors.AsType[*connect.Error](err); ok {
		code, message = http.StatusBadRequest, c.Message()
		if c.Code() == connect.CodeUnauthenticated {
			code = http.StatusUnauthorized
		}
	}
	reply(w, code, map[string]any{"code": code, "message": message})
}

func (s *server) download(w http.ResponseWriter, r *http.Request, b sandbox) {
	p, user, err := named(r, r.URL.Query().Get("path"))
	if err != nil {
		refuseFile(w, err)
		return
	}
	begun := false
	err = s.Hub.UseFiles(r.Context(), b.who, b.id, hub.FilesUse{Paths: []string{p}, Root: s.asRoot(user)}, func(ctx context.Context, use guestlink.Files) error {
		n, err := use.StatPath(ctx, p, false)
		switch {
		case problem.Has(err, problem.FileNotFound):
			return &fault{http.StatusNotFound, "path '" + p + "' does not exist"}
		case err != nil:
			return err
		case n.Kind == filesystem.Folder:
			return &fault{http.StatusBadRequest, "path '" + p + "' is a directory"}
		}
		var content io.ReadSeeker
		if n.Size == 0 {
			text, err := unsized(ctx, use, p)
			if err != nil {
				return err
			}
			content = bytes.NewReader(text)
		} else {
			tag := fmt.Sprintf("%q", n.Stamp)
			r = byterange.One(r, tag)
			from, _ := byterange.Of(r, n.Size)
			file := &lazy{size: n.Size, open: func(at int64) (io.ReadCloser, error) { return use.OpenPath(ctx, p, at, 0) }}
			defer file.stop()
			if err := file.begin(from); err != nil {
				return err
			}
			w.Header().Set("ETag", tag)
			content = file
		}
		begun = true
		kind := mime.TypeByExtension(path.Ext(p))
		if kind == "" {
			kind = "application/octet-stream"
		}
		h := w.Header()
		h.Set("Content-Type", kind)
		h.Set("Content-Disposition", mime.FormatMediaType("inline", map[string]string{"filename": path.Base(p)}))
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "sandbox; default-src 'none'") // a sandbox's page shares the origin of the server's own
		http.ServeContent(w, r, "", n.Modified, content)
		return nil
	})
	if err != nil && !begun {
		refuseFile(w, err)
	}
}

// unsized reads a file whose size is not told: an empty one, or one of those in /proc.
func unsized(ctx context.Context, use guestlink.Files, p string) ([]byte, error) {
	f, err := use.OpenPath(ctx, p, 0, mostUnsized)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, mostUnsized))
}

// lazy is a file in a sandbox that is opened where it is read.
type lazy struct {
	size, at int64
	open     func(at int64) (io.ReadCloser, error)
	opened   io.ReadCloser
}

func (l *lazy) begin(at int64) (err error) {
	l.stop()
	l.at = at
	l.opened, err = l.open(at)
	return err
}

func (l *lazy) stop() {
	if l.opened != nil {
		_ = l.opened.Close()
		l.opened = nil
	}
}

// Seek implements io.Seeker.
func (l *lazy) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += l.at
	case io.SeekEnd:
		offset += l.size
	}
	if offset != l.at {
		l.stop()
	}
	l.at = offset
	return offset, nil
}

// Read implements io.Reader.
func (l *lazy) Read(p []byte) (int, error) {
	if l.opened == nil {
		if err := l.begin(l.at); err != nil {
			return 0, err
		}
	}
	n, err := l.opened.Read(p)
	l.at += int64(n)
	return n, err
}

// written is a file that was uploaded, as clients are told.
type written struct {
	Name     string            `json:"name"`
	Path     string            `json:"path"`
	Type     string            `json:"type"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

func (s *server) upload(w http.ResponseWriter, r *http.Request, b sandbox) {
	all, err := s.uploaded(r, b)
	if err != nil {
		refuseFile(w, err)
		return
	}
	reply(w, http.StatusOK, all)
}

func (s *server) uploaded(r *http.Request, b sandbox) ([]written, error) {
	set, err := metadataFrom(r.Header)
	if err != nil {
		return nil, err
	}
	body := io.Reader(r.Body)
	switch encoding := strings.ToLower(r.Header.Get("Content-Encoding")); encoding {
	case "", "identity":
	case "gzip":
		if body, err = gzip.NewReader(body); err != nil {
			return nil, &fault{http.StatusBadRequest, "the body is not gzip"}
		}
	default:
		return nil, &fault{http.StatusBadRequest, fmt.Sprintf("unsupported Content-Encoding: %.40q", encoding)}
	}
	given := r.URL.Query().Get("path")
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/form-data" {
		if given == "" {
			return nil, &fault{http.StatusBadRequest, "the address has no path, and the body is no multipart form"}
		}
		one, err := s.put(r, b, given, body, set)
		return []written{one}, err
	}
	form, all, seen := multipart.NewReader(body, params["boundary"]), []written{}, map[string]bool{}
	for {
		part, err := form.NextRawPart()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, &fault{http.StatusBadRequest, "the form is broken, or not all of it came"}
		}
		if part.FormName() != "file" {
			continue
		}
		name := given
		if name == "" {
			name = partPath(part)
		}
		if name == "" || seen[name] || len(all) == mostParts {
			return nil, &fault{http.StatusBadRequest, fmt.Sprintf("you cannot upload two files to one path, a file without one, or more than %d (%.200q)", mostParts, name)}
		}
		seen[name] = true
		one, err := s.put(r, b, name, part, set)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
}

// partPath is the path in the name of a form's file, of which Part.FileName leaves the last part alone.
func partPath(p *multipart.Part) string {
	_, params, err := mime.ParseMediaType(p.Header.Get("Content-Disposition"))
	if err != nil {
		return ""
	}
	return params["filename"]
}

// metadataFrom reads a file's metadata from the headers of a request.
func metadataFrom(h http.Header) (map[string]*string, error) {
	out, size := map[string]*string{}, 0
	for name, values := range h {
		key, ok := strings.CutPrefix(name, metadataHeader)
		if !ok || key == "" {
			continue
		}
		value := strings.Join(values, ",")
		size += len(key) + len(value)
		if strings.ContainsFunc(value, func(r rune) bool { return r < 0x20 || r > 0x7e }) {
			return nil, &fault{http.StatusBadRequest, "metadata is printable ASCII"}
		}
		out[attribute+strings.ToLower(key)] = &value
	}
	if size > mostMetadata {
		return nil, &fault{http.StatusBadRequest, fmt.Sprintf("the metadata of a file is larger than %d bytes", mostMetadata)}
	}
	return out, nil
}

// makeFolder makes a folder that is not there as the sandbox's user, or where that user may make none as root, and gives it to the user: E2B's agent is root, for any user that it acts for.
// It does nothing in a sandbox without a root.
func (s *server) makeFolder(ctx context.Context, b sandbox, user, folder string) (made bool, err error) {
	if !s.Root || s.asRoot(user) || folder == homes[user] {
		return false, nil
	}
	use := func(u hub.FilesUse, set filesystem.Set, add bool) error {
		u.Paths = []string{folder}
		return s.Hub.UseFiles(ctx, b.who, b.id, u, func(ctx context.Context, f guestlink.Files) error {
			if !add {
				_, err := f.StatPath(ctx, folder, true)
				return err
			}
			_, err := f.MakePath(ctx, folder, set, true)
			return err
		})
	}
	if err := use(hub.FilesUse{}, filesystem.Set{}, false); !problem.Has(err, problem.FileNotFound) {
		return false, nil // what is wrong is seen when the folder is used
	}
	const action = "session.folder.make"
	err = use(hub.FilesUse{Action: action}, filesystem.Set{}, true)
	if problem.Has(err, problem.FileDenied) {
		err = use(hub.FilesUse{Action: action, Root: true}, filesystem.Set{Owner: user, Group: user}, true)
	}
	return err == nil, err
}

// put writes a file. Its metadata is all that it has then: that of the one before is removed.
func (s *server) put(r *http.Request, b sandbox, given string, body io.Reader, set map[string]*string) (written, error) {
	p, user, err := named(r, given)
	if err != nil {
		return written{}, err
	}
	if _, err := s.makeFolder(r.Context(), b, user, path.Dir(p)); err != nil && !problem.Has(err, problem.FileExists) { // another may have made it meanwhile
		return written{}, err
	}
	out := written{Name: path.Base(p), Path: p, Type: "file"}
	err = s.Hub.UseFiles(r.Context(), b.who, b.id, hub.FilesUse{Action: "session.file.write", Paths: []string{p}, Root: s.asRoot(user)}, func(ctx context.Context, use guestlink.Files) error {
		old, err := use.StatPath(ctx, p, false)
		s.arrivals.note(b.id, p, problem.Has(err, problem.FileNotFound))
		if err == nil {
			if old.Kind == filesystem.Folder {
				return &fault{http.StatusBadRequest, "path is a directory: " + p}
			}
			for name := range old.Attributes {
				if _, kept := set[name]; !kept && strings.HasPrefix(name, attribute) {
					if set == nil {
						set = map[string]*string{}
					}
					set[name] = nil
				}
			}
		}
		n, err := use.WritePath(ctx, p, body, filesystem.Set{Attributes: set}, false)
		out.Metadata = metadataOf(n)
		return err
	})
	return out, err
}
