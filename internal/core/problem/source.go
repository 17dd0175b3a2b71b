package problem

import (
	"errors"
	"io"
)

// Source reads From and keeps why that failed, which is not a failure of the code that copies from it.
type Source struct {
	From   io.Reader
	Failed error // nil at the end
}

func (s *Source) Read(p []byte) (int, error) {
	n, err := s.From.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.Failed = err
	}
	return n, err
}
