package front

import (
	"crypto/tls"
	"log/slog"
)

// Certificate returns how a server finds the certificate of those files, which it looks at for every handshake.
func Certificate(cert, key string, log *slog.Logger) func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c := newCertificate(cert, key, log)
	c.every = 0
	return c.get
}
