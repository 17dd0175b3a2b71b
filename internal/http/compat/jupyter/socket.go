package jupyter

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"cove/internal/core/problem"
	"cove/internal/http/bodybudget"
	"cove/internal/server/auth"
)

// What a WebSocket may take.
const (
	socketPing  = 30 * time.Second // between pings
	socketLook  = 2                // pings between looks at the key
	slowest     = time.Minute      // for the answer to a ping, and for taking a message; a client that takes longer is gone
	socketRate  = 50               // messages in a second; what was not used in four seconds may come at once
	outRoom     = 8 << 20          // bytes that wait to be sent
	outMost     = 1024             // messages that wait to be sent, more than are kept for a client that went away
	shortFrame  = 64 << 10         // bytes of a binary frame; larger ones take of framesRoom while they come
	framesRoom  = 8 * longestFrame
	mostPlaces  = 1024 // connections of a project
	longestName = 256  // bytes of a client's name for itself
)

var (
	errReplaced = errors.New("the same client has connected anew")
	errSlow     = errors.New("the client does not read what is sent")
)

// socket is one client's connection to a kernel.
type socket struct {
	s      *server
	k      *shared
	client string // its name for itself, by which it is known when it comes again
	conn   *websocket.Conn
	binary bool            // the subprotocol
	reads  context.Context // the request's: a connection whose reading is canceled cannot be told why it ends
	ctx    context.Context
	end    context.CancelCauseFunc
	rate   *rate.Limiter
	out    chan frame // without data at the end
	room   *semaphore.Weighted
	over   sync.Once
}

// connect takes over the connection of GET /jupyter/api/kernels/{id}/channels.
func (s *server) connect(c *call) error {
	p, err := s.here(c)
	if err != nil {
		return err
	}
	if !strings.EqualFold(c.Header.Get("Upgrade"), "websocket") {
		return problem.New(problem.UpgradeNeeded, "this address is a WebSocket").WithHint("connect with a client of WebSockets")
	}
	client := c.URL.Query().Get("session_id")
	if client == "" || len(client) > longestName {
		client = rand.Text()
	}
	leave, err := s.count(c.who.Project)
	if err != nil {
		return err
	}
	defer leave()
	k := s.join(p)
	defer s.leave(k)
	// Whose page calls was looked at when the request came in, as for every other request.
	conn, err := websocket.Accept(c.w, c.Request, &websocket.AcceptOptions{InsecureSkipVerify: true, Subprotocols: []string{binaryProtocol}, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return nil // Accept answered
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(longestFrame)
	auth.LeavePlace(c.Context()) // connections are bounded by count
	ctx, end := context.WithCancelCause(c.Context())
	defer end(nil)
	one := &socket{s: s, k: k, client: client, conn: conn, reads: c.Context(), binary: conn.Subprotocol() == binaryProtocol, ctx: ctx, end: end,
		rate: rate.NewLimiter(socketRate, 4*socketRate), out: make(chan frame, outMost), room: semaphore.NewWeighted(outRoom)}
	if err := k.attach(one); err != nil {
		_ = conn.Close(websocket.StatusTryAgainLater, problem.Of(err).Message)
		return nil
	}
	defer k.detach(one)
	var both sync.WaitGroup
	both.Go(one.watch)
	both.Go(one.listen)
	one.write()
	end(nil)
	_ = conn.CloseNow()
	both.Wait()
	return nil
}

// count counts a connection of a project.
func (s *server) count(project string) (leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.connections[project] >= mostPlaces {
		return nil, problem.New(problem.TooManyRequests, "the project has as many connections to kernels and terminals as it may").WithHint("end some of them")
	}
	s.connections[project]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.connections[project]--; s.connections[project] == 0 {
			delete(s.connections, project)
		}
	}, nil
}

// send has a message written. It waits while much is waiting, and gives up on a client that does not read.
func (c *socket) send(m *message) {
	data, err := m.encode(c.binary)
	if err != nil {
		c.s.Log.ErrorContext(c.ctx, "a message could not be written down", "type", m.header.Type, "error", err)
		return
	}
	ctx, cancel := context.WithTimeout(c.ctx, slowest)
	defer cancel()
	if c.room.Acquire(ctx, weight(data)) != nil {
		c.end(errSlow)
		return
	}
	select {
	case c.out <- frame{data, c.binary || len(m.buffers) > 0}:
	case <-ctx.Done():
		c.end(errSlow)
	}
}

// frame is a message that waits to be sent.
type frame struct {
	data   []byte
	binary bool
}

func weight(data []byte) int64 { return min(int64(len(data)), outRoom) }

// finish ends the connection after what waits to be sent.
func (c *socket) finish() {
	c.over.Do(func() {
		select {
		case c.out <- frame{}:
		default:
			c.end(errSlow)
		}
	})
}

func (c *socket) write() {
	for {
		select {
		case <-c.ctx.Done():
			_ = c.conn.Close(closing(context.Cause(c.ctx)))
			return
		case one := <-c.out:
			if one.data == nil {
				_ = c.conn.Close(websocket.StatusNormalClosure, "the kernel has ended, or the server is stopping")
				return
			}
			kind := websocket.MessageText
			if one.binary {
				kind = websocket.MessageBinary
			}
			ctx, cancel := context.WithTimeout(c.ctx, slowest)
			err := c.conn.Write(ctx, kind, one.data)
			cancel()
			c.room.Release(weight(one.data))
			if err != nil {
				return
			}
		}
	}
}

// closing says why a connection ends, where the client can be told.
func closing(why error) (websocket.StatusCode, string) {
	switch {
	case errors.Is(why, errMessage):
		return websocket.StatusInvalidFramePayloadData, why.Error()
	case problem.Of(why) != nil && problem.Of(why).Kind == problem.Denied:
		return websocket.StatusPolicyViolation, "the key is not valid any more"
	case errors.Is(why, errReplaced), errors.Is(why, errSlow):
		return websocket.StatusNormalClosure, why.Error()
	}
	return websocket.StatusGoingAway, ""
}

// watch finds out whether the client is there and its key holds, and ends the connection when the server stops and nothing runs.
func (c *socket) watch() {
	every := time.NewTicker(socketPing)
	defer every.Stop()
	stopping := c.s.Stopping
	for n := 1; ; n++ {
		select {
		case <-c.ctx.Done():
			return
		case <-stopping:
			stopping = nil
			c.k.quit()
			continue
		case <-every.C:
		}
		ctx, cancel := context.WithTimeout(c.ctx, slowest)
		err := c.conn.Ping(ctx)
		cancel()
		if err == nil && n%socketLook == 0 {
			if _, err = auth.Again(c.ctx); err != nil && problem.Of(err).Kind != problem.Denied {
				err = nil
			}
		}
		if err != nil {
			c.end(err)
			return
		}
	}
}

// listen takes the client's messages.
func (c *socket) listen() {
	for {
		if c.rate.Wait(c.ctx) != nil {
			return
		}
		ctx, release := bodybudget.Another(c.reads)
		m, err := c.read(ctx)
		if _, refused := errors.AsType[*problem.Error](err); refused {
			c.s.Log.WarnContext(ctx, "a client's message was not taken", "error", err) // it has no id that could be answered
			release()
			c.end(errMessage)
			return
		}
		if err != nil {
			release()
			c.end(err)
			return
		}
		c.k.take(ctx, c, m, release)
	}
}

// read returns the next message. What it takes in memory is the context's.
func (c *socket) read(ctx context.Context) (received, error) {
	kind, r, err := c.conn.Reader(ctx)
	if err != nil {
		return received{}, err
	}
	if kind == websocket.MessageText {
		text, err := bodybudget.Read(ctx, r)
		if err != nil {
			return received{}, err
		}
		return parseText(text)
	}
	frame, done, err := c.readFrame(ctx, r)
	if err != nil {
		return received{}, err
	}
	defer done()
	if !c.binary {
		text, buffers, err := parseBinary(frame)
		if err != nil {
			return received{}, err
		}
		counts, err := counted(ctx, text)
		if err != nil {
			return received{}, err
		}
		m, err := parseText(counts)
		return m.with(ctx, buffers, err)
	}
	channel, parts, err := parseParts(frame)
	if err != nil {
		return received{}, err
	}
	head, meta, content := parts[0], parts[2], parts[3]
	if len(head) > longestHeader {
		return received{}, errMessage
	}
	for _, part := range []*[]byte{&head, &meta, &content} {
		if *part, err = counted(ctx, *part); err != nil {
			return received{}, err
		}
	}
	m, err := receivedOf(channel, head, meta, content)
	return m.with(ctx, parts[4:], err)
}

// with returns a message with its buffers, which comms alone have a use for.
func (m received) with(ctx context.Context, buffers [][]byte, err error) (received, error) {
	if err == nil && isComm(m.kind) && len(buffers) > 0 {
		m.buffers, err = counted(ctx, asBuffers(buffers))
	}
	return m, err
}

// counted returns a copy of JSON that counts for the context's request.
func counted(ctx context.Context, text []byte) (json.RawMessage, error) {
	return bodybudget.Read(ctx, strings.NewReader(string(text)))
}

// readFrame reads a binary frame, of which few large ones are read at a time.
func (c *socket) readFrame(ctx context.Context, r io.Reader) (frame []byte, done func(), err error) {
	done = func() {}
	frame, err = io.ReadAll(io.LimitReader(r, shortFrame))
	if err != nil || len(frame) < shortFrame {
		return frame, done, err
	}
	patience, cancel := context.WithTimeout(ctx, slowest)
	defer cancel()
	if err = c.s.frames.Acquire(patience, longestFrame); err != nil {
		return nil, done, err
	}
	stop := context.AfterFunc(patience, func() { c.end(errSlow) })
	defer stop()
	rest, err := io.ReadAll(r)
	if err != nil {
		c.s.frames.Release(longestFrame)
		return nil, done, err
	}
	return append(frame, rest...), func() { c.s.frames.Release(longestFrame) }, nil
}
