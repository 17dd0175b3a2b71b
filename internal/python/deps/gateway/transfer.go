package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"cove/internal/core/problem"
)

// transferRequest asks a source for the bytes of a file.
type transferRequest struct {
	entry    entry
	method   string // GET or HEAD
	offset   int64  // where to begin, if the source can
	ranged   string // a client's Range header, passed on as it is; "" for none
	metadata bool   // the core metadata beside the file (PEP 658), not the file
}

// transfer is an answer with bytes.
type transfer struct {
	io.Reader
	close  func() error
	offset int64    // of the first byte
	total  int64    // bytes of the whole; 0 when the source does not say
	file   *os.File // of a folder
	answer *http.Response
}

// end gives back what the transfer holds. That it could not be closed is no loss to a reader.
func (t *transfer) end() { _ = t.close() }

func gone(file, index string) error {
	return problem.New(problem.FileUnknown, fmt.Sprintf("the package index %s lists %s but does not have it", index, file)).
		WithHint("ask for another version, or try again later")
}

// open asks for a file where the page says that it is.
func (u *upstream) open(ctx context.Context, ask transferRequest) (*transfer, error) {
	place := ask.entry.url
	if ask.metadata {
		place += ".metadata"
	}
	to, err := url.Parse(place)
	if err != nil {
		return nil, gone(ask.entry.name, u.shown)
	}
	header := http.Header{"Accept-Encoding": {"identity"}, "Accept": {"*/*"}}
	if ask.offset > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", ask.offset))
	}
	setUnlessEmpty(header, "Range", ask.ranged)
	r, err := u.send(ctx, ask.method, to, header)
	if err != nil {
		return nil, err
	}
	t := &transfer{Reader: r.Body, close: r.Body.Close, answer: r}
	switch r.StatusCode {
	case http.StatusOK:
		t.total = max(r.ContentLength, 0)
		return t, nil
	case http.StatusPartialContent:
		first, total, ok := contentRange(r.Header.Get("Content-Range"))
		if ok && (ask.ranged != "" || first == ask.offset && ask.offset > 0) {
			t.offset, t.total = first, total
			return t, nil
		}
		err = u.malformed("it sends another part of a file than was asked for", nil)
	case http.StatusRequestedRangeNotSatisfiable:
		if ask.ranged != "" {
			return t, nil
		}
		err = mismatch(ask.entry.name, u.shown, "it is shorter than what has come of it before")
	case http.StatusNotFound, http.StatusGone:
		err = gone(ask.entry.name, u.shown)
	default:
		err = u.status(r)
	}
	_ = r.Body.Close()
	return nil, err
}

// contentRange reads "bytes 0-99/100".
func contentRange(header string) (first, total int64, ok bool) {
	var last int64
	n, _ := fmt.Sscanf(header, "bytes %d-%d/%d", &first, &last, &total)
	if n == 2 && strings.HasSuffix(header, "/*") {
		return first, 0, first >= 0 && last >= first
	}
	return first, total, n == 3 && first >= 0 && last >= first && total > last
}

func mismatch(file, index, what string) error {
	return problem.New(problem.PackageHashMismatch, fmt.Sprintf("%s from the package index %s is not the file that the index promises: %s", file, index, what)).
		WithHint("try again; if that does not help, the index or a proxy before it changes files: do not use it")
}

// delivery is one file on its way.
type delivery struct {
	f        *candidate
	w        io.Writer
	sum      hash.Hash
	received int64 // bytes that have gone to w
	total    int64
	limit    int64
	told     func(received, total int64)
}

// errWriter is that of the receiver, which trying again does not help.
type writerError struct{ error }

func (e writerError) Unwrap() error { return e.error }

// copyFile brings a file's bytes to w and compares them with the hash. A transfer that breaks is taken up again once.
func (g *Gateway) copyFile(ctx context.Context, f *candidate, w io.Writer, told func(received, total int64)) error {
	if g.offline && !f.from.local() {
		return problem.New(problem.IndexOffline, "cove is offline, and "+f.Name+" is not here").
			WithHint("switch offline mode off, or name a folder with wheels (UV_FIND_LINKS)")
	}
	if told == nil {
		told = func(int64, int64) {}
	}
	d := &delivery{f: f, w: w, sum: sha256.New(), total: f.Size, limit: g.rules.MaxFile, told: told}
	err := d.run(ctx)
	if u, ok := f.from.(*upstream); ok && err != nil && u.pause(ctx, err) {
		err = d.run(ctx)
	}
	if err != nil {
		return err
	}
	if f.Size > 0 && d.received != f.Size {
		return mismatch(f.Name, f.from.name(), fmt.Sprintf("it has %d bytes, not %d", d.received, f.Size))
	}
	if got := hex.EncodeToString(d.sum.Sum(nil)); got != f.SHA256 {
		return mismatch(f.Name, f.from.name(), "its SHA-256 differs")
	}
	return nil
}

// run transfers what is still missing.
func (d *delivery) run(ctx context.Context) error {
	t, err := d.f.from.open(ctx, transferRequest{entry: d.f.entry, method: http.MethodGet, offset: d.received})
	if err != nil {
		return err
	}
	defer t.end()
	if t.total > 0 && d.f.Size > 0 && t.total != d.f.Size {
		return mismatch(d.f.Name, d.f.from.name(), fmt.Sprintf("it has %d bytes, not %d", t.total, d.f.Size))
	}
	if d.total == 0 {
		d.total = t.total
	}
	if err := d.tooBig(d.total); err != nil {
		return err
	}
	if skip := d.received - t.offset; skip > 0 {
		if _, err := io.CopyN(io.Discard, t, skip); err != nil {
			return d.broken(ctx, err)
		}
	}
	_, err = io.CopyBuffer(d, t, make([]byte, 256<<10))
	if err != nil {
		return d.broken(ctx, err)
	}
	if t.total > 0 && d.received < t.total {
		return d.broken(ctx, io.ErrUnexpectedEOF)
	}
	return nil
}

func (d *delivery) broken(ctx context.Context, err error) error {
	if w, ok := errors.AsType[writerError](err); ok {
		return w.error
	}
	if u, ok := d.f.from.(*upstream); ok {
		return u.fault(ctx, err)
	}
	if ctx.Err() != nil {
		return ended(ctx, d.f.from.name())
	}
	if p, ok := errors.AsType[*problem.Error](err); ok {
		return p
	}
	return fmt.Errorf("read %s: %w", d.f.Name, err)
}

func (d *delivery) tooBig(size int64) error {
	if d.limit <= 0 || size <= d.limit {
		return nil
	}
	return problem.New(problem.PackageTooBig, fmt.Sprintf("%s has more than %s, the limit for one file of a package", d.f.Name, amount(d.limit))).
		WithHint("ask for a smaller package, or raise the limit in cove's configuration")
}

// Write passes on a piece. No more than promised is accepted.
func (d *delivery) Write(p []byte) (int, error) {
	next := d.received + int64(len(p))
	if d.f.Size > 0 && next > d.f.Size {
		return 0, mismatch(d.f.Name, d.f.from.name(), fmt.Sprintf("it has more than %d bytes", d.f.Size))
	}
	if err := d.tooBig(next); err != nil {
		return 0, err
	}
	n, err := d.w.Write(p)
	d.sum.Write(p[:n])
	d.received += int64(n)
	if err != nil {
		return n, writerError{err}
	}
	d.told(d.received, max(d.total, d.received))
	return n, nil
}
