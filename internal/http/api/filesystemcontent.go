package api

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"path"
	"slices"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/http/byterange"
	"cove/internal/http/sse"
	"cove/internal/machine/filesystem"
	"cove/internal/machine/guestlink"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// FileEvent is a change of a file that somebody watches.
type FileEvent struct {
	Type   string `json:"type" enum:"create,write,change,move,remove,lost,end"`
	Path   string `json:"path,omitempty" doc:"From the folder that is watched, or the name of the file"`
	From   string `json:"from,omitempty" doc:"Of a move: the path before"`
	Folder bool   `json:"folder,omitempty"`
}

type writePath struct {
	PathQuery
	Mode string `query:"mode" pattern:"^[0-7]{1,5}$" doc:"Octal; that of the file which is replaced when left out, or 0644"`
	New  bool   `query:"new" doc:"Nothing may be there yet"`
}

func (s *server) addFileSystemContent() {
	addRaw(s, operation{id: "fs.write", method: http.MethodPut, path: atFileSystem + "/content", tag: tagFileSystem, action: auth.FilesWrite, raw: true, status: http.StatusCreated, summary: "Write a file",
		about:  "The body is the file, streamed, and with `Content-Encoding: gzip` compressed. Folders on the way are made; it replaces what is there, whole or not at all, and where a link is, what that leads to.",
		errors: append([]problem.Code{problem.FileTooLarge}, changeProblems...), example: `curl -H "Authorization: Bearer $KEY" -T sales.csv "$COVE/sessions/$SESSION/fs/content?path=/tmp/sales.csv&mode=0600"
gzip -c sales.csv | curl -H "Authorization: Bearer $KEY" -H "Content-Encoding: gzip" -T - \
  "$COVE/sessions/$SESSION/fs/content?path=data/sales.csv"`}, s.writePath)
	addRaw(s, operation{id: "fs.read", method: http.MethodGet, path: atFileSystem + "/content", tag: tagFileSystem, action: auth.FilesRead, summary: "Read a file",
		about: "With `Range` (one), `If-None-Match` and the like; compressed for who accepts `gzip` and asks for all of it.", errors: append([]problem.Code{problem.FileTooLarge, problem.RangeInvalid, problem.IsFolder}, pathProblems...),
		example: `curl -H "Authorization: Bearer $KEY" "$COVE/sessions/$SESSION/fs/content?path=/etc/hosts"
curl --compressed -H "Authorization: Bearer $KEY" -o sales.csv "$COVE/sessions/$SESSION/fs/content?path=data/sales.csv"`}, s.readPath)
	addRaw(s, operation{id: "fs.watch", method: http.MethodGet, path: atFileSystem + "/watch", tag: tagFileSystem, action: auth.FilesRead, summary: "Watch a file or folder",
		about:  "Changes as they happen. The answer begins when the watching does: look at the files after that, and nothing is missed.",
		errors: append([]problem.Code{problem.TooManyProcesses, problem.SessionTaken}, pathProblems...),
		example: `# for two seconds
curl -N -m 2 -H "Authorization: Bearer $KEY" "$COVE/sessions/$SESSION/fs/watch?path=&all=true" || test $? = 28`}, s.watchFiles)
}

func (s *server) writePath(w http.ResponseWriter, r *http.Request, who auth.Principal, in *writePath) error {
	if in.Path == "" {
		return problem.New(problem.InvalidPath, "the workspace is not a file").WithHint("name the file: ?path=data/sales.csv")
	}
	mode, err := modeOf(in.Mode)
	if err != nil {
		return err
	}
	if r.ContentLength > s.o.MaxFile {
		return errTooLarge(nil)
	}
	body := uploaded(w, r, s.o.MaxFile)
	switch encoding := strings.ToLower(strings.TrimSpace(r.Header.Get("Content-Encoding"))); encoding {
	case "", "identity":
	case "gzip", "x-gzip":
		if body, err = gunzipped(body); err != nil {
			return err
		}
	default:
		return problem.New(problem.InvalidRequest, fmt.Sprintf("the body is encoded as %.40q (header.Content-Encoding)", encoding)).WithHint("send it as it is, or as gzip")
	}
	var out FileEntry
	use := hub.FilesUse{Action: "session.file.write", Paths: []string{in.Path}}
	err = s.o.Hub.UseFiles(r.Context(), who, in.Session, use, func(ctx context.Context, f guestlink.Files) error {
		n, err := f.WritePath(ctx, in.Path, body, filesystem.Set{Mode: mode}, in.New)
		out = fileEntryOf(n)
		return err
	})
	if err != nil {
		return uploadFailed(r, err)
	}
	w.Header().Set("ETag", out.ETag)
	writeJSON(w, http.StatusCreated, out)
	return nil
}

// gunzipped reads a compressed body. How much comes out of it is bounded by who reads it.
func gunzipped(body io.Reader) (io.Reader, error) {
	broken := func(err error) error {
		if _, known := errors.AsType[*problem.Error](err); known {
			return err
		}
		return problem.New(problem.InvalidBody, "the body is not gzip, or not all of it").WithCause(err)
	}
	z, err := gzip.NewReader(body)
	if err != nil {
		return nil, broken(err)
	}
	return readerFunc(func(p []byte) (int, error) {
		n, err := z.Read(p)
		if err != nil && !errors.Is(err, io.EOF) {
			err = broken(err)
		}
		return n, err
	}), nil
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func (s *server) readPath(w http.ResponseWriter, r *http.Request, who auth.Principal, in *PathQuery) error {
	return s.look(r.Context(), who, *in, func(ctx context.Context, f guestlink.Files) error {
		n, err := f.StatPath(ctx, in.Path, false)
		if err != nil {
			return err
		}
		if n.Kind == filesystem.Folder {
			return problem.New(problem.IsFolder, "this is a folder").WithHint("list it with .../fs/list?path=")
		}
		name, etag, modified := path.Base(in.Path), contentTag(n.Size, n.Modified, n.Stamp), expressible(n.Modified)
		if n.Size == 0 { // or it does not say, as those of /proc
			content, err := readAll(ctx, f, in.Path)
			if err != nil {
				return err
			}
			if len(content) > 0 {
				etag = fmt.Sprintf(`"%x"`, sha256.Sum256(content))
			}
			s.serveContent(w, r, name, etag, modified, bytes.NewReader(content))
			return nil
		}
		r := byterange.One(r, etag)
		from, to := byterange.Of(r, n.Size)
		content := &treeFile{ctx: ctx, path: in.Path, size: n.Size, end: to, at: from, read: func(ctx context.Context, offset, limit int64, to io.Writer) error {
			return readPath(ctx, f, in.Path, offset, limit, to)
		}}
		defer content.stop()
		if r.Method == http.MethodHead {
			content.end = min(to, from+1)
		}
		if err := content.begin(); err != nil {
			return err
		}
		w.Header().Set("Vary", "Accept-Encoding")
		if compressible(r, n.Size) {
			return s.compressed(ctx, w, name, content)
		}
		s.serveContent(w, r, name, etag, modified, content)
		return nil // errors from here on show as a body that is too short
	})
}

// leastCompressed is the size in bytes from which compression is worth it.
const leastCompressed = 1 << 10

// compressible says whether a request wants all of a file, compressed.
func compressible(r *http.Request, size int64) bool {
	if r.Method != http.MethodGet || size < leastCompressed {
		return false
	}
	for _, conditional := range []string{"Range", "If-None-Match", "If-Match", "If-Modified-Since", "If-Unmodified-Since"} {
		if r.Header.Get(conditional) != "" {
			return false
		}
	}
	return slices.ContainsFunc(strings.Split(r.Header.Get("Accept-Encoding"), ","), func(one string) bool {
		name, weight, _ := strings.Cut(strings.TrimSpace(one), ";")
		return strings.EqualFold(strings.TrimSpace(name), "gzip") && !strings.HasPrefix(strings.ReplaceAll(weight, " ", ""), "q=0") // a weight below 1 is rare, and no reason to send more
	})
}

// compressed answers with a file as gzip.
func (s *server) compressed(ctx context.Context, w http.ResponseWriter, name string, content io.Reader) error {
	attach(w.Header(), name)
	w.Header().Set("Cache-Control", "private, no-cache")
	w.Header().Set("Content-Encoding", "gzip")
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err == nil {
		if _, err = io.Copy(z, content); err == nil {
			err = z.Close()
		}
	}
	if err != nil {
		s.o.Log.DebugContext(ctx, "a file was not sent to its end", "err", err)
		panic(http.ErrAbortHandler) // better than one that looks whole and is not
	}
	return nil
}

func readPath(ctx context.Context, f guestlink.Files, path string, offset, limit int64, to io.Writer) error {
	c, err := f.OpenPath(ctx, path, offset, limit)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if _, err = io.Copy(to, c); err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return err
}

// mostUnsized bounds a file that does not say its size, in bytes.
const mostUnsized = 8 << 20

func readAll(ctx context.Context, f guestlink.Files, path string) ([]byte, error) {
	c, err := f.OpenPath(ctx, path, 0, mostUnsized)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	return io.ReadAll(c)
}

func (s *server) watchFiles(w http.ResponseWriter, r *http.Request, who auth.Principal, in *pathWatch) error {
	return s.stream(w, r, sse.Event{}, func(ctx context.Context) (iter.Seq2[sse.Event, error], error) {
		events, err := s.o.Hub.WatchFiles(ctx, who, in.Session, in.Path, in.All)
		if err != nil {
			return nil, err
		}
		return func(yield func(sse.Event, error) bool) {
			for e, err := range events {
				if err != nil {
					yield(sse.Event{}, err)
					return
				}
				body, err := json.Marshal(FileEvent{Type: string(e.Kind), Path: e.Path, From: e.From, Folder: e.Folder})
				if !yield(sse.Event{Name: string(e.Kind), Data: body}, err) {
					return
				}
			}
		}, nil
	})
}
