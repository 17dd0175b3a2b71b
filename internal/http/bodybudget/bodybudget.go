// Package bodybudget bounds what a request's body costs in memory, before anybody decodes it.
//
// A body of 28 MiB can be one picture, or nine million empty objects that take a hundred times their length. So two things are bounded: what one
// JSON text may be made of, which is counted byte by byte while it arrives (Read), and how much of the server's memory all bodies that were read
// and not dropped yet, and what was decoded from them, may take at the same time, for each key and for the server (Budget, Share).
//
// The server puts a request's Share into its context; a surface reads with Read; code that keeps what was read for longer than the handler runs, as
// a turn does, holds the share with Hold. Where a context has no share, only the text is bounded.
package bodybudget

import (
	"bytes"
	"context"
	"errors"
	"io"

	"cove/internal/core/problem"
)

const (
	// mostValues bounds the values of one text, names included: two hundred times the items that a conversation of OpenAI's may bring would be more.
	mostValues = 200_000
	// mostDepth bounds the objects and lists within each other. JSON Schemas, the deepest texts that are sent, have some dozens.
	mostDepth = 100
	// longestName bounds an object's names, in bytes. Nothing that is a name to a person or a program is as long.
	longestName = 8 << 10

	// What decoding takes, measured with requests of pictures, of long texts and of very many short values: some copies of the text, the buffers
	// that they grew in, and a slice header, a map's slot or both for each value.
	copiesOfText = 5
	bytesOfValue = 300

	firstPiece = 32 << 10
)

// counter counts what a JSON text is made of, without checking that it is valid: decoding does that.
type counter struct {
	values, depth int
	text          int  // bytes of the string that is open, or was read last
	inside        bool // a string
	escaped       bool // the byte before was a backslash
}

func (c *counter) write(p []byte) error {
	for len(p) > 0 {
		if c.inside {
			p = p[c.string(p):]
			continue
		}
		b := p[0]
		p = p[1:]
		switch b {
		case '"':
			c.inside, c.text = true, 0
		case '{', '[':
			c.values++
			if c.depth++; c.depth > mostDepth {
				return tooComplex("it nests objects and lists more than 100 deep")
			}
		case '}', ']':
			c.depth--
		case ',':
			c.values++
		case ':':
			c.values++
			if c.text > longestName {
				return tooComplex("a field's name is longer than 8 KiB")
			}
		}
		if c.values > mostValues {
			return tooComplex("it has more than 200000 fields and elements")
		}
	}
	return nil
}

// string takes what of p belongs to the open string and returns how many bytes that is.
func (c *counter) string(p []byte) int {
	if c.escaped {
		c.escaped = false
		c.text++
		return 1
	}
	at := bytes.IndexAny(p, `"\`)
	if at < 0 {
		c.text += len(p)
		return len(p)
	}
	c.text += at
	if p[at] == '"' {
		c.inside = false
	} else {
		c.escaped = true
	}
	return at + 1
}

func tooComplex(why string) *problem.Error {
	return problem.New(problem.RequestTooComplex, "the request's JSON is not taken: "+why).
		WithHint("send less at once, or data as a file")
}

// Read reads a JSON text to its end and counts what it is made of. The caller bounds the length of r. The memory that the text takes, and
// what decoding it is going to take, is the request's: see Share. Problems: request_too_complex, memory_busy, overloaded; errors of r are
// returned as they are. What r still has after a problem of the text is read and dropped, so that the client hears why.
func Read(ctx context.Context, r io.Reader) ([]byte, error) {
	s := from(ctx)
	var c counter
	text := make([]byte, 0, firstPiece)
	if err := s.take(ctx, firstPiece); err != nil {
		return nil, err
	}
	for {
		if len(text) == cap(text) {
			if err := s.take(ctx, int64(cap(text))); err != nil {
				return nil, drained(r, err)
			}
			text = append(make([]byte, 0, 2*cap(text)), text...)
		}
		n, err := r.Read(text[len(text):cap(text)])
		if wrong := c.write(text[len(text) : len(text)+n]); wrong != nil {
			s.giveBack(int64(cap(text)))
			return nil, drained(r, wrong)
		}
		text = text[:len(text)+n]
		if errors.Is(err, io.EOF) {
			return text, s.decoding(ctx, copiesOfText*int64(len(text))+bytesOfValue*int64(c.values))
		}
		if err != nil {
			return nil, err
		}
	}
}

// drained drops the rest of what the client sends: one that is still sending when the connection closes would not get to see the answer.
func drained(r io.Reader, why error) error {
	_, _ = io.Copy(io.Discard, r)
	return why
}
