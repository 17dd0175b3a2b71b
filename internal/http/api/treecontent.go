package api

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"cove/internal/core/problem"
	"cove/internal/http/byterange"
	"cove/internal/machine/workspace"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// etagOf returns an ETag for a file's content, as far as the sandbox's stamp identifies that. The stamp comes from the sandbox and is hostile, so it is hashed.
func etagOf(i workspace.Entry) string { return contentTag(i.Size, i.Modified, i.Stamp) }

func contentTag(size int64, modified time.Time, stamp string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %d %s", size, modified.UnixMicro(), stamp))
	return `"` + hex.EncodeToString(sum[:12]) + `"`
}

type (
	contentPath struct {
		SessionPath
		Path string `path:"path" maxLength:"4096" example:"data/sales.csv"`
	}
	archiveQuery struct {
		TreeQuery
		Format string `query:"format" enum:"tar.gz,zip" default:"tar.gz"`
	}
)

func (s *server) addTreeContent() {
	const tag = "session files"
	addRaw(s, operation{id: "tree.upload", method: http.MethodPut, path: "/sessions/{session}/files/{path...}", tag: tag, action: auth.FilesWrite, raw: true, status: http.StatusCreated,
		summary: "Upload a file", about: "The body is the file, streamed; folders on the way are made. It replaces what is there, whole or not at all.",
		errors:  []problem.Code{problem.SessionNotFound, problem.FileTooLarge, problem.WorkspaceFull, problem.InvalidPath},
		example: `curl -H "Authorization: Bearer $KEY" -T sales.csv $COVE/sessions/$SESSION/files/data/sales.csv`}, s.uploadTree)
	addRaw(s, operation{id: "tree.download", method: http.MethodGet, path: "/sessions/{session}/files/{path...}", tag: tag, action: auth.FilesRead, summary: "Download a file",
		about:  "With `Range` (one), `If-None-Match` and the like. A sparse file that claims to be larger than a workspace has to be read in parts.",
		errors: append([]problem.Code{problem.FileTooLarge, problem.RangeInvalid}, treeProblems...),
		example: `curl -H "Authorization: Bearer $KEY" -o sales.csv $COVE/sessions/$SESSION/files/data/sales.csv
curl -H "Authorization: Bearer $KEY" -r 0-99 $COVE/sessions/$SESSION/files/data/sales.csv`}, s.downloadTree)
	addRaw(s, operation{id: "tree.archive", method: http.MethodGet, path: "/sessions/{session}/archive", tag: tag, action: auth.FilesRead, summary: "Download a folder as an archive",
		errors: treeProblems, example: `curl -H "Authorization: Bearer $KEY" -o work.zip "$COVE/sessions/$SESSION/archive?format=zip"`}, s.archive)
}

func (s *server) uploadTree(w http.ResponseWriter, r *http.Request, who auth.Principal, in *contentPath) error {
	if in.Path == "" || strings.HasSuffix(in.Path, "/") {
		return problem.New(problem.InvalidPath, "the address must end in the file's path").WithHint("PUT .../files/data/sales.csv")
	}
	if r.ContentLength > s.o.MaxFile {
		return errTooLarge(nil)
	}
	if r.Header.Get("Content-Range") != "" { // a client that continues an upload expects the rest of the file to be kept (RFC 9110, 14.5)
		return problem.New(problem.InvalidRequest, "a part of a file cannot be uploaded (header.Content-Range)").WithHint("upload all of it")
	}
	body := uploaded(w, r, s.o.MaxFile)
	var out Entry
	err := s.o.Hub.Tree(r.Context(), who, in.Session, true, func(ctx context.Context, t hub.Tree) error {
		info, err := t.Write(ctx, in.Path, body)
		out = entryOf(info)
		return err
	})
	if err != nil {
		return uploadFailed(r, err)
	}
	w.Header().Set("ETag", out.ETag)
	writeJSON(w, http.StatusCreated, out)
	return nil
}

func (s *server) downloadTree(w http.ResponseWriter, r *http.Request, who auth.Principal, in *contentPath) error {
	return s.o.Hub.Tree(r.Context(), who, in.Session, false, func(ctx context.Context, t hub.Tree) error {
		info, err := t.Stat(ctx, in.Path)
		if err != nil {
			return err
		}
		if info.Folder {
			return problem.New(problem.IsFolder, "this is a folder").WithHint("list it with ?path=, or download it with .../archive?path=")
		}
		etag := etagOf(info)
		r := byterange.One(r, etag)
		from, to := byterange.Of(r, info.Size)
		content := &treeFile{ctx: ctx, path: in.Path, size: info.Size, end: to, at: from, read: func(ctx context.Context, offset, limit int64, to io.Writer) error {
			_, err := t.Read(ctx, in.Path, offset, limit, to)
			return err
		}}
		defer content.stop()
		if r.Method == http.MethodHead {
			content.end = min(to, from+1)
		}
		if err := content.begin(); err != nil {
			return err
		}
		s.serveContent(w, r, path.Base(in.Path), etag, expressible(info.Modified), content)
		return nil // errors from here on show as a body that is too short
	})
}

// serveContent answers with a file that may be hostile: a browser saves it and does not run it. One range is supported.
func (s *server) serveContent(w http.ResponseWriter, r *http.Request, name, etag string, modified time.Time, content io.ReadSeeker) {
	r = byterange.One(r, etag)
	attach(w.Header(), name)
	w.Header().Set("ETag", etag)
	w.Header().Set("Cache-Control", "private, no-cache")
	http.ServeContent(&contentWriter{ResponseWriter: w, refuse: func(err error) { s.write(w, r, documentOf(err)) }}, r, "", modified, content)
}

// contentWriter replaces http.ServeContent's refusals by problems.
type contentWriter struct {
	http.ResponseWriter
	refuse  func(error)
	refused bool
}

func (c *contentWriter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *contentWriter) WriteHeader(status int) {
	var err error
	switch status {
	case http.StatusRequestedRangeNotSatisfiable:
		err = problem.New(problem.RangeInvalid, "the file has no such range").WithHint("see Content-Range for its size, if it is there")
	case http.StatusPreconditionFailed:
		err = problem.New(problem.PreconditionFailed, "the file is not the one that the request is about").WithHint("ask again without If-Match and If-Unmodified-Since")
	default:
		c.ResponseWriter.WriteHeader(status)
		return
	}
	c.refused = true
	c.Header().Del("Content-Disposition")
	c.refuse(err)
}

func (c *contentWriter) Write(p []byte) (int, error) {
	if c.refused {
		return len(p), nil // the text that a problem replaces
	}
	return c.ResponseWriter.Write(p)
}

// attach sets the headers of every download.
func attach(h http.Header, name string) {
	kind := mime.TypeByExtension(strings.ToLower(path.Ext(name)))
	if kind == "" {
		kind = "application/octet-stream"
	}
	h.Set("Content-Type", kind)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	plain := strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			return '_'
		}
		return c
	}, name)
	h.Set("Content-Disposition", `attachment; filename="`+plain+`"; filename*=UTF-8''`+strings.ReplaceAll(url.QueryEscape(name), "+", "%20"))
}

func (s *server) archive(w http.ResponseWriter, r *http.Request, who auth.Principal, in *archiveQuery) error {
	return s.o.Hub.Tree(r.Context(), who, in.Session, false, func(ctx context.Context, t hub.Tree) error {
		info, err := t.Stat(ctx, in.Path)
		if err != nil {
			return err
		}
		if !info.Folder {
			return problem.New(problem.NotAFolder, "this is a file").WithHint("download it with .../files/" + in.Path)
		}
		name := path.Base(in.Path)
		if in.Path == "" || name == "." || name == "/" {
			name = "workspace"
		}
		attach(w.Header(), name+"."+in.Format)
		w.Header().Set("Content-Type", map[string]string{"zip": "application/zip"}[in.Format])
		if in.Format != "zip" {
			w.Header().Set("Content-Type", "application/gzip")
		}
		w.Header().Set("Cache-Control", "no-store")
		if r.Method == http.MethodHead {
			return nil
		}
		begun := &copying{ResponseWriter: w}
		if err := t.Archive(ctx, in.Path, in.Format, begun); err != nil && begun.status != 0 {
			s.o.Log.WarnContext(ctx, "archive ended early", "err", err)
			panic(http.ErrAbortHandler) // better than an archive that looks whole and is not
		} else if err != nil {
			w.Header().Del("Content-Disposition")
			return err
		}
		return nil
	})
}

// treeFile reads a file of a workspace from any offset, for ranges. One read asks the sandbox for everything up to the range's end.
type treeFile struct {
	ctx   context.Context
	path  string
	read  func(ctx context.Context, offset, limit int64, to io.Writer) error
	size  int64 // of the whole file
	end   int64 // of what is asked for
	place int64 // where the next read begins
	at    int64 // where the read that is under way is
	from  *io.PipeReader
	begun *bufio.Reader // of from
	done  chan struct{}
}

// begin reads the first byte, so that a file that cannot be read is answered with a problem, and not with a body that is too short.
func (f *treeFile) begin() error {
	f.start()
	if _, err := f.begun.Peek(1); err != nil && err != io.EOF {
		return err
	}
	return nil
}

// Seek only records the offset.
func (f *treeFile) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += f.place
	case io.SeekEnd:
		offset += f.size
	}
	if offset < 0 {
		return 0, fmt.Errorf("seek %s: before the beginning", f.path)
	}
	f.place = offset
	return offset, nil
}

func (f *treeFile) Read(p []byte) (int, error) {
	if f.place >= f.end {
		return 0, io.EOF
	}
	if f.place != f.at {
		f.stop()
		f.at = f.place
	}
	if f.from == nil {
		f.start()
	}
	n, err := f.begun.Read(p[:min(int64(len(p)), f.end-f.at)])
	f.at += int64(n)
	f.place = f.at
	return n, err
}

func (f *treeFile) start() {
	from, to := io.Pipe()
	done := make(chan struct{})
	f.from, f.done, f.begun = from, done, bufio.NewReaderSize(from, 1<<16)
	at, limit := f.at, max(f.end-f.at, 1) // an empty file, too, cannot be read when its mode forbids it
	go func() {
		defer close(done)
		to.CloseWithError(f.read(f.ctx, at, limit, to)) // nil is io.EOF
	}()
}

// stop ends the read that is under way: the tree may not be used after its session was released.
func (f *treeFile) stop() {
	if f.from != nil {
		_ = f.from.Close()
		<-f.done
		f.from = nil
	}
}
