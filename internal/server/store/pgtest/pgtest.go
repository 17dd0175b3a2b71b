// Package pgtest gives tests a PostgreSQL of their own: a cluster without durability on a unix socket, made from the programs of the
// system (initdb and postgres on PATH or in Debian's folder), one for each test process, and a new database in it for each test.
// COVE_TEST_POSTGRES names a server to use instead (postgres://user@host/postgres), whose user may make databases.
package pgtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver

	"cove/internal/core/ident"
	"cove/internal/testkit/testneeds"
)

// Variable is the environment variable that names a server.
const Variable = "COVE_TEST_POSTGRES"

// Cluster is a running PostgreSQL.
type Cluster struct {
	folder  string
	socket  string // its folder
	program string // of postgres
	as      *syscall.Credential

	mu      sync.Mutex
	running *process
}

// Database returns the address of a new, empty database that is dropped when the test ends. Tests that stop the server take a cluster of their own from New.
// It skips the test, saying so, where there is no PostgreSQL.
func Database(t testing.TB) string {
	t.Helper()
	testneeds.Asked(t, testneeds.PostgreSQL)
	if address := os.Getenv(Variable); address != "" {
		return create(t, address)
	}
	c, err := shared()
	if err != nil {
		skipOrFail(t, err)
	}
	return create(t, c.address("postgres"))
}

// shared is the cluster of this process. It ends with the process: nobody knows which test is the last.
var shared = sync.OnceValues(start)

// New returns a cluster for this test alone, which ends with it.
func New(t testing.TB) *Cluster {
	t.Helper()
	testneeds.Asked(t, testneeds.PostgreSQL)
	c, err := start()
	if err != nil {
		skipOrFail(t, err)
	}
	t.Cleanup(func() {
		c.Stop(t)
		_ = os.RemoveAll(c.data())
	})
	return c
}

// Database returns the address of a new database in the cluster.
func (c *Cluster) Database(t testing.TB) string {
	t.Helper()
	return create(t, c.address("postgres"))
}

// Stop ends the server at once, as a crash would.
func (c *Cluster) Stop(t testing.TB) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running == nil {
		return
	}
	if err := c.running.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Errorf("stop PostgreSQL: %v", err)
	}
	<-c.running.ended
	c.running = nil
}

// Freeze has the server stand still, with all its processes, until Thaw or the test's end: it takes connections and answers nothing.
func (c *Cluster) Freeze(t testing.TB) {
	t.Helper()
	t.Cleanup(func() { c.signal(t, syscall.SIGCONT) })
	c.signal(t, syscall.SIGSTOP)
}

// Thaw has the server go on.
func (c *Cluster) Thaw(t testing.TB) {
	t.Helper()
	c.signal(t, syscall.SIGCONT)
}

// signal reaches the server first, which then makes no more processes, and those that it made.
func (c *Cluster) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running == nil {
		return
	}
	server := c.running.cmd.Process.Pid
	if err := c.running.cmd.Process.Signal(s); err != nil {
		t.Errorf("signal PostgreSQL: %v", err)
	}
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", server))
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for child := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(child); err == nil {
				_ = syscall.Kill(pid, s) // it may be gone
			}
		}
	}
}

// Start starts the server again and returns when it answers.
func (c *Cluster) Start(t testing.TB) {
	t.Helper()
	if err := c.start(); err != nil {
		t.Fatalf("start PostgreSQL: %v", err)
	}
}

// errAbsent says that there is no PostgreSQL here.
var errAbsent = errors.New("there is no PostgreSQL here: neither initdb and postgres on PATH or in /usr/lib/postgresql nor " + Variable)

func skipOrFail(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, errAbsent) {
		testneeds.Absent(t, testneeds.PostgreSQL, err)
	}
	t.Fatal(err)
}

func program(name string) (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(found) > 0 {
		slices.Sort(found)
		return found[len(found)-1], nil
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", errAbsent
	}
	return path, nil
}

// credential is another user than root, which PostgreSQL refuses to run as.
func credential() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return nil, err
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, err
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is neither a user postgres nor nobody")
}

func start() (*Cluster, error) {
	initdb, err := program("initdb")
	if err != nil {
		return nil, err
	}
	postgres, err := program("postgres")
	if err != nil {
		return nil, err
	}
	as, err := credential()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "cove-pgtest-")
	if err != nil {
		return nil, err
	}
	if err := removeAfterwards(folder); err != nil {
		return nil, err
	}
	if as != nil {
		if err := os.Chown(folder, int(as.Uid), int(as.Gid)); err != nil {
			return nil, err
		}
	}
	c := &Cluster{folder: folder, socket: folder, program: postgres, as: as}
	made := c.command(initdb, "--no-sync", "--auth=trust", "--username=cove", "--encoding=UTF8", "--locale=C.UTF-8", "--pgdata="+c.data())
	if out, err := made.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	return c, c.start()
}

// removeAfterwards has a shell remove the folder when this process is gone, however it ends: its end closes the pipe that the shell reads.
func removeAfterwards(folder string) error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = read.Close() }()
	cmd := exec.Command("/bin/sh", "-c", `read nothing; sleep 1; rm -rf "$1"`, "sh", folder)
	cmd.Stdin = read
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		_ = write.Close()
		return err
	}
	go func() {
		_ = cmd.Wait()
		runtime.KeepAlive(write)
	}()
	return nil
}

func (c *Cluster) data() string { return filepath.Join(c.folder, "data") }

func (c *Cluster) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = c.folder
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.as, Setpgid: true}
	return cmd
}

func (c *Cluster) start() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running != nil {
		return nil
	}
	log, err := os.OpenFile(filepath.Join(c.folder, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	// The processes of a crashed server may still hold its shared memory for a moment, so starting is tried again.
	for deadline := time.Now().Add(30 * time.Second); ; {
		cmd := c.command(c.program, "-D", c.data(), "-k", c.socket, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=200",
			"-c", "shared_buffers=32MB", "-c", "autovacuum=off", "-c", "full_page_writes=off", "-c", "wal_level=minimal", "-c", "max_wal_senders=0")
		cmd.Stdout, cmd.Stderr = log, log
		p, err := begin(cmd)
		if err != nil {
			return err
		}
		if c.answers(p, deadline) {
			c.running = p
			return nil
		}
		if time.Now().After(deadline) {
			_ = cmd.Process.Kill()
			text, _ := os.ReadFile(filepath.Join(c.folder, "log"))
			return fmt.Errorf("PostgreSQL does not answer: %s", text)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// process is a server that runs.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// begin starts a process that dies with this one. The kernel means the thread that started it, so that one stays.
func begin(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, ended: make(chan struct{})}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGQUIT
	begun := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.ended)
		err := cmd.Start()
		begun <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	return p, <-begun
}

// answers waits until the server can be asked, and says whether that came to be.
func (c *Cluster) answers(p *process, deadline time.Time) bool {
	db, err := sql.Open("pgx", c.address("postgres"))
	if err != nil {
		return false
	}
	defer func() { _ = db.Close() }()
	for time.Now().Before(deadline) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		err := db.PingContext(ctx)
		cancel()
		if err == nil {
			return true
		}
		select {
		case <-p.ended:
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
	return false
}

func (c *Cluster) address(database string) string {
	return (&url.URL{Scheme: "postgres", User: url.User("cove"), Path: "/" + database, RawQuery: url.Values{"host": {c.socket}}.Encode()}).String()
}

// create makes a database on the server with that address.
func create(t testing.TB, server string) string {
	t.Helper()
	at, err := url.Parse(server)
	if err != nil {
		t.Fatalf("%s is not an address: %v", Variable, err)
	}
	db, err := sql.Open("pgx", server)
	if err != nil {
		t.Fatal(err)
	}
	name := ident.New("cove_test")
	if _, err := db.ExecContext(context.Background(), "CREATE DATABASE "+name+" TEMPLATE template0 ENCODING 'UTF8'"); err != nil {
		_ = db.Close()
		t.Fatalf("make a database: %v", err)
	}
	t.Cleanup(func() {
		// A server that the test has stopped goes with all its databases.
		_, _ = db.ExecContext(context.Background(), "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
		_ = db.Close()
	})
	at.Path = "/" + name
	return at.String()
}
