package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"cove/internal/machine/guestlink"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/wire"
	"cove/internal/python/deps/gateway"
	"cove/internal/python/pyenv"
)

// Folders of a room's workspace.
const (
	inFolder  = "in"
	outFolder = "out"
	tmpFolder = "tmp"
)

// toolFolder is where a room sees uv.
const toolFolder = "/opt/cove/uv"

// mostRequests bounds what one room asks the index: a build has no reason to look around.
const mostRequests = 5000

// leaving bounds how long it takes to end a room.
const leaving = 30 * time.Second

// room is a sandbox that is used for one thing and thrown away.
type room struct {
	sandbox sandbox.Sandbox
	link    *guestlink.Link
	forward *guestlink.Forward
	server  *http.Server
	env     []string
	program string
}

// open starts a sandbox with a way to the index.
func (b *Builder) open(ctx context.Context, g *gateway.Gateway, env *pyenv.Environment) (*room, error) {
	tool, err := b.tool(ctx)
	if err != nil {
		return nil, err
	}
	mounts := append(env.Mounts(), sandbox.Mount{Source: sandbox.HostFolder(tool), Target: toolFolder})
	r := &room{}
	if err := b.furnish(ctx, r, g, mounts); err != nil {
		err = r.explain(ctx, err)
		r.close(ctx)
		return nil, err
	}
	return r, nil
}

// furnish starts the sandbox of a room, and what serves it.
func (b *Builder) furnish(ctx context.Context, r *room, g *gateway.Gateway, mounts []sandbox.Mount) (err error) {
	if r.sandbox, err = b.options.Engine.Start(ctx, sandbox.Spec{ID: sandbox.NewID("build"), Mounts: mounts, Limits: b.options.Limits}); err != nil {
		return err
	}
	if r.link, err = guestlink.Dial(ctx, r.sandbox, guestlink.Session{}); err != nil {
		return err
	}
	if r.forward, err = r.link.Forward(ctx); err != nil {
		return err
	}
	t := &toll{handler: g.Handler()}
	t.bytes.Store(b.options.Download)
	t.requests.Store(mostRequests)
	r.server = &http.Server{Handler: t, ReadHeaderTimeout: time.Minute, MaxHeaderBytes: 64 << 10, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = r.server.Serve(r.forward) }() // it ends with the forwarded port
	layout := r.sandbox.Layout()
	if _, err = r.link.WriteFile(ctx, tmpFolder+"/.made", strings.NewReader(""), 0o600); err != nil {
		return err
	}
	r.program = layout.Path(toolFolder) + "/uv"
	proxy := "http://127.0.0.1:" + strconv.Itoa(r.forward.Port)
	r.env = []string{
		"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + layout.Workspace, "USER=user", "LANG=C.UTF-8", "TERM=dumb", "NO_COLOR=1", "TMPDIR=" + layout.Workspace + "/" + tmpFolder,
		"HTTP_PROXY=" + proxy, "http_proxy=" + proxy,
		"UV_DEFAULT_INDEX=" + gateway.IndexURL, "UV_PYTHON=" + layout.Path(pyenv.MountPoint) + "/bin/python", "UV_PYTHON_DOWNLOADS=never", "UV_NO_CONFIG=1", "UV_NO_PROGRESS=1",
		"UV_HTTP_RETRIES=0", "UV_HTTP_TIMEOUT=300",
		// Beside the temporary folder, so that uv links instead of copying.
		"UV_CACHE_DIR=" + layout.Workspace + "/cache", "UV_LINK_MODE=hardlink",
		// The same source makes the same wheel where its build heeds this.
		"SOURCE_DATE_EPOCH=1577836800",
	}
	return nil
}

// close ends the sandbox and what serves it, also when ctx has ended.
func (r *room) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaving)
	defer cancel()
	if r.server != nil {
		_ = r.server.Close()
	}
	if r.forward != nil {
		_ = r.forward.Close()
	}
	if r.link != nil {
		_ = r.link.Close()
	}
	if r.sandbox != nil {
		_ = r.sandbox.Stop(ctx) // what is left of it goes with the next sweep
	}
}

// run runs a program in the workspace.
func (r *room) run(ctx context.Context, stdout, stderr io.Writer, words ...string) (code int, err error) {
	code, err = r.link.Run(ctx, wire.ProcessSpec{Args: words, Env: r.env}, stdout, stderr)
	if err != nil {
		return -1, r.explain(ctx, err)
	}
	return code, nil
}

func (r *room) uv(ctx context.Context, stdout, stderr io.Writer, words ...string) (code int, err error) {
	return r.run(ctx, stdout, stderr, append([]string{r.program}, words...)...)
}

// explain replaces an error of talking to a sandbox by the reason why the sandbox is gone. What failed because ctx has ended says nothing about the sandbox, which is there as a rule.
func (r *room) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil || r.sandbox == nil || r.link == nil {
		return err
	}
	select {
	case <-r.link.Done():
	default:
		if !errors.Is(err, wire.ErrClosed) { // which is known before the link has ended
			return err
		}
	}
	// The connection ends a moment before the sandbox.
	select {
	case <-r.sandbox.Done():
	case <-time.After(leaving):
	}
	if cause := r.sandbox.Cause(); cause != nil {
		return fmt.Errorf("build in a sandbox: %w", cause)
	}
	return err
}

// toll counts what a sandbox takes from the index and refuses more than it may.
type toll struct {
	handler         http.Handler
	bytes, requests atomic.Int64 // left
}

func (t *toll) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if t.requests.Add(-1) < 0 || t.bytes.Load() <= 0 {
		http.Error(w, "the build sent too many requests", http.StatusTooManyRequests)
		return
	}
	t.handler.ServeHTTP(&metered{ResponseWriter: w, toll: t}, r)
}

// metered cuts an answer off where the toll is used up.
type metered struct {
	http.ResponseWriter
	toll *toll
}

func (m *metered) Write(p []byte) (int, error) {
	if m.toll.bytes.Add(-int64(len(p))) < 0 {
		panic(http.ErrAbortHandler)
	}
	return m.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (m *metered) Unwrap() http.ResponseWriter { return m.ResponseWriter }
