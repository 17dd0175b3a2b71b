package front_test

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/http/front"
)

// copyFile replaces what is at to.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	must(t, err)
	must(t, os.WriteFile(to+".new", text, 0o600))
	must(t, os.Rename(to+".new", to))
}

// TestACertificateIsReadAgain shakes hands before and after the files change, and while they do not fit each other.
func TestACertificateIsReadAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	oneCert, oneKey, one := certificate(t)
	twoCert, twoKey, two := certificate(t)
	copyFile(t, oneCert, cert)
	copyFile(t, oneKey, key)
	var log bytes.Buffer
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{GetCertificate: front.Certificate(cert, key, slog.New(slog.NewTextHandler(&log, nil))), MinVersion: tls.VersionTLS12})
	must(t, err)
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.(*tls.Conn).HandshakeContext(t.Context())
			_ = c.Close()
		}
	}()
	defer func() {
		_ = l.Close()
		<-served
	}()
	trusts := func(config *tls.Config) error {
		var d net.Dialer
		raw, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
		must(t, err)
		defer func() { _ = raw.Close() }()
		return tls.Client(raw, config).HandshakeContext(t.Context())
	}
	first, second := &tls.Config{RootCAs: one, ServerName: "127.0.0.1"}, &tls.Config{RootCAs: two, ServerName: "127.0.0.1"}
	if err := trusts(first); err != nil {
		t.Fatal(err)
	}
	copyFile(t, twoCert, cert) // and not its key
	if err := trusts(first); err != nil {
		t.Errorf("with a pair that does not fit: %v", err)
	}
	must(t, os.Remove(key))
	if err := trusts(first); err != nil {
		t.Errorf("without a key: %v", err)
	}
	copyFile(t, twoKey, key)
	if err := trusts(second); err != nil {
		t.Errorf("the new certificate is not used: %v", err)
	}
	if err := trusts(first); err == nil {
		t.Error("the former certificate is used on")
	}
	_ = l.Close()
	<-served
	for _, want := range []string{"cannot be used", "read anew"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, log.String())
		}
	}
}
