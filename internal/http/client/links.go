package client

import (
	"context"
	"net/http"

	"cove/internal/http/api"
)

// NewLink says what to make a link to; see the API's document.
type NewLink struct {
	Purpose string `json:"purpose"`
	Path    string `json:"path,omitempty"`
	Port    int    `json:"port,omitempty"`
	Open    bool   `json:"open,omitempty"`
	Wakes   bool   `json:"wakes,omitempty"`
	Seconds *int64 `json:"seconds,omitempty"`
}

// CreateLink makes a link to a file or a port of a session.
func (c *Client) CreateLink(ctx context.Context, session string, n NewLink) (api.MadeLink, error) {
	return act[api.MadeLink](ctx, c, http.MethodPost, "/sessions"+join(session, "links"), n)
}

// Links lists the links of a session, the newest first.
func (c *Client) Links(ctx context.Context, session string) ([]api.SessionLink, error) {
	out, err := get[api.List[api.SessionLink]](ctx, c, "/sessions"+join(session, "links"), nil)
	return out.Items, err
}

// DeleteLink withdraws a link.
func (c *Client) DeleteLink(ctx context.Context, session, id string) error {
	return c.delete(ctx, "/sessions"+join(session, "links", id), nil)
}
