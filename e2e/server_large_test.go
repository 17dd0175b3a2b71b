package e2e_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"cove/internal/testkit/testneeds"
)

// TestTooLargeBodiesAreAnswered sends 40 MB to each interface as Python's http.client does, without looking for an answer before all is sent: each says that it is too much.
func TestTooLargeBodiesAreAnswered(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	s := startServer(t, "", testKey(t), "COVE_REQUESTS_PER_SECOND=0")
	const size = 40_000_000
	host := strings.TrimPrefix(s.base, "http://")
	for path, c := range map[string]struct {
		header string
		want   int
	}{
		"/api/v1/sessions":       {"Authorization: Bearer " + s.key, 413},
		"/sandboxes":             {"X-API-Key: " + s.key, 413},
		"/daytona/sandbox":       {"Authorization: Bearer " + s.key, 413},
		"/jupyter/api/kernels":   {"Authorization: Bearer " + s.key, 413},
		"/mcp":                   {"Authorization: Bearer " + s.key, 413},
		"/v1/responses":          {"Authorization: Bearer " + s.key, 400}, // pictures come so: it takes as much, and says what is wrong in it
		"/anthropic/v1/messages": {"X-Api-Key: " + s.key, 400},
		"/gemini/v1beta/models/x:generateContent": {"X-Goog-Api-Key: " + s.key, 400},
		"/v1/sandbox/run":                         {"X-Api-Key: " + s.key, 200}, // Dify's own form: the code is in the body
		"/api/v1/sessions?chunked":                {"Authorization: Bearer " + s.key, 413},
		"/api/v1/sessions?denied":                 {"Authorization: Bearer cove_wrong", 401},
		"/api/v1/nothing":                         {"Authorization: Bearer " + s.key, 404},
	} {
		conn, err := net.Dial("tcp", host)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(testneeds.Patience))
		length, body := fmt.Sprintf("Content-Length: %d\r\n", size), io.Reader(strings.NewReader(`{"name":"`+strings.Repeat("x", size-11)+`"}`))
		if strings.Contains(path, "chunked") {
			length = "Transfer-Encoding: chunked\r\n"
			body = io.MultiReader(strings.NewReader(fmt.Sprintf("%x\r\n", size)), body, strings.NewReader("\r\n0\r\n\r\n"))
		}
		_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\n%s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n%s\r\n", path, host, c.header, length)
		if err == nil {
			_, err = io.Copy(conn, body)
		}
		if err != nil {
			t.Errorf("%s: sending: %v", path, err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 1000))
		_ = answer.Body.Close()
		if answer.StatusCode != c.want || c.want == http.StatusOK && !strings.Contains(string(text), "-413") {
			t.Errorf("%s: %d %s", path, answer.StatusCode, text)
		}
		_ = conn.Close()
	}
	s.stop().ended(t, 0)
}
