package hub

import (
	"fmt"

	"cove/internal/named"
)

// sessionLive is a named session in memory, with the kernels, variables and packages of its Live.
type sessionLive struct {
	*named.LeasedSession
	Kernels
	TreeReader
	Installer
	Inspector
	Programs
	PortDialer
	Networked
	FileSystem
}

// LiveOf returns a named session as a Live.
func LiveOf(s *named.LeasedSession) (Live, error) {
	if l, ok := any(s).(Live); ok {
		return l, nil
	}
	inner, ok := s.Live.(Live)
	if !ok {
		return nil, fmt.Errorf("a %T cannot be a server's session", s.Live)
	}
	return sessionLive{LeasedSession: s, Kernels: inner, TreeReader: inner, Installer: inner, Inspector: inner, Programs: inner, PortDialer: inner, Networked: inner, FileSystem: inner}, nil
}
