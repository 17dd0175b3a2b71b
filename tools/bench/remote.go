package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"golang.org/x/sys/unix"
)

// remote is a server that speaks HTTP and JSON.
type remote struct {
	host   string
	header http.Header // of every request
	client *http.Client
}

// send asks and returns the answer, whose body the caller closes.
func (r remote) send(ctx context.Context, method, path, body, accept string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+r.host+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if r.header != nil {
		req.Header = r.header.Clone()
	}
	req.Header.Set("Accept", accept)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	return r.client.Do(req)
}

// call asks and reads the answer into what into points to.
func (r remote) call(ctx context.Context, method, path, body string, want int, into any) error {
	answer, err := r.send(ctx, method, path, body, "application/json")
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // the answer has been read
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode != want {
		return fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, lastWords(string(text)))
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}

// get returns a page's text.
func (r remote) get(ctx context.Context, path string) (string, error) {
	answer, err := r.send(ctx, http.MethodGet, path, "", "text/plain")
	if err != nil {
		return "", err
	}
	defer answer.Body.Close() //nolint:errcheck // the answer has been read
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s", path, answer.Status)
	}
	return string(text), err
}

// promptClient is a client that acknowledges what arrives at once. The gateway leaves Nagle's algorithm on, so an ordinary
// client waits for its own delayed acknowledgement, about 40 ms in every execution; the gateway is not to be blamed for it.
func promptClient() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		var d net.Dialer
		c, err := d.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return promptConn{c.(*net.TCPConn)}, nil
	}}}
}

type promptConn struct{ *net.TCPConn }

// Read asks for prompt acknowledgements each time, since Linux forgets.
func (c promptConn) Read(p []byte) (int, error) {
	raw, err := c.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1) })
	}
	if err != nil {
		return 0, err
	}
	return c.TCPConn.Read(p)
}
