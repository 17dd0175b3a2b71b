package wire

import (
	"context"
	"io"
	"net"
	"sync"
)

// Stream is a stream of bytes in both directions, of which one can end alone.
type Stream interface {
	io.ReadWriteCloser
	WriteCloser
}

// WriteCloser can end what it writes alone, as a TCP connection.
type WriteCloser interface{ CloseWrite() error }

// Join moves bytes between a connection and a stream until both sides have said all, one has gone, or ctx has ended, and closes both.
func Join(ctx context.Context, local net.Conn, remote Stream) {
	end := func() {
		_ = remote.Close()
		_ = local.Close()
	}
	defer end()
	defer context.AfterFunc(ctx, end)()
	var both sync.WaitGroup
	both.Go(func() {
		if _, err := Copy(remote, local); err != nil {
			_ = remote.Close()
			return
		}
		_ = remote.CloseWrite()
	})
	if _, err := Copy(local, remote); err != nil {
		_ = local.Close()
	} else if half, ok := local.(WriteCloser); ok {
		_ = half.CloseWrite()
	}
	both.Wait()
}

// copyBuffer is how much Copy moves at a time: in gVisor, each call of the system costs what kilobytes do.
const copyBuffer = 256 << 10

var copyBuffers = sync.Pool{New: func() any { return new([copyBuffer]byte) }}

// Copy is io.Copy in larger pieces.
func Copy(to io.Writer, from io.Reader) (int64, error) {
	b, _ := copyBuffers.Get().(*[copyBuffer]byte)
	defer copyBuffers.Put(b)
	return io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, b[:])
}
