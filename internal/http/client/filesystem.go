package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"cove/internal/http/api"
	"cove/internal/machine/filesystem"
)

// fsPath is the address of an operation on the file system of a session's machine.
func fsPath(session, what string) string { return "/sessions" + join(session, "fs", what) }

// StatPath describes what a path names in a session's machine, with link a symbolic link itself. A relative path begins at the workspace and stays in it.
func (c *Client) StatPath(ctx context.Context, session, path string, link bool) (filesystem.Entry, error) {
	out, err := get[api.FileEntry](ctx, c, fsPath(session, "stat"), url.Values{"path": {path}, "link": {fmt.Sprint(link)}})
	return out.Entry(), err
}

// ListPath lists what is in a folder, down to a depth. more says that there is more than one answer may hold.
func (c *Client) ListPath(ctx context.Context, session, path string, depth int) (entries []filesystem.Entry, more bool, err error) {
	out, err := get[api.FileEntries](ctx, c, fsPath(session, "list"), url.Values{"path": {path}, "depth": {fmt.Sprint(depth)}})
	for _, e := range out.Items {
		entries = append(entries, e.Entry())
	}
	return entries, out.More, err
}

// ReadPath writes a file to w and returns how many bytes that were.
func (c *Client) ReadPath(ctx context.Context, session, path string, w io.Writer) (int64, error) {
	return c.content(ctx, fsPath(session, "content"), url.Values{"path": {path}}, w)
}

// WritePath puts r's bytes in the place of a file, whole or not at all, with permission bits, or with nil those that it had.
func (c *Client) WritePath(ctx context.Context, session, path string, r io.Reader, mode *uint32) (filesystem.Entry, error) {
	query := url.Values{"path": {path}}
	if mode != nil {
		query.Set("mode", fmt.Sprintf("%o", *mode))
	}
	var out api.FileEntry
	err := c.ask(ctx, call{method: http.MethodPut, path: fsPath(session, "content"), query: query, raw: r, kind: "application/octet-stream"}, &out)
	return out.Entry(), err
}
