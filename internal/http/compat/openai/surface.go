package openai

import (
	"net/http"
	"slices"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/http/protocol"
)

// Surface returns the interface as the server's front door takes it.
func Surface(o Options) protocol.Surface {
	return protocol.Surface{
		About: "OpenAI's API: a client's base URL ends here", Prefix: "/v1/",
		Handler: New(o), Routes: surfaceRoutes(),
		Refuse: func(w http.ResponseWriter, _ *http.Request, p *problem.Error) { Refuse(w, p) },
	}
}

// uploadRoutes are the operations whose requests have a file, or a part of one, as their body.
var uploadRoutes = []string{"POST /v1/files", "POST /v1/containers/{id}/files", "POST /v1/uploads/{id}/parts"}

func surfaceRoutes() []protocol.Route {
	var out []protocol.Route
	for _, r := range Routes() {
		method, pattern, _ := strings.Cut(r.Pattern, " ")
		out = append(out, protocol.Route{Method: method, Pattern: pattern, Actions: r.Needs, Large: slices.Contains(uploadRoutes, r.Pattern)})
	}
	return out
}
