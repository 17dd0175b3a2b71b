package live

import (
	"bytes"
	"io"
	"sync"
)

// What a person types comes back from the terminal, one key after the other. A follower passes such an echo on at once: nothing of it is a secret to the one who typed it, and holding
// it back, as what may be the beginning of a secret, would be felt at each key.

const (
	longestEcho = 4  // bytes of a key: a character of UTF-8
	keptTyped   = 64 // bytes that were typed last
)

// echoes knows the followers of processes, by the process. It is safe for concurrent use.
type echoes struct {
	mu        sync.Mutex
	followers map[string][]*echo
}

// follow returns what a new follower of a process expects to come back, and a function that ends it.
func (all *echoes) follow(process string) (_ *echo, leave func()) {
	e := &echo{}
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.followers == nil {
		all.followers = map[string][]*echo{}
	}
	all.followers[process] = append(all.followers[process], e)
	return e, func() {
		all.mu.Lock()
		defer all.mu.Unlock()
		var others []*echo
		for _, other := range all.followers[process] {
			if other != e {
				others = append(others, other)
			}
		}
		if all.followers[process] = others; len(others) == 0 {
			delete(all.followers, process)
		}
	}
}

// typed notes what is written to a process.
func (all *echoes) typed(process string, keys []byte) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, e := range all.followers[process] {
		e.expect(keys)
	}
}

// typing is a reader of what is written to a process, each part of which is noted before anybody has it.
type typing struct {
	io.Reader
	note func([]byte)
}

func (t typing) Read(p []byte) (int, error) {
	n, err := t.Reader.Read(p)
	if n > 0 && n <= longestEcho { // more at once was pasted, or comes from a program
		t.note(p[:n])
	}
	return n, err
}

// echo is what one follower of a terminal expects to come back. It is safe for concurrent use.
type echo struct {
	mu    sync.Mutex
	typed []byte
}

func (e *echo) expect(keys []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.typed = append(e.typed, keys...)
	if more := len(e.typed) - keptTyped; more > 0 {
		e.typed = bytes.Clone(e.typed[more:])
	}
}

// came says whether output is what was typed and has not come back yet. What was typed before it does not come back any more.
func (e *echo) came(output []byte) bool {
	if e == nil || len(output) == 0 || len(output) > longestEcho {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	at := bytes.Index(e.typed, output)
	if at < 0 {
		return false
	}
	e.typed = e.typed[at+len(output):]
	return true
}
