package client

import (
	"context"

	"cove/internal/http/api"
)

// ToolServers lists the servers whose tools code may call, and starts those that do not run.
func (c *Client) ToolServers(ctx context.Context) ([]api.ToolServer, error) {
	out, err := get[api.List[api.ToolServer]](ctx, c, "/tool-servers", nil)
	return out.Items, err
}
