package e2e_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"cove/internal/http/api"
	"cove/internal/testkit/testneeds"
)

// piece sends what body has as a piece of an upload.
func (s *server) piece(ctx context.Context, upload string, offset int64, body io.Reader) (status int, u api.Upload, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPatch, s.base+"/api/v1/uploads/"+upload, body)
	if err != nil {
		return 0, u, err
	}
	req.Header.Set("Authorization", "Bearer "+s.key)
	req.Header.Set("Upload-Offset", fmt.Sprint(offset))
	response, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, u, err
	}
	defer func() { _ = response.Body.Close() }()
	return response.StatusCode, u, json.NewDecoder(response.Body).Decode(&u)
}

// offset waits until an upload has more bytes than before.
func (s *server) offset(upload string, before int64) int64 {
	s.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		var u api.Upload
		if s.must("GET", "/api/v1/uploads/"+upload, nil, &u); u.Offset > before {
			return u.Offset
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the upload stays at %d bytes", u.Offset)
		}
	}
}

// stuck sends a piece that comes no further than text, until it is given up.
func (s *server) stuck(upload string, offset int64, text []byte) (giveUp func() (status int)) {
	s.t.Helper()
	from, to := io.Pipe()
	answered := make(chan int, 1)
	go func() {
		status, _, _ := s.piece(s.t.Context(), upload, offset, from)
		answered <- status
	}()
	if _, err := to.Write(text); err != nil {
		s.t.Fatal(err)
	}
	return func() int {
		_ = to.CloseWithError(io.ErrUnexpectedEOF)
		return <-answered
	}
}

// TestAnUploadOutlivesItsServer kills the server in the middle of a file, and has a client come back before the next server knows that its connection is dead.
func TestAnUploadOutlivesItsServer(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	dir := t.TempDir()
	s := startServer(t, dir, testKey(t), "COVE_POOL=0")
	text := bytes.Repeat([]byte("0123456789abcdef"), 3<<20/2) // 24 MiB
	var u api.Upload
	s.must("POST", "/api/v1/uploads", map[string]any{"name": "large.bin", "size": len(text)}, &u)
	giveUp := s.stuck(u.ID, 0, text[:20<<20])
	kept := s.offset(u.ID, 8<<20)
	s.kill()
	giveUp()
	s = startServer(t, dir, s.key, "COVE_POOL=0")
	if now := s.offset(u.ID, 0); now < kept || now > 20<<20 {
		t.Fatalf("%d bytes were on the disk, and %d are after a kill", kept, now)
	}
	kept = s.offset(u.ID, 0)
	giveUp = s.stuck(u.ID, kept, text[kept:kept+100_000])
	done := u
	for at, status, deadline := kept, 0, time.Now().Add(patience); status != http.StatusOK; at = s.offset(u.ID, 0) {
		var err error
		// A refusal that comes before the bytes are read may be cut off, since the server closes the connection then: who sends asks for the offset in both cases.
		if status, done, err = s.piece(t.Context(), u.ID, at, bytes.NewReader(text[at:])); err == nil && status != http.StatusConflict && status != http.StatusOK {
			t.Fatalf("who comes back is told %d", status)
		}
		if time.Now().After(deadline) {
			t.Fatalf("who comes back is told %d, %v for ever", status, err)
		}
	}
	sum := sha256.Sum256(text)
	if done.File == nil && s.must("GET", "/api/v1/uploads/"+u.ID, nil, &done).status != http.StatusOK || done.File.SHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("it has become %+v", done.File)
	}
	if giveUp() == http.StatusOK {
		t.Error("the piece that came no further was taken")
	}
	s.stop().ended(t, 0)
}
