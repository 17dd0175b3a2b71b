package debs

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/egress"
)

// lookUpPatience bounds how long the addresses of a package source are looked for.
const lookUpPatience = 10 * time.Second

// sources says how the host's apt reaches what it installs from: rules for the hosts, and the options that name proxies.
func sources(ctx context.Context) (rules egress.Rules, options []string, err error) {
	apt, err := exec.LookPath("apt-get")
	if err != nil {
		return rules, nil, problem.New(problem.SystemPackagesUnsupported, "packages.system is for Debian and its kin, and this machine has no apt-get").
			WithHint("install the programs on this machine, whose programs every sandbox has, and leave packages.system empty").WithCause(err)
	}
	said, err := exec.CommandContext(ctx, apt, "indextargets", "--format", "$(SITE)").Output() //nolint:gosec // the machine's own
	if err != nil {
		return rules, nil, problem.New(problem.SystemPackagesFailed, "this machine's apt-get does not say which package sources it has").WithHint("see that `apt-get indextargets` works").WithCause(err)
	}
	var allow []string
	for site := range strings.Lines(string(said)) {
		if u, err := url.Parse(strings.TrimSpace(site)); err == nil && u.Hostname() != "" {
			allow = append(allow, rulesFor(ctx, u)...)
		}
	}
	for scheme, proxy := range proxies(ctx) {
		u, err := url.Parse(proxy)
		if err != nil || u.Hostname() == "" {
			continue
		}
		if u.User != nil {
			return rules, nil, problem.New(problem.SystemPackagesFailed, "apt's proxy "+u.Host+" has a password, which no sandbox is given").WithHint("name a proxy or a mirror without one in the settings of apt")
		}
		allow, options = append(allow, rulesFor(ctx, u)...), append(options, "-o", "Acquire::"+scheme+"::Proxy="+proxy)
	}
	rules, err = egress.ParseRules(allow[:min(len(allow), egress.MostRules)], nil)
	if err == nil && len(allow) == 0 {
		err = problem.New(problem.SystemPackagesFailed, "this machine's apt has no package source that is reached over the network").WithHint("name a mirror in /etc/apt/sources.list")
	}
	return rules, options, err
}

// proxies are those by which the host's apt reaches its sources, by scheme.
func proxies(ctx context.Context) map[string]string {
	found := map[string]string{}
	for _, scheme := range []string{"http", "https"} {
		said, err := exec.CommandContext(ctx, "apt-config", "dump", "--format", "%v%n", "Acquire::"+scheme+"::Proxy").Output() //nolint:gosec // one of two words
		proxy := strings.TrimSpace(string(said))
		if err != nil || proxy == "" {
			proxy = os.Getenv(scheme + "_proxy")
		}
		if proxy != "" && proxy != "DIRECT" {
			found[scheme] = proxy
		}
	}
	return found
}

// rulesFor allow a host and its addresses, since only a rule that names it lets a private address be reached.
func rulesFor(ctx context.Context, u *url.URL) (rules []string) {
	port := ""
	if u.Port() != "" {
		port = ":" + u.Port()
	}
	hosts := []string{u.Hostname()}
	ctx, cancel := context.WithTimeout(ctx, lookUpPatience)
	defer cancel()
	if _, err := netip.ParseAddr(u.Hostname()); err != nil {
		found, _ := net.DefaultResolver.LookupHost(ctx, u.Hostname()) // apt says what cannot be found
		hosts = append(hosts, found...)
	}
	for _, h := range hosts {
		if strings.Contains(h, ":") {
			h = "[" + h + "]"
		}
		rules = append(rules, h+port)
	}
	return rules
}
