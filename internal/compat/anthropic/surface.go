package anthropic

import (
	"net/http"
	"strings"

	"cove/internal/problem"
	"cove/internal/surface"
)

// Surface returns the interface as the server's front door takes it. Keys come as x-api-key or Authorization, which every surface takes.
func Surface(o Options) surface.Surface {
	var all []surface.Route
	for _, r := range routes() {
		method, path, _ := strings.Cut(r.pattern, " ")
		all = append(all, surface.Route{Method: method, Pattern: Prefix + path, Actions: r.needs, Large: r.pattern == "POST /v1/files"})
	}
	return surface.Surface{
		About: "Anthropic's API: a client's base URL ends here", Prefix: Prefix + "/",
		Handler: New(o), Routes: all,
		Refuse: func(w http.ResponseWriter, _ *http.Request, p *problem.Error) { Refuse(w, p) },
	}
}
