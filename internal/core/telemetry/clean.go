package telemetry

import (
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"

	"cove/internal/core/ident"
)

// cleaned stands in a log line for what must not be in it.
const cleaned = "[redacted]"

// shortestSecret is the length from which a configured secret is looked for in every text: shorter ones are in ordinary words.
const shortestSecret = 8

// cleaner takes secrets out of texts: those that it was told, and what looks like one. It stops accidents, not an adversary.
// A nil one knows the looks alone.
type cleaner struct{ known *strings.Replacer }

// newCleaner returns a cleaner that knows the secrets' exact texts.
func newCleaner(secrets []string) *cleaner {
	var pairs []string
	// The longest first: one may be the beginning of another.
	sorted := slices.SortedFunc(slices.Values(secrets), func(a, b string) int { return len(b) - len(a) })
	for _, s := range sorted {
		if len(s) >= shortestSecret {
			pairs = append(pairs, s, cleaned)
		}
	}
	return &cleaner{strings.NewReplacer(pairs...)}
}

// look is a pattern of secrets with what replaces them.
type look struct {
	hint    []string // one of these must be in the text, or the pattern is not tried: most lines have none
	pattern *regexp.Regexp
	with    string
}

// The patterns never change; compiling them for every line would cost more than the line.
var looks = sync.OnceValue(func() []look {
	return []look{
		{[]string{"cove_"}, regexp.MustCompile(`cove_[0-9a-z]{8,}_[0-9a-z_]*`), cleaned},
		{[]string{"sk-", "sk_", "pk_", "rk_"}, regexp.MustCompile(`\b[spr]k[-_][A-Za-z0-9_-]{8,}`), cleaned},
		{[]string{"gh", "hf_", "glpat", "xox", "AIza", "AKIA"},
			regexp.MustCompile(`\b(?:gh[pousr]_|github_pat_|hf_|glpat-|xox[abprs]-|AIza|AKIA)[A-Za-z0-9_-]{10,}`), cleaned},
		{[]string{"eyJ"}, regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*`), cleaned},
		{[]string{"earer", "EARER", "asic ", "ASIC "}, regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{4,}`), "$1 " + cleaned},
		{[]string{"://"}, regexp.MustCompile(`(://[^\s/:@"']*):[^\s/"']*@`), "$1:" + cleaned + "@"},
		{[]string{"="}, regexp.MustCompile(`(?i)\b((?:[a-z0-9]+[-_])*(?:password|passwd|pwd|secret|token|api_?key|access_?key))=('[^']*'|"[^"]*"|[^\s&"']+)`), "$1=" + cleaned},
		{[]string{"ey:", "ey\":", "EY:", "uthorization", "UTHORIZATION", "ey\\\":"},
			regexp.MustCompile(`(?i)((?:x-api-key|api[-_]?key|authorization)\\?"?\s*:\s*\\?"?)[^\s",\\]+(?: [^\s",\\]+)?`), "$1" + cleaned},
		{[]string{"PRIVATE KEY"}, regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`), cleaned},
	}
})

// text returns s without secrets.
func (c *cleaner) text(s string) string {
	if c != nil && c.known != nil {
		s = c.known.Replace(s)
	}
	for _, l := range looks() {
		if slices.ContainsFunc(l.hint, func(h string) bool { return strings.Contains(s, h) }) {
			s = l.pattern.ReplaceAllString(s, l.with)
		}
	}
	return s
}

// attr is slog's ReplaceAttr: it sees every attribute of a line, the message too.
func (c *cleaner) attr(_ []string, a slog.Attr) slog.Attr {
	a.Value = a.Value.Resolve()
	switch a.Value.Kind() {
	case slog.KindString, slog.KindAny:
		a.Value = slog.AnyValue(c.value(a.Key, a.Value))
	case slog.KindGroup:
		// slog asks for each member by itself; spans have no groups and ask here.
		var members []any
		for _, m := range a.Value.Group() {
			members = append(members, c.attr(nil, m))
		}
		return slog.Group(a.Key, members...)
	}
	return a
}

func (c *cleaner) value(name string, v slog.Value) any {
	s := v.String()
	if v.Kind() == slog.KindAny {
		switch x := v.Any().(type) {
		case nil, slog.Level, *slog.Source:
			return x // of the line itself
		case []byte:
			s = string(x)
		default:
			s = fmt.Sprintf("%+v", x)
		}
	}
	if secretName(name) && s != "" && !ident.Valid(ident.Key, s) {
		return cleaned
	}
	return c.text(s)
}

// separators are what parts of a name may be joined with. Making a replacer costs more than a line, so there is one.
var separators = strings.NewReplacer("-", "", "_", "", ".", "")

// secretName says whether an attribute of that name would hold a secret. The id of a key is none, and is told by its form.
func secretName(name string) bool {
	n := strings.ToLower(separators.Replace(name))
	for _, part := range []string{"secret", "password", "passwd", "authorization", "cookie", "credential", "privatekey", "dsn"} {
		if strings.Contains(n, part) {
			return true
		}
	}
	return strings.HasSuffix(n, "key") || strings.HasSuffix(n, "token") || strings.HasSuffix(n, "keys") || n == "bearer" || n == "pwd"
}

// Clean returns s without what looks like a secret, for what callers send and the server writes down: request ids, names of programs.
func Clean(s string) string { return (*cleaner)(nil).text(s) }
