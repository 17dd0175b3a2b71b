package daytona

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"cove/internal/server/builder"
)

// Bounds of the logs of builds.
const (
	mostLogBytes = 4 << 20
	mostLogs     = 200              // of a process, that are kept when their builds have ended
	logMemory    = 10 * time.Minute // for how long
)

// buildLog is what a build says, for those who follow it.
type buildLog struct {
	mu    sync.Mutex
	text  []byte
	full  bool
	more  chan struct{} // is closed when there is more, or the end
	ended time.Time
}

// say adds a line. Of a log that is too long the rest is left out.
func (l *buildLog) say(said builder.Said) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.full {
		return
	}
	line := said.Text
	if l.full = len(l.text)+len(line) >= mostLogBytes; l.full {
		line = "the log is too long: the rest is left out"
	}
	l.text = append(append(l.text, line...), '\n')
	l.wake()
}

func (l *buildLog) wake() {
	close(l.more)
	l.more = make(chan struct{})
}

func (l *buildLog) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = time.Now()
	l.wake()
}

// from returns what there is after a place, and whether more may come.
func (l *buildLog) from(place int) (text []byte, more <-chan struct{}, ended time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text[place:], l.more, l.ended // what is written never changes
}

// follow writes the log, and what comes until the build has ended.
func (l *buildLog) follow(ctx context.Context, w io.Writer, flush func(), further bool) {
	for place := 0; ; {
		text, more, ended := l.from(place)
		if _, err := w.Write(text); err != nil {
			return
		}
		place += len(text)
		flush()
		if !further || !ended.IsZero() {
			return
		}
		select {
		case <-more:
		case <-ctx.Done():
			return
		}
	}
}

// buildLogs are those of this process's builds, by the session that is built.
type buildLogs struct {
	mu  sync.Mutex
	all map[string]*buildLog
}

// begin makes the log of a build. Those that ended long ago are forgotten, and where there are many the oldest.
func (b *buildLogs) begin(session string) *buildLog {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all == nil {
		b.all = map[string]*buildLog{}
	}
	oldest, at, count := "", time.Time{}, 0
	for id, l := range b.all {
		_, _, ended := l.from(0)
		switch {
		case ended.IsZero():
			continue
		case time.Since(ended) > logMemory:
			delete(b.all, id)
			continue
		}
		if count++; oldest == "" || ended.Before(at) {
			oldest, at = id, ended
		}
	}
	if count >= mostLogs {
		delete(b.all, oldest)
	}
	l := &buildLog{more: make(chan struct{})}
	b.all[session] = l
	return l
}

// of returns the log of a session's build; nil: this process knows none.
func (b *buildLogs) of(session string) *buildLog {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all[session]
}

// runs says whether a session is being built.
func (b *buildLogs) runs(session string) bool {
	l := b.of(session)
	if l == nil {
		return false
	}
	_, _, ended := l.from(0)
	return ended.IsZero()
}

// noLog is what clients are told of what was not built, or long ago.
const noLog = "there is no log of a build: nothing was built for it, because the image was there, or that was some time ago or before the server was started"

// sendLog answers with the log of a session's build, as it comes where the client follows it.
func (s *Server) sendLog(c *call, session string) error {
	l := s.logs.of(session)
	if l == nil {
		return &fault{http.StatusNotFound, noLog}
	}
	c.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	c.w.Header().Set("Cache-Control", "no-store")
	c.w.WriteHeader(http.StatusOK)
	to := http.NewResponseController(c.w)
	l.follow(c.Context(), c.w, func() { _ = to.Flush() }, c.URL.Query().Get("follow") == "true")
	return nil
}

func (s *Server) buildLog(c *call) error {
	b, err := s.of(c)
	if err != nil {
		return err
	}
	return s.sendLog(c, b.id)
}

func (s *Server) snapshotLog(c *call) error {
	row, _, err := s.snapshotOf(c)
	if err != nil {
		return err
	}
	return s.sendLog(c, row.ID)
}

// buildLogURL tells where the log of a build is. Clients add "?follow=true", and the headers of their other requests.
func (s *Server) buildLogURL(c *call) error {
	b, err := s.of(c)
	if err == nil {
		reply(c.w, http.StatusOK, map[string]string{"url": origin(c.Request) + Prefix + "/sandbox/" + sandboxID(b.id) + "/build-logs"})
	}
	return err
}

func (s *Server) snapshotLogURL(c *call) error {
	row, _, err := s.snapshotOf(c)
	if err == nil {
		reply(c.w, http.StatusOK, map[string]string{"url": origin(c.Request) + Prefix + "/snapshots/" + sandboxID(row.ID) + "/build-logs"})
	}
	return err
}
