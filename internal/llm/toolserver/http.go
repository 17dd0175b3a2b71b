package toolserver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	mostStream    = 64 << 20 // bytes of one answer with several messages
	mostHeaders   = 64 << 10 // bytes
	dialPatience  = 10 * time.Second
	mostRedirects = 3
	versionHeader = "Mcp-Protocol-Version"
)

// carrier sends what a server's headers are to its address alone, and bounds what comes back.
type carrier struct {
	to      *url.URL
	headers map[string]string
	version func() string // of the protocol, once it is known
	refused atomic.Int32  // the last status of 400 and above
	next    *http.Transport
}

// newCarrier returns what carries requests to a server.
func newCarrier(c Config, version func() string) (*carrier, error) {
	to, err := url.Parse(c.URL)
	if err != nil {
		return nil, errors.New("its url is no address")
	}
	return &carrier{to: to, headers: c.Headers, version: version, next: &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: dialPatience, KeepAlive: 30 * time.Second}).DialContext, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: dialPatience, MaxResponseHeaderBytes: mostHeaders, MaxIdleConnsPerHost: mostAtOnce, IdleConnTimeout: 90 * time.Second,
	}}, nil
}

// dial connects as the SDK does. There is no stream for what the server says by itself: protocols before 2026-07-28 have one, which nothing bounds, and lists of tools are read again
// instead.
func (t *carrier) dial(ctx context.Context) (sdk.Connection, error) {
	client := &http.Client{Transport: t, CheckRedirect: func(r *http.Request, before []*http.Request) error {
		if !t.here(r.URL) || len(before) > mostRedirects {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	return (&sdk.StreamableClientTransport{
		Endpoint: t.to.String(), HTTPClient: client, DisableStandaloneSSE: true, MaxEventSize: mostMessage, MaxRetries: 2,
	}).Connect(ctx)
}

func (t *carrier) here(u *url.URL) bool { return u.Scheme == t.to.Scheme && u.Host == t.to.Host }

// RoundTrip implements http.RoundTripper.
func (t *carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	if !t.here(r.URL) {
		return nil, errors.New("the server leads elsewhere")
	}
	r = r.Clone(r.Context())
	for key, value := range t.headers {
		r.Header.Set(key, value)
	}
	if v := t.version(); v != "" && r.Header.Get(versionHeader) == "" {
		r.Header.Set(versionHeader, v)
	}
	response, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= http.StatusBadRequest {
		t.refused.Store(int32(response.StatusCode))
	}
	most, kind := int64(mostMessage), response.Header.Get("Content-Type")
	events := strings.HasPrefix(kind, "text/event-stream")
	if events {
		most = mostStream
	}
	response.Body = &bounded{ReadCloser: response.Body, left: most}
	if events || strings.HasPrefix(kind, "application/json") {
		response.Body = &mended{Closer: response.Body, from: bufio.NewReader(response.Body), events: events}
		response.Header.Del("Content-Length")
		response.ContentLength = -1
	}
	return response, nil
}

// mended is a body in which an error stands for an answer that cannot be read, so that it fails the call that it is for.
type mended struct {
	io.Closer
	from   *bufio.Reader
	events bool // a message is the data of an event, on one line; otherwise the body is one
	text   []byte
}

func (m *mended) Read(p []byte) (int, error) {
	if len(m.text) == 0 {
		if err := m.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, m.text)
	m.text = m.text[n:]
	return n, nil
}

// fill reads one message or more. What is no whole message goes on as it is.
func (m *mended) fill() error {
	if !m.events {
		text, err := io.ReadAll(m.from)
		if m.text = mend(text); len(text) == 0 && err == nil {
			err = io.EOF
		}
		return err
	}
	const field = "data:"
	m.text = nil
	for {
		piece, err := m.from.ReadSlice('\n')
		m.text = append(m.text, piece...)
		if errors.Is(err, bufio.ErrBufferFull) && len(m.text) < mostMessage {
			continue
		}
		if data, ok := bytes.CutPrefix(m.text, []byte(field)); ok && err == nil {
			m.text = slices.Concat([]byte(field), mend(data), []byte("\n"))
		}
		if len(m.text) > 0 {
			return nil
		}
		return err
	}
}

// mend returns a message, or an error in the place of an answer that cannot be read, where it shows which request it is for.
func mend(text []byte) []byte {
	text = bytes.TrimSpace(text)
	if _, err := jsonrpc.DecodeMessage(text); err != nil && isAnswer(text) {
		if instead, known := failed(text, err); known {
			if encoded, err := jsonrpc.EncodeMessage(instead); err == nil {
				return encoded
			}
		}
	}
	return text
}

// bounded is a body that fails where it is longer than it may be.
type bounded struct {
	io.ReadCloser
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
