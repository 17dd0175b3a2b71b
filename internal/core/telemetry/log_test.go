package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/telemetry"
)

// canaries are texts that must never be in a log.
func canaries() []string {
	return []string{
		"cove_06f1k3t3y4m0v8s2k5r7w9x1z4_0v8s2k5r7w9x1z406f1k3t3y4m0v8s2k_3t3y4m0",
		"sk-proj-1234567890abcdefghij", "sk-ant-REDACTED", "ghp_abcdefghijklmnopqrstuvwxyz012345",
		"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl", "hunter2hunter2", "upstream-key-without-a-look",
	}
}

type withSecret struct{ Name, Key string }

func (w withSecret) String() string { return w.Name }

// TestNoSecretIsLogged puts each canary into every place of a line where it could come from.
func TestNoSecretIsLogged(t *testing.T) {
	t.Parallel()
	for _, asJSON := range []bool{true, false} {
		for _, secret := range canaries() {
			var out bytes.Buffer
			log := slog.New(telemetry.NewHandler(&out, telemetry.LogOptions{JSON: asJSON, Secrets: []string{"hunter2hunter2", "upstream-key-without-a-look", "x"}}))
			dsn := "postgres://cove:" + secret + "@db.example/cove"
			err := fmt.Errorf("connect to %s: %w", dsn, errors.New("refused "+secret))
			log.Info("sent Authorization: Bearer " + secret)
			log.Info("x", "detail", "the key "+secret+" is wrong", "error", err, "dsn", dsn, "url", dsn)
			log.Info("x", "api_key", secret, "apiKey", secret, "Authorization", "Bearer "+secret, "client_secret", secret, "token", secret)
			log.Info("x", slog.Group("upstream", "password", secret, slog.Group("deep", "X-Api-Key", secret, "note", secret)))
			log.With("cookie", secret, "note", secret).WithGroup("g").With("token", secret).Info("x", "bytes", []byte(secret))
			log.Info("x", "thing", withSecret{"n", secret}, "header", map[string][]string{"Authorization": {"Bearer " + secret}})
			log.Info(`{"api_key":"` + secret + `","x":1}`)
			log.Info("host=db password=" + secret + " user=cove")
			log.Info("x", "url", "https://host/path?api_key="+secret+"&x=1")
			if n := strings.Count(out.String(), "\n"); n != 9 {
				t.Errorf("there are %d lines, not 9:\n%s", n, out.String())
			}
			if strings.Contains(out.String(), secret) {
				t.Errorf("JSON %t: %s was logged:\n%s", asJSON, secret, out.String())
			}
		}
	}
}

func TestWhatIsNoSecretStays(t *testing.T) {
	t.Parallel()
	id := ident.New(ident.Key)
	for _, line := range []slog.Attr{
		slog.String("key", id), slog.Int("tokens", 12), slog.Int("max_token", 12), slog.String("route", "/api/v1/keys/{key}"),
		slog.String("error", "cannot open https://example.com/a?b=c: timeout"), slog.String("session", ident.New(ident.Session)),
		slog.String("model", "openai/gpt-5-mini"), slog.String("task", "ask-for-a-disk-image"),
		slog.Duration("took", time.Second), slog.Bool("secret", true),
	} {
		var out bytes.Buffer
		slog.New(telemetry.NewHandler(&out, telemetry.LogOptions{})).LogAttrs(t.Context(), slog.LevelInfo, "m", line)
		if strings.Contains(out.String(), "redacted") || !strings.Contains(out.String(), line.Value.String()) {
			t.Errorf("%s became %s", line, out.String())
		}
	}
}

func TestLinesHaveTheRequest(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(telemetry.NewHandler(&out, telemetry.LogOptions{JSON: true}))
	log.InfoContext(telemetry.WithRequest(t.Context(), "req_1"), "m")
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil || line["request"] != "req_1" {
		t.Errorf("the line is %s (%v)", out.String(), err)
	}
}

// TestAStuckLogDelaysNobody: a writer that blocks for ever costs lines, and neither a logger nor the end waits for it.
func TestAStuckLogDelaysNobody(t *testing.T) {
	t.Parallel()
	read, write := io.Pipe()
	log, finish := telemetry.NewLog(write, telemetry.LogOptions{})
	for i := range 10_000 {
		log.Info("line", "n", i)
	}
	// It is read at last: what was lost is said.
	text := make(chan string)
	go func() {
		all, _ := io.ReadAll(read)
		text <- string(all)
	}()
	finish()
	_ = write.Close()
	got := <-text
	if !strings.Contains(got, "n=0\n") || !strings.Contains(got, "log lines were lost") || strings.Contains(got, "n=9999\n") {
		t.Errorf("%d bytes were logged, which begin with %.200s", len(got), got)
	}
	log.Info("after the end") // is dropped, and not a fault
}

func TestAFastLogLosesNothing(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log, finish := telemetry.NewLog(&out, telemetry.LogOptions{})
	for range 1000 {
		log.InfoContext(context.Background(), "line")
	}
	finish()
	finish()
	if n := strings.Count(out.String(), "\n"); n != 1000 {
		t.Errorf("%d of 1000 lines were written", n)
	}
}
