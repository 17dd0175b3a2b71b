package client

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"

	"cove/internal/http/api"
)

// filePath is the address of a file in a workspace.
func filePath(session, path string) string {
	return "/sessions" + join(session, "files") + join(strings.Split(strings.Trim(path, "/"), "/")...)
}

// List returns what a folder of a session's workspace holds; "" is the workspace itself.
func (c *Client) List(ctx context.Context, session, dir string) (api.Folder, error) {
	return get[api.Folder](ctx, c, "/sessions"+join(session, "files"), url.Values{"path": {dir}})
}

// Stat looks at a file or folder of a workspace.
func (c *Client) Stat(ctx context.Context, session, path string) (api.Entry, error) {
	return get[api.Entry](ctx, c, "/sessions"+join(session, "stat"), url.Values{"path": {path}})
}

// Upload writes r into a workspace, in the place of what is there.
func (c *Client) Upload(ctx context.Context, session, path string, r io.Reader) (out api.Entry, err error) {
	err = c.ask(ctx, call{method: http.MethodPut, path: filePath(session, path), raw: r, kind: "application/octet-stream"}, &out)
	return out, err
}

// Download writes a file of a workspace to w and returns its size.
func (c *Client) Download(ctx context.Context, session, path string, w io.Writer) (int64, error) {
	return c.content(ctx, filePath(session, path), nil, w)
}

// Archive writes a folder of a workspace to w, as "tar.gz" or "zip".
func (c *Client) Archive(ctx context.Context, session, dir, format string, w io.Writer) (int64, error) {
	return c.content(ctx, "/sessions"+join(session, "archive"), url.Values{"path": {dir}, "format": {format}}, w)
}

func (c *Client) content(ctx context.Context, path string, query url.Values, w io.Writer) (int64, error) {
	answer, err := c.send(ctx, call{method: http.MethodGet, path: path, query: query, accept: "*/*"})
	if err != nil {
		return 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	broken := &noting{from: answer.Body}
	n, err := io.Copy(w, broken)
	if broken.err != nil { // w's own errors are the caller's
		return n, c.unreachable(ctx, broken.err)
	}
	return n, err
}

// noting keeps the error of a reader, but for its end.
type noting struct {
	from io.Reader
	err  error
}

func (n *noting) Read(p []byte) (int, error) {
	k, err := n.from.Read(p)
	if err != nil && err != io.EOF {
		n.err = err
	}
	return k, err
}

// Move moves a file or folder of a workspace. It never replaces.
func (c *Client) Move(ctx context.Context, session, from, to string) (api.Entry, error) {
	return act[api.Entry](ctx, c, http.MethodPost, "/sessions"+join(session, "move"), map[string]string{"from": from, "to": to})
}

// MakeFolder makes a folder in a workspace.
func (c *Client) MakeFolder(ctx context.Context, session, path string) (api.Entry, error) {
	return create[api.Entry](ctx, c, "/sessions"+join(session, "folders"), map[string]string{"path": path})
}

// Remove deletes a file of a workspace, or, with all, a folder with what is in it.
func (c *Client) Remove(ctx context.Context, session, path string, all bool) error {
	q := url.Values{}
	if all {
		q.Set("all", "true")
	}
	return c.delete(ctx, filePath(session, path), q)
}

// Put copies a stored file into a workspace under path ("" for its name).
func (c *Client) Put(ctx context.Context, session, file, path string) (api.Entry, error) {
	body := map[string]string{"file": file}
	if path != "" {
		body["path"] = path
	}
	return create[api.Entry](ctx, c, "/sessions"+join(session, "files"), body)
}

// Store stores a file beside any session.
func (c *Client) Store(ctx context.Context, name, purpose string, r io.Reader) (out api.File, err error) {
	q := url.Values{"name": {name}}
	if purpose != "" {
		q.Set("purpose", purpose)
	}
	err = c.ask(ctx, call{method: http.MethodPost, path: "/files", query: q, raw: r, kind: "application/octet-stream"}, &out)
	return out, err
}

// Files yields stored files, the newest first, of a purpose or ("") of any.
func (c *Client) Files(ctx context.Context, purpose string) iter.Seq2[api.File, error] {
	return pages[api.File](ctx, c, "/files", url.Values{"purpose": {purpose}})
}

// File returns a stored file's record.
func (c *Client) File(ctx context.Context, id string) (api.File, error) {
	return get[api.File](ctx, c, "/files"+join(id), nil)
}

// Content writes a stored file to w and returns its size.
func (c *Client) Content(ctx context.Context, id string, w io.Writer) (int64, error) {
	return c.content(ctx, "/files"+join(id, "content"), nil, w)
}

// DeleteFile removes a stored file.
func (c *Client) DeleteFile(ctx context.Context, id string) error {
	return c.delete(ctx, "/files"+join(id), nil)
}
