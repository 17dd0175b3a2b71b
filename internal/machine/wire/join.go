package wire

import (
	"context"
	"errors"
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
		if err := Copy(remote, local); err != nil {
			_ = remote.Close()
			return
		}
		_ = remote.CloseWrite()
	})
	if err := Copy(local, remote); err != nil {
		_ = local.Close()
	} else if half, ok := local.(WriteCloser); ok {
		_ = half.CloseWrite()
	}
	both.Wait()
}

// The sizes of pieces that Copy moves. In gVisor each call of the system costs what kilobytes do, so that large ones are worth their memory; but a connection that moves little, or
// waits, has a small one, and large ones are mostLarge in this process.
const (
	firstPiece = 4 << 10
	smallPiece = 32 << 10
	largePiece = 256 << 10
	mostLarge  = 64
)

// largeUsed holds a token for each large piece that is in use.
var largeUsed = make(chan struct{}, mostLarge)

var largePieces = sync.Pool{New: func() any { return new([largePiece]byte) }}

// Copy is io.Copy for connections, in pieces that become larger while much is moved. It returns nil at the end of from.
func Copy(to io.Writer, from io.Reader) error {
	piece := make([]byte, firstPiece)
	for {
		n, err := move(to, from, piece)
		if err == nil && n == len(piece) {
			if n < smallPiece {
				piece = make([]byte, smallPiece)
				continue
			}
			err = copyLarge(to, from)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// copyLarge copies in large pieces for as long as they are filled more than a small one would be. It does nothing when too many are in use.
func copyLarge(to io.Writer, from io.Reader) error {
	select {
	case largeUsed <- struct{}{}:
	default:
		return nil
	}
	defer func() { <-largeUsed }()
	large, _ := largePieces.Get().(*[largePiece]byte)
	defer largePieces.Put(large)
	for {
		if n, err := move(to, from, large[:]); err != nil || n < smallPiece {
			return err
		}
	}
}

// move reads once and writes what was read.
func move(to io.Writer, from io.Reader, piece []byte) (int, error) {
	n, err := from.Read(piece)
	if n > 0 {
		if _, failed := to.Write(piece[:n]); failed != nil {
			return n, failed
		}
	}
	return n, err
}
