package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// dockerKept is a container for each session, with a Python in it that stays.
type dockerKept struct{ daemon *dockerDaemon }

func (s *dockerKept) About() About {
	return About{ID: "docker-kept", Title: "docker run, Python stays", Note: dockerNote + "; a Python that executes what comes over a socket", Version: s.daemon.version}
}

func (s *dockerKept) Start(ctx context.Context) error { return s.daemon.start(ctx) }
func (s *dockerKept) Stop(ctx context.Context) error  { return s.daemon.stop(ctx) }

// keptDriver executes lines of JSON that come over a socket. What the code prints goes back.
const keptDriver = `
import json, socket, sys
listening = socket.socket(socket.AF_UNIX)
listening.bind(sys.argv[1])
listening.listen(1)
peer, _ = listening.accept()
sys.stdout = peer.makefile("w")
names = {"__name__": "__main__"}
for line in peer.makefile("r"):
    try:
        exec(json.loads(line), names)
    except Exception as e:
        print(type(e).__name__ + ":", e)
    sys.stdout.flush()
`

func (s *dockerKept) Join(ctx context.Context) (Live, error) { return s.Open(ctx) }
func (s *dockerKept) Footprint() int64                       { return 40e6 }

func (s *dockerKept) Open(ctx context.Context) (_ Live, err error) {
	d := s.daemon
	dir, err := os.MkdirTemp(d.shop.run, "s") // a short name: the path of a socket may have 107 bytes
	if err != nil {
		return nil, err
	}
	argv := d.docker(append(d.create("run", "--detach", "--rm", "--volume", dir+":"+dir), d.env.Python, "-c", keptDriver, filepath.Join(dir, "s"))...)
	id, err := d.shop.do(ctx, d.shop.command(argv[0], argv[1:]...))
	if err != nil {
		return nil, err
	}
	k := &keptPython{daemon: d, id: strings.TrimSpace(id)}
	err = until(ctx, 30*time.Second, func(ctx context.Context) (err error) {
		k.conn, err = new(net.Dialer).DialContext(ctx, "unix", filepath.Join(dir, "s"))
		return err
	})
	if err != nil {
		free(ctx, k, &err)
		return nil, err
	}
	k.out = bufio.NewReader(k.conn)
	return k, nil
}

// keptPython is the Python in one container.
type keptPython struct {
	daemon *dockerDaemon
	id     string
	conn   net.Conn
	out    *bufio.Reader
}

func (k *keptPython) Run(ctx context.Context, t Task) (out Output, err error) {
	stop := context.AfterFunc(ctx, func() { _ = k.conn.Close() })
	defer stop()
	if err := json.NewEncoder(k.conn).Encode(t.Program()); err != nil {
		return out, err
	}
	if t.Expr == "" {
		out.Bytes, err = io.CopyN(io.Discard, k.out, t.Bytes)
		return out, err
	}
	out.Text, err = k.out.ReadString('\n')
	return out, err
}

func (k *keptPython) Close(ctx context.Context) error {
	if k.conn != nil {
		_ = k.conn.Close() // the container goes in any case
	}
	argv := k.daemon.docker("rm", "--force", k.id)
	_, err := k.daemon.shop.do(ctx, k.daemon.shop.command(argv[0], argv[1:]...))
	if err != nil && strings.Contains(err.Error(), "is already in progress") { // its Python has ended with the connection
		err = nil
	}
	if err != nil {
		return fmt.Errorf("remove container: %w", err)
	}
	return nil
}
