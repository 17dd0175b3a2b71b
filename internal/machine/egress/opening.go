package egress

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"time"
)

// What the first bytes of a connection are of.
const (
	speaksOtherwise = iota
	speaksTLS
	speaksHTTP
	speaksLater // the far side spoke first
)

// opening keeps the first bytes that a session sends until it is known what they are, and then is the whole of what it sends.
type opening struct {
	from io.Reader
	kept []byte
	err  error // of reading from
	// known is where the one who looks at the first bytes says that they have done so; nil when nobody does.
	known <-chan int
}

// Read returns what was kept, and then what follows.
func (o *opening) Read(b []byte) (int, error) {
	if o.known != nil {
		<-o.known
		o.known = nil
	}
	if len(o.kept) > 0 {
		n := copy(b, o.kept)
		o.kept = o.kept[n:]
		return n, nil
	}
	if o.err != nil {
		return 0, o.err
	}
	return o.from.Read(b)
}

// more reads some more bytes to keep.
func (o *opening) more() bool {
	if o.err != nil {
		return false
	}
	b := make([]byte, 4096)
	n, err := o.from.Read(b)
	o.kept, o.err = append(o.kept, b[:n]...), err
	return n > 0
}

// kind reads until it is known what the first bytes are.
func (o *opening) kind() int {
	for {
		if kind, known := kindOfBytes(o.kept); known {
			return kind
		}
		if !o.more() {
			return speaksOtherwise
		}
	}
}

// kindOfBytes says what bytes are the beginning of, once that can be said.
func kindOfBytes(b []byte) (kind int, known bool) {
	const handshake, versionThree = 22, 3
	if len(b) == 0 {
		return speaksOtherwise, false
	}
	if b[0] == handshake {
		if len(b) < 2 {
			return speaksOtherwise, false
		}
		if b[1] == versionThree {
			return speaksTLS, true
		}
		return speaksOtherwise, true
	}
	for i, c := range b { // a method, as "GET /" or "PRI *", or a longer one of somebody's own
		switch {
		case c == ' ' && i > 0:
			return speaksHTTP, true
		case (c < 'A' || c > 'Z') && c != '-' && c != '_' || i > 32:
			return speaksOtherwise, true
		}
	}
	return speaksOtherwise, false
}

// hello is what a TLS client says first.
type hello struct {
	name   string
	hidden bool // with Encrypted Client Hello, the name that counts is another
}

var errHello = errors.New("the hello was read")

// readHello reads a ClientHello, keeping its bytes.
func (o *opening) readHello() (h hello, err error) {
	const encryptedClientHello = 0xfe0d // RFC 9849
	seen := false
	server := tls.Server(&recorded{o: o, kept: bytes.NewReader(o.kept)}, &tls.Config{
		MinVersion: tls.VersionTLS10, // whether that is good enough is for the two sides
		GetConfigForClient: func(c *tls.ClientHelloInfo) (*tls.Config, error) {
			h = hello{name: strings.ToLower(strings.TrimSuffix(c.ServerName, ".")), hidden: slices.Contains(c.Extensions, encryptedClientHello)}
			seen = true
			return nil, errHello
		},
	})
	if err = server.Handshake(); seen {
		err = nil
	}
	return h, err
}

// mostHello bounds the bytes of a hello: a record of TLS has at most 16 kB, and a hello needs few of them.
const mostHello = 64 << 10

// recorded reads what is kept, and keeps what it reads beyond. What the TLS library would send goes nowhere.
type recorded struct {
	o    *opening
	kept *bytes.Reader
}

func (r *recorded) Read(b []byte) (int, error) {
	if r.kept.Len() == 0 {
		before := len(r.o.kept)
		if before > mostHello || !r.o.more() {
			return 0, io.ErrUnexpectedEOF
		}
		r.kept.Reset(slices.Clone(r.o.kept[before:]))
	}
	return r.kept.Read(b)
}

func (*recorded) Write(b []byte) (int, error)      { return len(b), nil }
func (*recorded) Close() error                     { return nil }
func (*recorded) LocalAddr() net.Addr              { return nil }
func (*recorded) RemoteAddr() net.Addr             { return nil }
func (*recorded) SetDeadline(time.Time) error      { return nil }
func (*recorded) SetReadDeadline(time.Time) error  { return nil }
func (*recorded) SetWriteDeadline(time.Time) error { return nil }
