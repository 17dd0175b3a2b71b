package record

import (
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"cove/internal/core/problem"
	"cove/internal/machine/egress"
	"cove/internal/machine/sandbox"
)

// metadataFault says why metadata is not valid, or "". Entries that a surface keeps for itself are not counted among the user's, and may be longer; the
// surface bounds them.
func metadataFault(all map[string]string) string {
	users := 0
	for k, v := range all {
		longest := longestSurface
		if !SurfaceOwn(k) {
			longest = longestMetadata
			users++
		}
		if utf8.RuneCountInString(k) > longestKey || utf8.RuneCountInString(v) > longest {
			return "a name in the metadata has more than 64 characters, or a value more than 512"
		}
	}
	if users > mostMetadata || len(all) > mostMetadata+mostSurface {
		return "there are more than 16 entries of metadata"
	}
	return ""
}

// Network says where the programs of a session may connect to, as rules of package egress. Without any that allow, they reach nothing.
type Network struct {
	Allow []string `json:"allow,omitempty"`
	Deny  []string `json:"deny,omitempty"`
	// Credentials are added to requests on the host. In a record they are without their values.
	Credentials []egress.Credential `json:"credentials,omitempty"`
}

// Secrets are what the host adds to what a session sends. They leave the store for that alone; no backup has them.
type Secrets struct {
	Credentials []egress.Credential `json:"credentials"`
	Authority   []byte              `json:"authority"` // of package egress, with its key
}

// KeepSecrets puts the credentials of a network into the record where they are secrets, with an authority for their hosts.
func (s *Session) KeepSecrets(n *Network) error {
	s.Network, s.Secrets = n, nil
	if n == nil || len(n.Credentials) == 0 {
		return nil
	}
	authority, err := egress.NewAuthority(n.Credentials)
	if err != nil {
		return err
	}
	text, err := authority.Marshal()
	if err != nil {
		return err
	}
	s.Secrets = &Secrets{Credentials: n.Credentials, Authority: text}
	shown := *n
	shown.Credentials = nil
	for _, c := range n.Credentials {
		shown.Credentials = append(shown.Credentials, egress.Credential{Host: c.Host, Header: c.Header, Name: c.Name})
	}
	s.Network = &shown
	return nil
}

// NetworkLimits are what the operator says of all sessions.
type NetworkLimits struct {
	Rules egress.Rules // where sessions may connect to at most; without any that allow, no session has a network
	Bytes int64        // what a session sends and receives together while it is in memory; 0: no limit
	Pace  int64        // what it sends and receives in a second, in bytes; 0: no limit
	Audit bool         // each connection, and each destination that was refused, is a row of the audit log
}

// BeginAt has a session's time begin then, which has waited for its image.
func (s *Session) BeginAt(at time.Time) {
	if !s.Expires.IsZero() {
		s.Expires = s.Expires.Add(at.Sub(s.Created))
	}
	s.Created, s.Used = at, at
}

// Bounds of the texts that clients give a session.
const (
	LongestName     = 200
	longestKey      = 64  // characters, of metadata
	longestMetadata = 512 // characters
	longestSurface  = 1 << 20
	mostMetadata    = 16
	mostSurface     = 4 // entries that a surface keeps for itself
	leastMemory     = 64 << 20
	mostMemory      = 1 << 40
)

// InvalidSession is the problem of a field of a session.
func InvalidSession(message string) error {
	return problem.New(problem.SessionInvalid, message)
}

// BriefIdle is the message of a time until a session is paused that is too short.
const BriefIdle = "the time until a session is paused is less than a second"

// Check returns the problem of a session's record that is not valid, or nil. own is the server's set of packages.
func (s Session) Check(own string) error {
	switch {
	case len(s.Name) > LongestName:
		return InvalidSession("the name is longer than 200 bytes")
	case s.Memory < leastMemory || s.Memory > mostMemory:
		return InvalidSession("the memory is not between 64 MiB and 1 TiB")
	case !(s.CPUs >= sandbox.LeastCPUs):
		return InvalidSession(fmt.Sprintf("a session has at least %v CPUs", sandbox.LeastCPUs))
	case s.Idle != 0 && s.Idle < time.Second:
		return InvalidSession(BriefIdle)
	case !s.Expires.IsZero() && !s.Expires.After(s.Created):
		return InvalidSession("the session's life must be longer than 0")
	case !slices.Contains([]string{own, "standard", "standard-2024", "minimal"}, s.Packages):
		return InvalidSession("the set of packages is standard, standard-2024 or minimal")
	}
	if fault := metadataFault(s.Metadata); fault != "" {
		return InvalidSession(fault)
	}
	return nil
}

// SessionUse is a conversation that uses a session.
type SessionUse struct {
	Conversation string
	Title        string
	Files        []string // that its first questions brought
}
