package gvisor

import (
	"os"
	"path/filepath"
)

// CloseStrays is closeStrays, for a process of a test's own.
var CloseStrays = closeStrays

// CreateAtMost has each warden of an engine create so many sandboxes.
func CreateAtMost(e *Engine, n int) { e.most = n }

// UnifiedGroup is where the cgroup of a sandbox is where cgroups are of version 2.
func UnifiedGroup(id string) string {
	top := cgroupRoot
	if os.Geteuid() != 0 {
		top = delegated()
	}
	return filepath.Join(top, cgroupParent, id)
}
