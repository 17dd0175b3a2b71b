package config

import (
	"fmt"
	"net"
	"net/url"
	"strings"
)

func (o OAuth) validate() error {
	for _, one := range []struct{ name, text string }{{"oauth.issuer", o.Issuer}, {"oauth.resource", o.Resource}} {
		if one.text != "" && !guarded(one.text) {
			return bad(one.name, fmt.Sprintf("is an https:// address without a query, or an http:// one of this machine, not %q", one.text))
		}
	}
	if o.Claim == "" || strings.ContainsAny(o.Claim, "= ") {
		return bad("oauth.claim", fmt.Sprintf("is the name of a claim, such as sub, not %q", o.Claim))
	}
	if o.Scope == "" || strings.ContainsAny(o.Scope, " \"\\") {
		return bad("oauth.scope", fmt.Sprintf("is one scope, such as mcp, or none, not %q", o.Scope))
	}
	if _, role := o.Join(); o.Newcomers != "" && role != "member" && role != "viewer" {
		return bad("oauth.newcomers", fmt.Sprintf("is PROJECT:member or PROJECT:viewer, not %q", o.Newcomers))
	}
	return nil
}

// Join is the project of newcomers and their role in it; "" where nobody joins.
func (o OAuth) Join() (project, role string) {
	at := strings.LastIndexByte(o.Newcomers, ':')
	if at <= 0 {
		return "", ""
	}
	return o.Newcomers[:at], o.Newcomers[at+1:]
}

// guarded says whether nobody on the way can change what an address says: it is of https, or of this machine.
func guarded(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback())
}
