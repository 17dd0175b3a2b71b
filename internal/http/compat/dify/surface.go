package dify

import (
	"net/http"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/http/protocol"
)

// Surface returns the interface as the server's front door takes it.
func Surface(o Options) protocol.Surface {
	var all []protocol.Route
	for _, r := range routes() {
		method, pattern, _ := strings.Cut(r.pattern, " ")
		all = append(all, protocol.Route{Method: method, Pattern: pattern, Actions: r.needs})
	}
	return protocol.Surface{
		About: "Dify's sandbox, for its code nodes", Prefix: "/v1/sandbox/",
		Handler: New(o), Routes: all,
		Refuse: func(w http.ResponseWriter, _ *http.Request, p *problem.Error) { Refuse(w, p) },
	}
}
