// Package sse writes and reads server-sent events, as the HTML standard has them (https://html.spec.whatwg.org/multipage/server-sent-events.html).
package sse

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
)

// ContentType is that of a stream of events.
const ContentType = "text/event-stream"

// Event is one server-sent event.
type Event struct {
	ID   int64 // 0: none, so that the reader's last event ID stays
	Name string
	Data []byte
}

// Append appends the event as it goes over the wire. The name must not have a line break.
func (e Event) Append(to []byte) []byte {
	if e.ID > 0 {
		to = append(to, "id: "...)
		to = strconv.AppendInt(to, e.ID, 10)
		to = append(to, '\n')
	}
	if e.Name != "" {
		to = append(to, "event: "...)
		to = append(to, e.Name...)
		to = append(to, '\n')
	}
	for line := range bytes.SplitSeq(e.Data, []byte("\n")) {
		to = append(to, "data: "...)
		to = append(to, line...)
		to = append(to, '\n')
	}
	return append(to, '\n')
}

// Comment is what readers pass over. It keeps proxies and clients from giving up on a silent stream.
const Comment = ": still here\n\n"

// Writer writes a stream as the answer to a request, each piece at once. It is not safe for concurrent use.
type Writer struct {
	w       io.Writer
	control *http.ResponseController
}

// NewWriter sets the headers of the answer. They go out with the first Write.
func NewWriter(w http.ResponseWriter) *Writer {
	h := w.Header()
	h.Set("Content-Type", ContentType)
	h.Set("Cache-Control", "no-store, no-transform") // what compresses events on the way holds them back
	h.Set("X-Accel-Buffering", "no")                 // nginx would hold events back
	h.Set("X-Content-Type-Options", "nosniff")
	return &Writer{w, http.NewResponseController(w)}
}

// Write sends text, which is whole events or comments, to the client. Without any it sends the headers.
func (w *Writer) Write(text []byte) (int, error) {
	n, err := w.w.Write(text)
	if err != nil {
		return n, err
	}
	return n, w.control.Flush()
}

// ErrTooLarge says that an event is larger than the reader takes.
var ErrTooLarge = errors.New("an event is too large")

// Reader reads a stream. It is not safe for concurrent use.
type Reader struct {
	lines *bufio.Reader
	most  int
	heard func()
}

// NewReader reads events of at most so many bytes. heard, if not nil, is called for each line, also of comments.
func NewReader(r io.Reader, most int, heard func()) *Reader {
	if heard == nil {
		heard = func() {}
	}
	return &Reader{bufio.NewReaderSize(r, 64<<10), most, heard}
}

// Next returns the next event that has data. io.EOF is the end of the stream; an event that is not whole by then is dropped, as the standard says.
func (r *Reader) Next() (Event, error) {
	var e Event
	some := false
	for {
		line, err := r.line()
		if err != nil {
			return Event{}, err
		}
		if len(line) == 0 {
			if some {
				return e, nil
			}
			e = Event{}
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "id":
			e.ID, _ = strconv.ParseInt(string(value), 10, 64)
		case "event":
			e.Name = string(value)
		case "data":
			if some {
				e.Data = append(e.Data, '\n')
			}
			if some = true; e.Data == nil {
				e.Data = value // which nobody else has
			} else {
				e.Data = append(e.Data, value...)
			}
		}
		if len(e.Data) > r.most {
			return Event{}, ErrTooLarge
		}
	}
}

// Discard reads on for at most n bytes, for a connection that is to be used again.
func (r *Reader) Discard(n int64) { _, _ = io.CopyN(io.Discard, r.lines, n) }

func (r *Reader) line() ([]byte, error) {
	var out []byte
	for {
		piece, more, err := r.lines.ReadLine()
		if err != nil {
			return nil, err
		}
		r.heard()
		if out = append(out, piece...); !more {
			return out, nil
		}
		if len(out) > r.most {
			return nil, ErrTooLarge
		}
	}
}
