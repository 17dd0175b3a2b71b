package front

import (
	"crypto/tls"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificateLook is how often the files of a certificate are looked at.
const certificateLook = 10 * time.Second

// certificate is read again when one of its files has changed: certificates end after months, servers do not. While the new ones do not fit each other, the former holds.
type certificate struct {
	cert, key string
	log       *slog.Logger
	every     time.Duration

	mu     sync.Mutex
	looked time.Time
	seen   [2]os.FileInfo // the files as they were when they were read last
	last   *tls.Certificate
}

func newCertificate(cert, key string, log *slog.Logger) *certificate {
	return &certificate{cert: cert, key: key, log: log, every: certificateLook}
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last != nil && time.Since(c.looked) < c.every {
		return c.last, nil
	}
	c.looked = time.Now()
	now, err := c.look()
	if err == nil && c.last != nil && unchanged(c.seen[0], now[0]) && unchanged(c.seen[1], now[1]) {
		return c.last, nil
	}
	var pair tls.Certificate
	if err == nil {
		pair, err = tls.LoadX509KeyPair(c.cert, c.key)
	}
	switch {
	case err != nil && c.last == nil:
		return nil, err
	case err != nil:
		// It may be half written: the next look is soon, and says so again.
		c.log.Error("the new certificate and its key cannot be used; the former one is used on", "certificate", c.cert, "key", c.key, "ends", c.last.Leaf.NotAfter, "error", err)
		return c.last, nil
	case c.last != nil:
		c.log.Info("the certificate was read anew", "certificate", c.cert, "ends", pair.Leaf.NotAfter)
	}
	c.seen, c.last = now, &pair
	return c.last, nil
}

func (c *certificate) look() (now [2]os.FileInfo, err error) {
	for i, path := range []string{c.cert, c.key} {
		if now[i], err = os.Stat(path); err != nil {
			return now, err
		}
	}
	return now, nil
}

// unchanged says whether a file is the one that it was, also where its name leads to another one, as in Kubernetes.
func unchanged(was, is os.FileInfo) bool {
	return os.SameFile(was, is) && was.ModTime().Equal(is.ModTime()) && was.Size() == is.Size()
}
