package api

import (
	"net/http"
	"strings"

	"cove/internal/auth"
	"cove/internal/surface"
)

// Surface returns the interface in the form in which package httpd mounts it.
func Surface(o Options) surface.Surface {
	return surface.Surface{
		About: "cove's own API; its documentation is at " + Prefix + "/docs", Prefix: "/api/", Cookies: true,
		Handler: New(o), Routes: surfaceRoutes(), Refuse: Refuse,
	}
}

// documents are the pages without data of users.
var documents = [...]string{"/docs", "/openapi.json", "/openapi-3.0.json"}

// uploads are the operations whose requests have a file as their body.
var uploads = [...]string{"tree.upload", "file.create", "upload.append", "fs.write", "link.write", "port.post", "port.put", "port.patch"}

func surfaceRoutes() []surface.Route {
	var out []surface.Route
	for _, r := range Routes() {
		route := surface.Route{Method: r.Method, Pattern: r.Pattern}
		if r.Action != "" {
			route.Actions = []auth.Action{r.Action}
		}
		if r.Public {
			route.Access = surface.Public
			if strings.HasPrefix(r.ID, "link.") {
				route.Access = surface.ByCode
			}
		}
		for _, id := range uploads {
			route.Large = route.Large || r.ID == id
		}
		out = append(out, route)
	}
	for _, path := range documents {
		out = append(out, surface.Route{Method: http.MethodGet, Pattern: Prefix + path, Access: surface.Documentation})
	}
	return out
}
