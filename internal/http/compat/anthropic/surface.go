package anthropic

import (
	"net/http"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/http/protocol"
)

// Surface returns the interface as the server's front door takes it. Keys come as x-api-key or Authorization, which every surface takes.
func Surface(o Options) protocol.Surface {
	var all []protocol.Route
	for _, r := range routes() {
		method, path, _ := strings.Cut(r.pattern, " ")
		all = append(all, protocol.Route{Method: method, Pattern: Prefix + path, Actions: r.needs, Large: r.pattern == "POST /v1/files"})
	}
	return protocol.Surface{
		About: "Anthropic's API: a client's base URL ends here", Prefix: Prefix + "/",
		Handler: New(o), Routes: all,
		Refuse: func(w http.ResponseWriter, _ *http.Request, p *problem.Error) { Refuse(w, p) },
	}
}
