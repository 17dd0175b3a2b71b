package pgtest

import (
	"bytes"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Lossy is a way to a server on which the answer to a commit can be lost: the server commits, and the connection ends before it can say so.
type Lossy struct {
	Address string // of the database, over this way
	Lost    atomic.Int64
	every   atomic.Int64
	commits atomic.Int64
}

// LoseEvery has the answer of every nth commit from now on be lost; 0 has none.
func (l *Lossy) LoseEvery(n int) {
	l.commits.Store(0)
	l.every.Store(int64(n))
}

func (l *Lossy) loses() bool {
	every := l.every.Load()
	if every == 0 || l.commits.Add(1)%every != 0 {
		return false
	}
	l.Lost.Add(1)
	return true
}

// Over returns a way to the database with that address, which ends with the test.
func Over(t testing.TB, database string) *Lossy {
	t.Helper()
	at, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	network, server := "tcp", at.Host
	if folder := at.Query().Get("host"); strings.HasPrefix(folder, "/") {
		network, server = "unix", filepath.Join(folder, ".s.PGSQL.5432")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &Lossy{}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { l.carry(t, client, network, server) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		running.Wait()
	})
	at.Host = listener.Addr().String()
	query := at.Query()
	query.Del("host")
	query.Set("sslmode", "disable")
	at.RawQuery = query.Encode()
	l.Address = at.String()
	return l
}

// carry passes on what either side says, until one is gone or an answer is lost.
func (l *Lossy) carry(t testing.TB, client net.Conn, network, address string) {
	server, err := net.Dial(network, address)
	if err != nil {
		t.Errorf("reach PostgreSQL: %v", err)
		_ = client.Close()
		return
	}
	var losing atomic.Bool
	var both sync.WaitGroup
	both.Go(func() {
		defer func() { _ = server.Close() }()
		each(client, func(said []byte) error {
			if bytes.HasPrefix(said, []byte("Q")) && bytes.Contains(bytes.ToLower(said), []byte("commit\x00")) && l.loses() {
				losing.Store(true)
			}
			_, err := server.Write(said)
			return err
		})
	})
	both.Go(func() {
		defer func() { _ = client.Close() }()
		each(server, func(said []byte) error {
			if losing.Load() && bytes.Contains(said, []byte("COMMIT\x00")) {
				return net.ErrClosed
			}
			_, err := client.Write(said)
			return err
		})
	})
	both.Wait()
}

// each reads until the end, or until there is an error.
func each(from net.Conn, do func(said []byte) error) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && do(buffer[:n]) != nil || err != nil {
			return
		}
	}
}
