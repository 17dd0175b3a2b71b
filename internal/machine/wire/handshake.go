package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Hello is the first message each way.
type Hello struct {
	Version int `json:"version"` // set by Handshake when it is zero
	// Oldest is the oldest version that a host speaks besides; zero is Version alone. It is not sent.
	Oldest int `json:"-"`
	// Narrow says that this side knows channels of NarrowWindow; set by Handshake. A host says it to a guest that has said it.
	Narrow bool            `json:"narrow,omitempty"`
	Token  string          `json:"token,omitempty"`
	Info   json.RawMessage `json:"info,omitempty"` // whatever the two sides agree on
}

// Handshake exchanges hellos and returns the peer's. The guest speaks first; the
// host reads, checks and only then answers, so a guest that is refused learns
// nothing. Call it once, before Run. A host answers in the guest's version, where
// it speaks that (see Hello.Oldest). A peer of any other version is refused with
// an error that wraps ErrProtocol; an error of check, which may be nil, is
// returned wrapped. It blocks until the peer has answered or Close is called,
// and leaves it to the caller to close a connection that failed.
func (c *Conn) Handshake(mine Hello, check func(peer Hello) error) (Hello, error) {
	if mine.Version == 0 {
		mine.Version = Version
	}
	mine.Narrow = true
	if !c.host {
		if err := c.sendHello(mine); err != nil {
			return Hello{}, err
		}
	}
	oldest := mine.Version
	if c.host && mine.Oldest != 0 {
		oldest = mine.Oldest
	}
	peer, err := c.receiveHello(oldest, mine.Version)
	if err != nil {
		return Hello{}, err
	}
	mine.Version, mine.Narrow = peer.Version, peer.Narrow
	c.narrow = peer.Narrow
	if check != nil {
		if err := check(peer); err != nil {
			return Hello{}, fmt.Errorf("wire: hello refused: %w", err)
		}
	}
	if c.host {
		if err := c.sendHello(mine); err != nil {
			return Hello{}, err
		}
	}
	return peer, nil
}

func (c *Conn) sendHello(h Hello) error {
	b, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("wire: encode the hello: %w", err)
	}
	if err := WriteFrame(c.stream, Frame{Kind: KindHello, Payload: b}); err != nil {
		return fmt.Errorf("wire: send the hello: %w", err)
	}
	return nil
}

func (c *Conn) receiveHello(oldest, newest int) (Hello, error) {
	f, err := ReadFrame(c.in)
	if errors.Is(err, io.EOF) {
		return Hello{}, fmt.Errorf("wire: the peer ended the connection before its hello: %w", io.ErrUnexpectedEOF)
	}
	if err != nil {
		return Hello{}, fmt.Errorf("wire: wait for the peer's hello: %w", err)
	}
	if f.Kind != KindHello || f.Channel != 0 {
		return Hello{}, fmt.Errorf("%w: the first frame is %s on channel %d, not a hello", ErrProtocol, f.Kind, f.Channel)
	}
	var h Hello
	if err := json.Unmarshal(f.Payload, &h); err != nil {
		return Hello{}, fmt.Errorf("%w: a hello that does not decode: %w", ErrProtocol, err)
	}
	if h.Version < oldest || h.Version > newest {
		return Hello{}, fmt.Errorf("%w: the peer speaks version %d and this side %d to %d; run a release of cove that speaks it",
			ErrProtocol, h.Version, oldest, newest)
	}
	return h, nil
}
