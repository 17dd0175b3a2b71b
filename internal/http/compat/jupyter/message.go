package jupyter

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
)

// The channels that a WebSocket carries. A message of a client that names none is one for the shell.
const (
	shellChannel   = "shell"
	controlChannel = "control"
	stdinChannel   = "stdin"
	iopubChannel   = "iopub"
)

// binaryProtocol is the subprotocol whose frames have the parts of a message one after the other.
const binaryProtocol = "v1.kernel.websocket.jupyter.org"

// Bounds of what a client says in one message.
const (
	longestFrame  = 8 << 20  // bytes
	longestHeader = 32 << 10 // bytes; it goes back with every answer
	mostParts     = 64       // of a binary frame, buffers included
)

type header struct {
	ID       string `json:"msg_id"`
	Type     string `json:"msg_type"`
	Username string `json:"username"`
	Session  string `json:"session"`
	Date     string `json:"date"`
	Version  string `json:"version"`
}

// received is a message of a client.
type received struct {
	channel  string
	id       string
	kind     string
	header   json.RawMessage // as it came: answers bring it back
	content  json.RawMessage
	metadata json.RawMessage // of comms
	buffers  json.RawMessage // of comms, as a list of base64; nil: none
}

// message is one for clients. Both forms of it are made once, however many clients get it.
type message struct {
	channel  string
	header   header
	parent   json.RawMessage // the header of what it answers; nil: it answers nothing
	metadata any
	content  any
	buffers  [][]byte

	text, binary []byte
}

var errMessage = errors.New("this is no message of Jupyter's protocol")

// parseText reads a message of the default protocol without buffers.
func parseText(text []byte) (received, error) {
	var in struct {
		Channel string          `json:"channel"`
		Header  json.RawMessage `json:"header"`
		Content json.RawMessage `json:"content"`
		Meta    json.RawMessage `json:"metadata"`
	}
	if json.Unmarshal(text, &in) != nil {
		return received{}, errMessage
	}
	return receivedOf(in.Channel, in.Header, in.Meta, in.Content)
}

// parseBinary reads a frame of the default protocol that has buffers after the JSON object: a count, that many offsets, and a part at each of these. Numbers are big-endian and of 32 bits.
func parseBinary(frame []byte) (text []byte, buffers [][]byte, err error) {
	if len(frame) < 8 {
		return nil, nil, errMessage
	}
	count := binary.BigEndian.Uint32(frame)
	if count < 1 || count > mostParts || len(frame) < int(4*(count+1)) {
		return nil, nil, errMessage
	}
	at := func(i uint32) uint64 {
		if i == count {
			return uint64(len(frame))
		}
		return uint64(binary.BigEndian.Uint32(frame[4*(i+1):]))
	}
	for i := range count {
		if at(i) > at(i+1) || at(i+1) > uint64(len(frame)) {
			return nil, nil, errMessage
		}
		buffers = append(buffers, frame[at(i):at(i+1)])
	}
	return buffers[0], buffers[1:], nil
}

// asBuffers is a list of buffers in JSON, nil where there are none.
func asBuffers(buffers [][]byte) json.RawMessage {
	if len(buffers) == 0 {
		return nil
	}
	text, err := json.Marshal(buffers)
	if err != nil {
		return nil
	}
	return text
}

// parseParts splits a frame of the binary protocol: a count, that many offsets, and between each two of these a part: the channel, the header, the
// parent's header, metadata, content and buffers. Numbers are little-endian and of 64 bits. It returns what is after the channel.
func parseParts(frame []byte) (channel string, parts [][]byte, err error) {
	if len(frame) < 8 {
		return "", nil, errMessage
	}
	count := binary.LittleEndian.Uint64(frame)
	if count < 6 || count > mostParts || uint64(len(frame)) < 8*(count+1) {
		return "", nil, errMessage
	}
	part := func(i uint64) []byte {
		from, to := binary.LittleEndian.Uint64(frame[8*(i+1):]), binary.LittleEndian.Uint64(frame[8*(i+2):])
		if from > to || to > uint64(len(frame)) {
			err = errMessage
			return nil
		}
		return frame[from:to]
	}
	channel = string(part(0))
	for i := uint64(1); i+1 < count; i++ {
		parts = append(parts, part(i))
	}
	return channel, parts, err
}

func receivedOf(channel string, raw, metadata, content json.RawMessage) (received, error) {
	var h struct {
		ID   string `json:"msg_id"`
		Type string `json:"msg_type"`
	}
	if len(raw) > longestHeader || json.Unmarshal(raw, &h) != nil || h.ID == "" || h.Type == "" || len(content) > 0 && !json.Valid(content) || len(metadata) > 0 && !json.Valid(metadata) {
		return received{}, errMessage
	}
	if channel == "" {
		channel = shellChannel
	}
	return received{channel: channel, id: h.ID, kind: h.Type, header: raw, metadata: metadata, content: content}, nil
}

// encode makes the frame of a message.
func (m *message) encode(parts bool) ([]byte, error) {
	switch {
	case parts && m.binary == nil:
		frame, err := m.parts()
		m.binary = frame
		return frame, err
	case parts:
		return m.binary, nil
	case m.text == nil:
		text, err := written(struct {
			Channel  string          `json:"channel"`
			ID       string          `json:"msg_id"`
			Type     string          `json:"msg_type"`
			Header   header          `json:"header"`
			Parent   json.RawMessage `json:"parent_header"`
			Metadata any             `json:"metadata"`
			Content  any             `json:"content"`
			Buffers  []any           `json:"buffers"`
		}{m.channel, m.header.ID, m.header.Type, m.header, m.parentHeader(), m.meta(), m.content, []any{}})
		if err == nil && len(m.buffers) > 0 {
			text = m.binaryFrame(text)
		}
		m.text = text
		return text, err
	}
	return m.text, nil
}

// binaryFrame makes a binary frame of the default protocol, see parseBinary.
func (m *message) binaryFrame(text []byte) []byte {
	parts := append([][]byte{text}, m.buffers...)
	at := 4 * (len(parts) + 1)
	frame := binary.BigEndian.AppendUint32(nil, uint32(len(parts))) //nolint:gosec // at most mostParts
	for _, p := range parts {
		frame = binary.BigEndian.AppendUint32(frame, uint32(at)) //nolint:gosec // a kernel's message has less than 32 MiB
		at += len(p)
	}
	return append(frame, bytes.Join(parts, nil)...)
}

func (m *message) parentHeader() json.RawMessage {
	if m.parent == nil {
		return json.RawMessage("{}")
	}
	return m.parent
}

func (m *message) meta() any {
	if m.metadata == nil {
		return struct{}{}
	}
	return m.metadata
}

// parts makes a frame of the binary protocol, see parseParts.
func (m *message) parts() ([]byte, error) {
	parts := [][]byte{[]byte(m.channel)}
	for _, v := range []any{m.header, m.parentHeader(), m.meta(), m.content} {
		text, err := written(v)
		if err != nil {
			return nil, err
		}
		parts = append(parts, text)
	}
	parts = append(parts, m.buffers...)
	count := len(parts) + 1
	at := 8 * (count + 1)
	frame := binary.LittleEndian.AppendUint64(nil, uint64(count))
	for _, p := range parts {
		frame = binary.LittleEndian.AppendUint64(frame, uint64(at))
		at += len(p)
	}
	frame = binary.LittleEndian.AppendUint64(frame, uint64(at))
	return append(frame, bytes.Join(parts, nil)...), nil
}

// written is JSON as other programs of the protocol write it: markup is not escaped.
func written(v any) ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// size is about how much memory a message takes until it is sent.
func (m *message) size() int64 {
	return int64(min(max(len(m.text), len(m.binary)), math.MaxInt32)) + 256
}
