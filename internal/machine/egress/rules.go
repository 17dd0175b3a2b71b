package egress

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/idna"

	"cove/internal/core/problem"
)

// Rules say which destinations are allowed. What both Allow and Deny name is denied. Rules without any Allow allow nothing.
type Rules struct{ Allow, Deny []Rule }

// MostRules bounds a list of rules.
const MostRules = 256

// usualPorts are those of a rule that names none.
var usualPorts = []int{80, 443}

// Rule is a destination: a name, all names below one, all names, or a network of addresses.
type Rule struct {
	text   string
	name   string       // "" for addresses
	below  bool         // names below name, and not name itself
	all    bool         // "*": every name, and every public address
	prefix netip.Prefix // for addresses
	ports  []int        // nil: usualPorts of what is allowed, every port of what is denied
}

func (r Rule) String() string { return r.text }

// ParseRules reads lists of rules. Problems: network_rule.
func ParseRules(allow, deny []string) (rules Rules, err error) {
	if rules.Allow, err = parseAll(allow); err != nil {
		return Rules{}, err
	}
	rules.Deny, err = parseAll(deny)
	return rules, err
}

func parseAll(texts []string) (all []Rule, err error) {
	if len(texts) > MostRules {
		return nil, problem.New(problem.NetworkRule, fmt.Sprintf("there are %d rules for the network; there may be %d", len(texts), MostRules))
	}
	for _, t := range texts {
		r, err := ParseRule(t)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// ParseRule reads HOST or HOST:PORTS, where HOST is a name, *.NAME for all names below one, an address, a network as 10.0.0.0/8, or * for the public internet, and PORTS are
// numbers with commas between them. An IPv6 address with ports is in brackets. Problems: network_rule.
func ParseRule(text string) (Rule, error) {
	wrong := func(why string) (Rule, error) {
		return Rule{}, problem.New(problem.NetworkRule, fmt.Sprintf("%.200q is no rule for the network: %s", text, why)).
			WithHint("write example.com, *.example.com, 10.1.2.0/24 or *, with :443 or :80,8080 for other ports than 80 and 443")
	}
	if strings.Contains(text, "://") || strings.Contains(text, "@") {
		return wrong("it is a host, not an address of a page")
	}
	host, ports, hasPorts := cutPorts(strings.TrimSpace(text))
	r := Rule{text: text}
	if hasPorts {
		for p := range strings.SplitSeq(ports, ",") {
			n, err := strconv.Atoi(strings.TrimSpace(p))
			if err != nil || n < 1 || n > 65535 {
				return wrong(fmt.Sprintf("%q is not a port", p))
			}
			r.ports = append(r.ports, n)
		}
		if len(r.ports) > 32 {
			return wrong("it has more than 32 ports")
		}
	}
	if host == "*" {
		r.all = true
		return r, nil
	}
	if p, err := parsePrefix(host); err == nil {
		r.prefix = p
		return r, nil
	}
	host, r.below = strings.CutPrefix(host, "*.")
	ascii, err := idna.Lookup.ToASCII(strings.TrimSuffix(strings.ToLower(host), "."))
	if err != nil || !isName(ascii) {
		return wrong("its host is neither a name nor an address")
	}
	r.name = ascii
	return r, nil
}

// cutPorts separates the ports from a host, which may be an IPv6 address with or without brackets.
func cutPorts(s string) (host, ports string, has bool) {
	if inner, ok := strings.CutPrefix(s, "["); ok {
		host, rest, _ := strings.Cut(inner, "]")
		ports, has = strings.CutPrefix(rest, ":")
		return host, ports, has
	}
	if strings.Count(s, ":") > 1 {
		return s, "", false
	}
	return strings.Cut(s, ":")
}

func parsePrefix(s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		if a.Zone() != "" {
			return netip.Prefix{}, fmt.Errorf("%s has a zone", s)
		}
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	if err == nil && p.Addr().Is4In6() {
		return netip.Prefix{}, fmt.Errorf("%s is an IPv4 network in IPv6 form", s)
	}
	return p.Masked(), err
}

func (r Rule) matchesName(name string) bool {
	switch {
	case r.all:
		return true
	case r.name == "":
		return false
	case r.below:
		return strings.HasSuffix(name, "."+r.name)
	}
	return name == r.name
}

// allowsPort says whether what the rule allows is allowed at a port, at any if that is 0.
func (r Rule) allowsPort(port int) bool {
	return port == 0 || slices.Contains(r.ports, port) || r.ports == nil && slices.Contains(usualPorts, port)
}

// deniesPort says whether what the rule denies is denied at a port. A name is denied as a whole by a rule without ports alone.
func (r Rule) deniesPort(port int) bool { return r.ports == nil || slices.Contains(r.ports, port) }

// names returns why a name may not be reached at a port, at any if that is 0, or "".
func (rs Rules) names(name string, port int) string {
	if r, denied := rs.denier(name, port); denied {
		return fmt.Sprintf("the rule %s denies it", r)
	}
	otherPort := false
	for _, r := range rs.Allow {
		if !r.matchesName(name) {
			continue
		}
		if r.allowsPort(port) {
			return ""
		}
		otherPort = true
	}
	if otherPort {
		return "no rule allows this port"
	}
	if len(rs.Allow) == 0 {
		return "nothing is allowed"
	}
	return "no rule allows it"
}

// denier returns the rule that denies a name at a port, at any if that is 0.
func (rs Rules) denier(name string, port int) (by Rule, denied bool) {
	for _, r := range rs.Deny {
		if r.matchesName(name) && r.deniesPort(port) {
			return r, true
		}
	}
	return Rule{}, false
}

func (rs Rules) deniesAddress(a netip.Addr, port int) bool {
	return slices.ContainsFunc(rs.Deny, func(r Rule) bool { return r.prefix.IsValid() && r.prefix.Contains(a) && r.deniesPort(port) })
}

// allowsAddress says whether a program may name an address itself.
func (rs Rules) allowsAddress(a netip.Addr, port int) bool {
	return slices.ContainsFunc(rs.Allow, func(r Rule) bool { return (r.all || r.prefix.IsValid() && r.prefix.Contains(a)) && r.allowsPort(port) })
}

// namesAddress says whether a rule is for the network of an address; exactly, for the address alone.
func (rs Rules) namesAddress(a netip.Addr, port int, exactly bool) bool {
	return slices.ContainsFunc(rs.Allow, func(r Rule) bool {
		return r.prefix.IsValid() && r.prefix.Contains(a) && (!exactly || r.prefix.IsSingleIP()) && (port == 0 || r.ports == nil || slices.Contains(r.ports, port))
	})
}

// Covers says whether everything that r allows is allowed by one rule of these.
func (rs Rules) Covers(r Rule) bool {
	return slices.ContainsFunc(rs.Allow, func(o Rule) bool {
		for _, port := range r.portsOrUsual() {
			if !o.allowsPort(port) {
				return false
			}
		}
		switch {
		case r.all:
			return o.all
		case r.name == "":
			return o.all || o.prefix.IsValid() && o.prefix.Bits() <= r.prefix.Bits() && o.prefix.Contains(r.prefix.Addr())
		case r.below:
			return o.all || o.below && (r.name == o.name || strings.HasSuffix(r.name, "."+o.name))
		}
		return o.matchesName(r.name)
	})
}

func (r Rule) portsOrUsual() []int {
	if r.ports == nil {
		return usualPorts
	}
	return r.ports
}

// texts returns the rules as they were written.
func texts(rules []Rule) []string {
	all := make([]string, 0, len(rules))
	for _, r := range rules {
		all = append(all, r.text)
	}
	return all
}
