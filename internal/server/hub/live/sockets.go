package live

import (
	"sync"
	"syscall"

	"cove/internal/core/problem"
)

// Connections between sessions and the world take descriptors of this process, and memory: those to ports of sessions, and those that programs of sessions make.
const (
	mostSockets    = 8192 // of the whole server
	fewestSockets  = 64   // of the whole server, on a machine that lets it open hardly any files
	sessionSockets = 1024
)

// sockets counts the open connections of sessions. One project gets at most half of all.
type sockets struct {
	most int // of the whole server

	mu  sync.Mutex
	all int
	of  map[string]int // by session and by project, whose ids differ
}

// newSockets bounds connections by the files that this process may open: a quarter of them, as a connection through the server takes up to two.
func newSockets() *sockets {
	most := mostSockets
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err == nil {
		most = int(min(mostSockets, max(fewestSockets, files.Cur/4)))
	}
	return &sockets{most: most, of: map[string]int{}}
}

// enter counts a connection of a session's and its project's, until leave is called, once.
func (c *sockets) enter(session, project string) (leave func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.of[session] >= min(sessionSockets, c.most/2):
		return nil, problem.New(problem.Overloaded, "the session has as many connections as it may have at a time").WithHint("close some")
	case c.of[project] >= c.most/2:
		return nil, problem.New(problem.Overloaded, "the project's sessions have as many connections as they may have at a time").WithHint("close some")
	case c.all >= c.most:
		return nil, problem.New(problem.Overloaded, "the sessions of this server have as many connections as they may have at a time").
			WithHint("try again later; the server may open more where its limit of open files is higher")
	}
	c.count(session, project, 1)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.count(session, project, -1)
	}, nil
}

func (c *sockets) count(session, project string, n int) {
	c.all += n
	for _, of := range []string{session, project} {
		if c.of[of] += n; c.of[of] == 0 {
			delete(c.of, of)
		}
	}
}
