package front

import (
	"net/http"
	"time"
)

// writePiece is what a client must be able to take within the limit for stalls.
const writePiece = 64 << 10

// writer is an answer on its way: it remembers the status and the length, and gives up on clients that do not read.
type writer struct {
	http.ResponseWriter
	status int
	bytes  int64

	control     *http.ResponseController
	stall       time.Duration
	until       time.Time
	multiplexed bool // HTTP/2, where a deadline ends the stream also when nothing is being written
}

func (w *writer) WriteHeader(status int) {
	if (status >= 200 || status == http.StatusSwitchingProtocols) && w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *writer) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	done := 0
	for {
		piece := p[done:min(len(p), done+writePiece)]
		w.hurry()
		n, err := w.ResponseWriter.Write(piece)
		w.rest()
		done += n
		w.bytes += int64(n)
		if err != nil || done == len(p) {
			return done, err
		}
	}
}

// Flush makes streams of events work with handlers that look for http.Flusher.
func (w *writer) Flush() { _ = w.FlushError() }

// FlushError is what http.ResponseController calls.
func (w *writer) FlushError() error {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	w.hurry()
	defer w.rest()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// hurry moves the deadline. Not for every write: there may be many small ones.
func (w *writer) hurry() {
	if w.control == nil || w.stall <= 0 {
		return
	}
	if now := time.Now(); w.until.Sub(now) < w.stall*3/4 {
		w.until = now.Add(w.stall)
		_ = w.control.SetWriteDeadline(w.until)
	}
}

// rest takes the deadline back where it must not outlast the writing.
func (w *writer) rest() {
	if w.multiplexed && w.control != nil {
		w.until = time.Time{}
		_ = w.control.SetWriteDeadline(w.until)
	}
}
