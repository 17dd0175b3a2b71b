package hub

import "context"

// SweepFiles is what Run does now and then.
func (h *Hub) SweepFiles(ctx context.Context) error { return h.sweepFiles(ctx) }
