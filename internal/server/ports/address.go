// Package ports lets browsers, and programs that speak HTTP, reach servers that run in sessions: under a name of their own for each, or below a path. What comes from there is
// somebody's code: it shares no origin with the server's own pages, gets no credential of a caller, and sets nothing that counts for other addresses.
package ports

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
)

// Address is where ports have names of their own: port 8000 of a session is 8000-ID.HOST, where ID is the session's without its kind.
type Address struct {
	Scheme string // http or https
	Host   string // "": ports have no names
	Port   string // ":8700", or ""
}

// ParseAddress reads an address such as https://ports.example.com. Problems: config_invalid.
func ParseAddress(text string) (Address, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.User != nil || net.ParseIP(u.Hostname()) != nil {
		return Address{}, problem.New(problem.ConfigInvalid, fmt.Sprintf("%.200q is no address for the ports of sessions (serve.ports)", text)).
			WithHint("write it like https://ports.example.com; names below that have to lead to this server")
	}
	a := Address{Scheme: u.Scheme, Host: strings.ToLower(u.Hostname())}
	if u.Port() != "" {
		a.Port = ":" + u.Port()
	}
	return a, nil
}

// URL is where a browser finds a port of a session; "" where ports have no names.
func (a Address) URL(session string, port int) string {
	if a.Host == "" {
		return ""
	}
	_, id, _ := strings.Cut(session, "_")
	return fmt.Sprintf("%s://%d-%s.%s%s/", a.Scheme, port, id, a.Host, a.Port)
}

// Find returns whose port a host is the name of.
func (a Address) Find(host string) (session string, port int, ok bool) {
	label, ok := strings.CutSuffix(host, "."+a.Host)
	if !ok || a.Host == "" {
		return "", 0, false
	}
	number, id, _ := strings.Cut(label, "-")
	port, err := strconv.Atoi(number)
	session = ident.Session + "_" + id
	if err != nil || port < 1 || port > 65535 || strconv.Itoa(port) != number || !ident.Valid(ident.Session, session) {
		return "", 0, false
	}
	return session, port, true
}
