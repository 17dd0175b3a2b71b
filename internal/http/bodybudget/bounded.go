package bodybudget

import (
	"errors"
	"io"
	"net/http"
)

// mostDropped bounds what is read and dropped of a body that is too large, in bytes.
const mostDropped = 64 << 20

// Bounded returns a body of most bytes at most. Of a longer one, reading returns those, and then an *http.MaxBytesError, as http.MaxBytesReader does, when the client has sent the rest, so that it
// gets to see the answer: many clients send all before they look for one, and see a broken connection where it is closed. Of a body that goes on for much longer the connection ends.
func Bounded(w http.ResponseWriter, body io.ReadCloser, most int64) io.ReadCloser {
	return &bounded{ReadCloser: body, w: w, most: most, left: most}
}

type bounded struct {
	io.ReadCloser
	w          http.ResponseWriter
	most, left int64
	err        error
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.err != nil || len(p) == 0 {
		return 0, b.err
	}
	if int64(len(p)) > b.left {
		p = p[:b.left+1] // one more says whether it is longer
	}
	n, err := b.ReadCloser.Read(p)
	if int64(n) <= b.left {
		b.left, b.err = b.left-int64(n), err
		return n, err
	}
	n, b.left = int(b.left), 0
	DropBody(b.w, b.ReadCloser)
	b.err = &http.MaxBytesError{Limit: b.most}
	return n, b.err
}

// DropBody reads the rest of a body of a request that is refused, and has the connection end where that is too much.
func DropBody(w http.ResponseWriter, body io.Reader) {
	if _, err := io.CopyN(io.Discard, body, mostDropped); !errors.Is(err, io.EOF) {
		w.Header().Set("Connection", "close")
	}
}
