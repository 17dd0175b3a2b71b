package hub

import (
	"cove/internal/server/hub/live"
)

// Masked yields the output of a process with masks.
var Masked = live.Masked
