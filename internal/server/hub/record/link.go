package record

import (
	"context"
	"path"
	"time"

	"cove/internal/server/auth"
)

// What a link is for.
const (
	LinkRead  = "read"  // shows a file
	LinkWrite = "write" // takes one
	LinkPort  = "port"  // leads to a port
	// LinkMachine is for a whole session as a machine: code, processes, files and ports. A surface makes it whose clients have a token for each session.
	LinkMachine = "machine"
)

// SessionLink shows a file of a session, takes one, or leads to a port of it, for all who have its code and no key. It has the rights that its maker has at the time when it is
// used, and ends with the key that made it.
type SessionLink struct {
	ID      string // ident.Link
	Hash    string // of the code; see auth.CodeHash
	Project string
	User    string // who made it
	Key     string // with which; "" in a browser
	Session string
	Purpose string
	Path    string // of a file
	Port    int
	Open    bool // the port is open to all who know its name
	Wakes   bool // it loads a session that is paused
	Created time.Time
	Expires time.Time // zero: never
}

// LinkStore keeps the links of sessions. Not found: link_not_found.
type LinkStore interface {
	// AddLink writes a link unless its session has as many already: too_many_links. Not found: session_not_found.
	AddLink(ctx context.Context, l SessionLink, most int) error
	Links(ctx context.Context, project, session string) ([]SessionLink, error) // the newest first
	DeleteLink(ctx context.Context, project, session, id string) error
	// LinkOf returns the link whose code has a hash, and its maker's role now. What has expired, or whose maker or key is gone, is not found.
	LinkOf(ctx context.Context, hash string, now time.Time) (SessionLink, auth.Role, error)
	// OpenPort is LinkOf for the open link to a port.
	OpenPort(ctx context.Context, session string, port int, now time.Time) (SessionLink, auth.Role, error)
}

var machineRights = []auth.Action{auth.SessionsRead, auth.SessionsWrite, auth.SessionsExecute, auth.FilesRead, auth.FilesWrite}

// Rights are what a link lets others do, all of which its maker needs.
func (l SessionLink) Rights() []auth.Action {
	rights := map[string][]auth.Action{LinkRead: {auth.FilesRead}, LinkWrite: {auth.FilesWrite}, LinkPort: {auth.SessionsExecute}, LinkMachine: machineRights}[l.Purpose]
	if path.IsAbs(l.Path) {
		rights = append(rights, auth.SessionsExecute)
	}
	return rights
}
