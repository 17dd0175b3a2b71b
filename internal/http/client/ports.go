package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/coder/websocket"

	"cove/internal/http/api"
	"cove/internal/machine/process"
)

// Ports lists the TCP ports at which programs of a session listen.
func (c *Client) Ports(ctx context.Context, session string) ([]process.Port, error) {
	out, err := get[api.List[api.SessionPort]](ctx, c, "/sessions"+join(session, "ports"), nil)
	var all []process.Port
	for _, p := range out.Items {
		all = append(all, process.Port{Number: p.Port, Address: p.Address})
	}
	return all, err
}

// PortConn is a connection to a port of a session. Read returns io.EOF at the end of what the program has to say.
type PortConn struct {
	ctx    context.Context
	cancel context.CancelFunc
	conn   *websocket.Conn
	piece  []byte
}

// largestPiece bounds a message of the server.
const largestPiece = 1 << 20

// DialPort connects to a port at which a program of a session listens. ctx bounds the connection, too.
func (c *Client) DialPort(ctx context.Context, session string, port int) (*PortConn, error) {
	if c.bad != nil {
		return nil, c.bad
	}
	header := http.Header{}
	if c.key != "" {
		header.Set("Authorization", "Bearer "+c.key)
	}
	conn, answer, err := websocket.Dial(ctx, c.base+"/sessions"+join(session, "ports", strconv.Itoa(port), "connect"), //nolint:bodyclose // the library does
		&websocket.DialOptions{HTTPClient: c.http, HTTPHeader: header, CompressionMode: websocket.CompressionDisabled})
	switch {
	case err != nil && answer != nil && answer.StatusCode >= http.StatusBadRequest:
		return nil, c.problemOf(answer)
	case err != nil:
		return nil, c.unreachable(ctx, err)
	}
	conn.SetReadLimit(largestPiece)
	ctx, cancel := context.WithCancel(ctx)
	return &PortConn{ctx: ctx, cancel: cancel, conn: conn}, nil
}

func (p *PortConn) Read(b []byte) (int, error) {
	if len(p.piece) == 0 {
		_, piece, err := p.conn.Read(p.ctx)
		if err != nil {
			if websocket.CloseStatus(err) == websocket.StatusNormalClosure {
				err = io.EOF
			}
			return 0, err
		}
		if len(piece) == 0 {
			return 0, io.EOF
		}
		p.piece = piece
	}
	n := copy(b, p.piece)
	p.piece = p.piece[n:]
	return n, nil
}

func (p *PortConn) Write(b []byte) (int, error) {
	for n := 0; n < len(b); {
		m := min(len(b)-n, largestPiece/2)
		if err := p.conn.Write(p.ctx, websocket.MessageBinary, b[n:n+m]); err != nil {
			return n, err
		}
		n += m
	}
	return len(b), nil
}

// CloseWrite says that nothing more is written.
func (p *PortConn) CloseWrite() error { return p.conn.Write(p.ctx, websocket.MessageBinary, nil) }

// Close ends both directions.
func (p *PortConn) Close() error {
	defer p.cancel()
	return errors.Join(p.conn.CloseNow())
}
