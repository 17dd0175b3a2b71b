package cli

import (
	"bytes"
	"context"
	"iter"
	"regexp"
	"strings"
	"sync"

	"cove/internal/kernel"
	"cove/internal/pydeps/require"
)

// pipCell is code that is nothing but an installation, such as %pip install cowsay.
var pipCell = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*[%!]\s*(?:python3? -m )?(?:uv\s+)?pip3?\s+install\s[^\n]*\s*$`)
})

// saidOnce runs code that installs packages. cove has installed them when the code begins, and said so with what it took; that pip, which finds them there, says so too is left
// out, and so is that it does not find what cove has just said why it is not installed.
type saidOnce struct{ runner }

// saidOnceOf is s, or saidOnce for code that is nothing but an installation.
func saidOnceOf(s runner, code string) runner {
	if pipCell().MatchString(code) {
		return saidOnce{s}
	}
	return s
}

// Execute implements runner.
func (s saidOnce) Execute(ctx context.Context, req kernel.Request) iter.Seq2[kernel.Event, error] {
	return func(yield func(kernel.Event, error) bool) {
		installed, refused := map[string]bool{}, false
		for e, err := range s.runner.Execute(ctx, req) {
			switch said := e.(type) {
			case kernel.Install:
				for _, p := range said.Provision.Installed {
					installed[require.Normalize(p.Name)] = true
				}
				refused = refused || said.Failure != nil || len(said.Provision.Refused) > 0
			case kernel.Stream:
				if said.Data = withoutPip(said.Data, installed, refused); len(said.Data) == 0 {
					continue
				}
				e = said
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// withoutPip takes away what the pip of the sandbox says of packages that it was said of that they were installed or, with refused, not installed.
func withoutPip(text []byte, installed map[string]bool, refused bool) []byte {
	if refused && bytes.HasPrefix(text, []byte("ERROR: No matching distribution found for ")) {
		return nil
	}
	var kept []byte
	for line := range bytes.Lines(text) {
		name, satisfied := strings.CutPrefix(string(line), "Requirement already satisfied: ")
		if end := strings.IndexAny(name, " [=<>!~;(@"); satisfied && end > 0 && installed[require.Normalize(name[:end])] {
			continue
		}
		kept = append(kept, line...)
	}
	return kept
}
