package layer

import (
	"bufio"
	"compress/flate"
	"io"
)

// inflater is a decompressor that is used for one file after the other.
type inflater struct {
	in  *bufio.Reader
	out io.ReadCloser
}

func newInflater() *inflater {
	in := bufio.NewReaderSize(nil, 1<<16)
	return &inflater{in: in, out: flate.NewReader(in)}
}

func (i *inflater) reset(r io.Reader) io.Reader {
	i.in.Reset(r)
	_ = i.out.(flate.Resetter).Reset(i.in, nil) // it only fails for a dictionary
	return i.out
}
