package egress

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"

	"cove/internal/core/problem"
)

// Credential is a secret that is added on the host to each request that a session sends to another host by HTTPS. The session never sees it.
type Credential struct {
	Host string `json:"host"` // a name, not one for several
	// Header has the value, in the place of what the session sends under that name.
	Header string `json:"header,omitempty"`
	// Name is that of a secret without a Header: $NAME and ${NAME} in the headers that the session sends stand for the value.
	Name  string `json:"name,omitempty"`
	Value string `json:"value"`
}

// longestHeaders bounds the headers of a request with credentials in them, in bytes, as it leaves.
const longestHeaders = 64 << 10

// addCredentials puts credentials into the headers of a request. Names of secrets are looked for in what the session sent and never in a secret, so that secrets do not multiply. It returns false,
// and has not put all of them in, where the headers would be longer than longestHeaders.
func addCredentials(h http.Header, all []Credential) bool {
	named := map[string]string{}
	for _, c := range all {
		if _, known := named[c.Name]; c.Name != "" && !known {
			named[c.Name] = c.Value
		}
	}
	left := longestHeaders
	for name, values := range h {
		for i, v := range values {
			left -= len(name) + len(": \r\n")
			text, fits := withSecrets(v, named, left)
			if !fits {
				return false
			}
			values[i] = text
			left -= len(text)
		}
	}
	for _, c := range all {
		if c.Name == "" {
			left -= len(c.Header) + len(": \r\n") + len(c.Value)
			h.Set(c.Header, c.Value)
		}
	}
	return left >= 0
}

// withSecrets returns a text with secrets where their names stand, as $NAME or ${NAME}; $NAME ends where a longer name could go on. It returns false where that is longer than most.
func withSecrets(text string, named map[string]string, most int) (with string, fits bool) {
	if len(named) == 0 || !strings.Contains(text, "$") {
		return text, len(text) <= most
	}
	var out strings.Builder
	for out.Len() <= most {
		before, rest, found := strings.Cut(text, "$")
		out.WriteString(before)
		if !found {
			return out.String(), out.Len() <= most
		}
		name, after := rest, ""
		if inner, ok := strings.CutPrefix(rest, "{"); ok {
			name, after, ok = strings.Cut(inner, "}")
			if !ok {
				name = ""
			}
		} else if end := strings.IndexFunc(rest, func(r rune) bool { return r >= utf8.RuneSelf || !isWord(byte(r)) }); end >= 0 {
			name, after = rest[:end], rest[end:]
		}
		if value, known := named[name]; known {
			out.WriteString(value)
			text = after
		} else {
			out.WriteString("$")
			text = rest
		}
	}
	return "", false
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// secretName says whether a text can be the name of a secret.
func secretName(text string) bool {
	const longest = 100
	return text != "" && len(text) <= longest && (text[0] < '0' || text[0] > '9') && strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf || !isWord(byte(r)) }) < 0
}

// Bounds of credentials.
const (
	MostCredentials   = 32
	longestCredential = 8 << 10
)

// ownHeaders say how a request is sent; they are the server's own.
var ownHeaders = []string{"Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "Te", "Trailer", "Keep-Alive", "Proxy-Authorization", "Proxy-Connection"}

// CheckCredentials returns the problem of credentials that cannot be, or whose hosts the rules do not let a session reach by HTTPS. Problems: network_rule.
func CheckCredentials(all []Credential, rules Rules) error {
	wrong := func(c Credential, why string) error {
		return problem.New(problem.NetworkRule, fmt.Sprintf("the credential for %.200q cannot be added: %s", c.Host, why))
	}
	if len(all) > MostCredentials {
		return problem.New(problem.NetworkRule, fmt.Sprintf("there are %d credentials; there may be %d", len(all), MostCredentials))
	}
	for _, c := range all {
		switch why := ""; {
		case !isName(c.Host):
			return wrong(c, "its host is not one name, in lower case")
		case c.Name != "" && (c.Header != "" || !secretName(c.Name)):
			return wrong(c, "it has a header and a name, or its name is not one of letters, digits and _")
		case c.Name == "" && (!httpguts.ValidHeaderFieldName(c.Header) || slices.Contains(ownHeaders, http.CanonicalHeaderKey(c.Header))):
			return wrong(c, "it has no header that could be added")
		case c.Value == "" || len(c.Value) > longestCredential || !httpguts.ValidHeaderFieldValue(c.Value):
			return wrong(c, "its value is empty, longer than 8 kB, or has characters that no header has")
		default:
			if why = rules.names(c.Host, 443); why != "" {
				return wrong(c, "the session cannot connect there: "+why)
			}
		}
	}
	return nil
}

// Authority signs the certificates by which a session's programs talk to the hosts that it has credentials for. They trust it beside the authorities of the machine; it can sign for these
// hosts alone.
type Authority struct {
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate

	mu     sync.Mutex
	leaves map[string]*tls.Certificate
}

const (
	authorityLife = 20 * 365 * 24 * time.Hour // sessions can be paused for long, and programs in them know the authority from when they began
	leafLife      = 30 * 24 * time.Hour
)

// NewAuthority makes one for the hosts of credentials.
func NewAuthority(credentials []Credential) (*Authority, error) {
	var hosts []string
	for _, c := range credentials {
		hosts = append(hosts, c.Host)
	}
	slices.Sort(hosts)
	hosts = slices.Compact(hosts)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "cove session"}, NotBefore: now.Add(-24 * time.Hour), NotAfter: now.Add(authorityLife),
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
		PermittedDNSDomainsCritical: true, PermittedDNSDomains: hosts, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return newAuthority(key, der)
}

func newAuthority(key *ecdsa.PrivateKey, der []byte) (*Authority, error) {
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &Authority{key: key, certificate: certificate, leaves: map[string]*tls.Certificate{}}, nil
}

func serial() *big.Int {
	n, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)) // which does not fail
	return n
}

// Certificate returns what programs of the session are to trust, PEM.
func (a *Authority) Certificate() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

// Marshal returns the authority with its key, PEM: a secret.
func (a *Authority) Marshal() ([]byte, error) {
	key, err := x509.MarshalECPrivateKey(a.key)
	if err != nil {
		return nil, err
	}
	return append(a.Certificate(), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: key})...), nil
}

// ParseAuthority reads what Marshal has returned.
func ParseAuthority(text []byte) (*Authority, error) {
	first, rest := pem.Decode(text)
	second, _ := pem.Decode(rest)
	if first == nil || second == nil {
		return nil, errors.New("the authority of a session cannot be read")
	}
	key, err := x509.ParseECPrivateKey(second.Bytes)
	if err != nil {
		return nil, err
	}
	return newAuthority(key, first.Bytes)
}

// leaf returns a certificate for a host.
func (a *Authority) leaf(host string) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if c := a.leaves[host]; c != nil && now.Before(c.Leaf.NotAfter.Add(-leafLife/2)) {
		return c, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host}, NotBefore: now.Add(-24 * time.Hour), NotAfter: now.Add(leafLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	c := &tls.Certificate{Certificate: [][]byte{der, a.certificate.Raw}, PrivateKey: key, Leaf: parsed}
	a.leaves[host] = c
	return c, nil
}

// credentialsFor returns what is added to requests to a host.
func (d *Dialer) credentialsFor(host string) (all []Credential) {
	for _, c := range d.o.Credentials {
		if c.Host == host {
			all = append(all, c)
		}
	}
	return all
}

// withoutCredentials removes from a text of an answer what a session must not see. It is for errors of our own; what a host answers is the host's.
func (d *Dialer) withoutCredentials(text string) string {
	for _, c := range d.o.Credentials {
		text = strings.ReplaceAll(text, c.Value, "...")
	}
	return text
}

// Certificates returns what programs of the session are to trust beside the authorities of the machine, PEM; nil for nothing.
func (d *Dialer) Certificates() []byte {
	if d.o.Authority == nil || len(d.o.Credentials) == 0 {
		return nil
	}
	return bytes.Clone(d.o.Authority.Certificate())
}
