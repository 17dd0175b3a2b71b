package toolbox

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"cove/internal/machine/process"
)

// The shell of a session writes frames into both of its streams: RS, a word that only this shell has, and what it says, up to a line end. So it is known what each command has
// written, and where it is in what is kept of the shell's output. Nothing of this is a boundary: a command that imitates a frame deceives its own client.

const (
	frameBegin = "\x1e"
	mostFrame  = 64 << 10 // bytes
)

// piece is something of a shell's output.
type piece struct {
	kind    pieceKind
	stream  process.Kind
	command string // its id
	data    []byte // of text, or the command's own text at its beginning
	status  int    // at its end
	at      int64  // where it begins in the output of the shell
}

type pieceKind int

const (
	pieceText pieceKind = iota
	pieceReady
	pieceBegin
	pieceDone
)

// shellReader parts what a shell writes into pieces.
type shellReader struct {
	mark    string
	streams map[process.Kind]*shellStream
}

type shellStream struct {
	held    []byte // what may be the beginning of a frame
	heldAt  int64
	command string // that runs; "": none
}

func (r *shellReader) stream(kind process.Kind) *shellStream {
	if r.streams == nil {
		r.streams = map[process.Kind]*shellStream{}
	}
	if r.streams[kind] == nil {
		r.streams[kind] = &shellStream{}
	}
	return r.streams[kind]
}

// add takes an event of the shell, and has tell take what it has.
func (r *shellReader) add(e process.Event, tell func(piece)) {
	if e.Kind == process.Gap {
		for _, s := range r.streams {
			s.held = nil
		}
		return
	}
	if e.Kind != process.Stdout && e.Kind != process.Stderr {
		return
	}
	s, begin := r.stream(e.Kind), []byte(frameBegin+r.mark+" ")
	rest, at := e.Data, e.At
	if len(s.held) > 0 {
		rest, at = slices.Concat(s.held, e.Data), s.heldAt
	}
	for {
		n := bytes.Index(rest, begin)
		if n < 0 {
			keep := process.Partial(rest, begin)
			r.text(s, e.Kind, rest[:len(rest)-keep], at, tell)
			s.held, s.heldAt = slices.Clone(rest[len(rest)-keep:]), at+int64(len(rest)-keep)
			return
		}
		r.text(s, e.Kind, rest[:n], at, tell)
		rest, at = rest[n:], at+int64(n)
		end := bytes.IndexByte(rest, '\n')
		if end < 0 && len(rest) < mostFrame {
			s.held, s.heldAt = slices.Clone(rest), at
			return
		}
		if end < 0 {
			end = len(rest) - 1
		}
		r.frame(s, e.Kind, string(rest[min(len(begin), end):end]), at, tell)
		rest, at = rest[end+1:], at+int64(end+1)
	}
}

func (r *shellReader) text(s *shellStream, kind process.Kind, data []byte, at int64, tell func(piece)) {
	if len(data) > 0 {
		tell(piece{kind: pieceText, stream: kind, command: s.command, data: data, at: at})
	}
}

func (r *shellReader) frame(s *shellStream, kind process.Kind, said string, at int64, tell func(piece)) {
	parts := strings.SplitN(said, " ", 3)
	if len(parts) != 3 {
		return
	}
	p := piece{stream: kind, command: parts[1], at: at}
	switch parts[0] {
	case "ready":
		p.kind = pieceReady
	case "begin":
		p.kind, s.command = pieceBegin, p.command
		p.data, _ = base64.StdEncoding.DecodeString(parts[2]) // what is no base64 has no text
	case "done":
		p.kind, s.command = pieceDone, ""
		p.status, _ = strconv.Atoi(parts[2]) // a shell's status is a number
	default:
		return
	}
	tell(p)
}

// The marks that say to which stream the bytes after them belong, where both come in one.
var marks = map[process.Kind]string{process.Stdout: "\x01\x01\x01", process.Stderr: "\x02\x02\x02"}

// marker puts a mark before what is of another stream than what was before.
type marker struct{ last process.Kind }

func (m *marker) mark(kind process.Kind, data []byte) []byte {
	if kind == m.last {
		return data
	}
	m.last = kind
	return append([]byte(marks[kind]), data...)
}
