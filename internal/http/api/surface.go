package api

import (
	"net/http"
	"strings"

	"cove/internal/http/protocol"
	"cove/internal/server/auth"
)

// Surface returns the interface in the form in which package front mounts it.
func Surface(o Options) protocol.Surface {
	return protocol.Surface{
		About: "cove's own API; its documentation is at " + Prefix + "/docs", Prefix: "/api/", Cookies: true,
		Handler: New(o), Routes: surfaceRoutes(), Refuse: Refuse,
	}
}

// documents are the pages without data of users.
var documents = [...]string{"/docs", "/openapi.json", "/openapi-3.0.json"}

// uploads are the operations whose requests have a file as their body.
var uploads = [...]string{"tree.upload", "file.create", "upload.append", "fs.write", "link.write", "port.post", "port.put", "port.patch"}

func surfaceRoutes() []protocol.Route {
	var out []protocol.Route
	for _, r := range Routes() {
		route := protocol.Route{Method: r.Method, Pattern: r.Pattern}
		if r.Action != "" {
			route.Actions = []auth.Action{r.Action}
		}
		if r.Public {
			route.Access = protocol.Public
			if strings.HasPrefix(r.ID, "link.") {
				route.Access = protocol.ByCode
			}
		}
		for _, id := range uploads {
			route.Large = route.Large || r.ID == id
		}
		out = append(out, route)
	}
	for _, path := range documents {
		out = append(out, protocol.Route{Method: http.MethodGet, Pattern: Prefix + path, Access: protocol.Documentation})
	}
	return out
}
