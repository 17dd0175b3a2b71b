package live

import (
	"context"
	"fmt"

	"cove/internal/machine/guestlink"
	"cove/internal/sessions/ondisk"
)

// sessionLive is a named session in memory, with the kernels, variables and packages of its Live.
type sessionLive struct {
	*ondisk.LeasedSession
	Kernels
	TreeReader
	Installer
	Inspector
	Programs
	PortDialer
	Networked
	FileSystem
}

// UseFiles implements FileSystem: changes are kept on the disk, as those of the workspace are.
func (l sessionLive) UseFiles(ctx context.Context, change bool, use func(guestlink.Files) error) error {
	return l.LeasedSession.UseFiles(ctx, change, use)
}

// SessionOf returns a named session as a Live.
func SessionOf(s *ondisk.LeasedSession) (Live, error) {
	if l, ok := any(s).(Live); ok {
		return l, nil
	}
	inner, ok := s.Live.(Live)
	if !ok {
		return nil, fmt.Errorf("a %T cannot be a server's session", s.Live)
	}
	return sessionLive{LeasedSession: s, Kernels: inner, TreeReader: inner, Installer: inner, Inspector: inner, Programs: inner, PortDialer: inner, Networked: inner, FileSystem: inner}, nil
}
