package toolserver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/url"
	"slices"
	"strings"
)

const (
	shortestSecret = 6 // bytes; shorter ones are in texts by chance
	hidden         = "[secret]"
)

// scrubber takes a server's secrets out of what the server says. It finds them as they are, and as JSON, addresses and base64 have them; a server that hides them otherwise, it cannot stop.
type scrubber struct{ replace *strings.Replacer }

func newScrubber(secrets []string) scrubber {
	forms := map[string]bool{}
	for _, s := range secrets {
		if len(s) < shortestSecret {
			continue
		}
		forms[s] = true
		if quoted, err := json.Marshal(s); err == nil {
			forms[string(quoted[1:len(quoted)-1])] = true
		}
		forms[strings.ReplaceAll(s, "/", `\/`)] = true
		forms[url.QueryEscape(s)] = true
		forms[base64.StdEncoding.EncodeToString([]byte(s))] = true
	}
	if len(forms) == 0 {
		return scrubber{}
	}
	var list []string
	for s := range forms {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b string) int { return len(b) - len(a) }) // the whole before its parts
	var pairs []string
	for _, s := range list {
		pairs = append(pairs, s, hidden)
	}
	return scrubber{strings.NewReplacer(pairs...)}
}

func (s scrubber) text(text string) string {
	if s.replace == nil {
		return text
	}
	return s.replace.Replace(text)
}

// scrubbing is a log without a server's secrets.
type scrubbing struct {
	slog.Handler
	scrub scrubber
}

// Handle implements slog.Handler.
func (h scrubbing) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(slog.String(a.Key, h.scrub.text(a.Value.String())))
		return true
	})
	return h.Handler.Handle(ctx, out)
}

// WithAttrs implements slog.Handler.
func (h scrubbing) WithAttrs(attrs []slog.Attr) slog.Handler {
	return scrubbing{h.Handler.WithAttrs(attrs), h.scrub}
}

// WithGroup implements slog.Handler.
func (h scrubbing) WithGroup(name string) slog.Handler {
	return scrubbing{h.Handler.WithGroup(name), h.scrub}
}
