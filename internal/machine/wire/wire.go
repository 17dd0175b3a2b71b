// Package wire carries everything that host and guest say to each other over
// one byte stream.
//
// # Frames
//
// A frame is a header of nine bytes, big-endian, and a payload:
//
//	u32 channel | u8 kind | u32 length | length bytes, at most MaxFrame
//
//	kind    channel  payload
//	hello   0        JSON of Hello; the first frame each way, guest first
//	open    new id   none, or u32: NarrowWindow, where both hellos have Narrow; odd ids are the host's, even ids the guest's, always rising
//	data    id       bytes of the stream; costs the sender one credit per byte
//	credit  id       u32: so many more bytes may be sent
//	eof     id       none; the sender writes no more on this channel
//	reset   id       a reason in UTF-8; the channel is over in both directions
//	ping    0        u64, rising
//	pong    0        the u64 of the latest ping; answers that one and all before it
//
// A reset that follows the sender's eof says only that the sender no longer
// reads: what it wrote before stays readable, up to its end. Any other reset
// discards what was not yet read. Frames for a channel that is not open are
// dropped, because they may have crossed a close on their way.
//
// # Trust
//
// The guest runs hostile code, so nothing that a peer sends can make this side
// panic, block its reader, or hold more memory than a fixed bound: the window of each
// open channel, and about a megabyte of output waiting for a peer that does not
// read. A peer that breaks the rules loses the connection, with an
// error that wraps ErrProtocol.
package wire

import "errors"

const (
	// Version is the version of the protocol, with the operations and what the kernel's driver says. A guest speaks its own alone.
	Version = 1
	// Oldest is the oldest version that a host still speaks: the guest and the drivers of a sandbox that was saved are as old as that.
	Oldest = 1
	// MaxFrame is the most payload bytes that one frame holds.
	MaxFrame = 64 << 10
	// DefaultWindow is the credit, in bytes, that each direction of a new channel starts with.
	DefaultWindow = 1 << 20
	// NarrowWindow is the credit of a channel that was opened when WideChannels were open.
	NarrowWindow = 64 << 10
	// MaxChannels is how many channels each side may have open of its own at one
	// time. One that the other side has not accepted yet counts as open.
	MaxChannels = 2048
	// WideChannels is how many of these have DefaultWindow.
	WideChannels = 128
	// OldChannels is how many channels each side may have open, all of DefaultWindow,
	// where a side knows no narrow ones.
	OldChannels = 256
)

var (
	// ErrProtocol is wrapped by every error that says that the peer broke the protocol.
	ErrProtocol = errors.New("wire: protocol error")
	// ErrReset is wrapped by the errors of a channel that the peer has reset or closed.
	ErrReset = errors.New("wire: channel reset by peer")
	// ErrClosed is wrapped by the errors of a channel or connection that is over.
	ErrClosed = errors.New("wire: closed")
)
