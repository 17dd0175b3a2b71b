package e2b

import (
	"encoding/json"
	"time"

	"cove/internal/core/ident"
	"cove/internal/http/protocol"
	"cove/internal/server/hub"
)

// What a session's metadata says of a sandbox.
const (
	kindEntry   = "e2b.kind"
	recordEntry = "e2b.record"

	kindSandbox  = "sandbox"
	kindSnapshot = "snapshot"
	kindBuild    = "build"    // of a template, while it is made
	kindTemplate = "template" // a session that sandboxes are forked from
)

// record is what the hub does not know of a sandbox. Its client's own metadata is in it, because E2B does not bound that as cove does.
type record struct {
	Template   string            `json:"template"`
	Name       string            `json:"name,omitempty"`  // of a snapshot or a template; of a sandbox that of its template
	User       string            `json:"user,omitempty"`  // who commands run as that say no user; "": user
	Dir        string            `json:"dir,omitempty"`   // where they run; "": in the user's folder
	Built      *built            `json:"built,omitempty"` // of a template
	Of         string            `json:"of,omitempty"`    // of a snapshot: the session that it was made from
	Started    time.Time         `json:"started"`
	End        time.Time         `json:"end"`
	AutoPause  bool              `json:"auto_pause,omitempty"`  // it is paused at its end, not killed
	AutoResume bool              `json:"auto_resume,omitempty"` // a request wakes it
	Forgets    bool              `json:"forgets,omitempty"`     // at its end it is paused without its memory
	Paused     bool              `json:"paused,omitempty"`      // by its client
	Memory     string            `json:"memory,omitempty"`      // while it is paused: what became of it
	Closed     bool              `json:"closed,omitempty"`      // its ports take the traffic token
	Offline    bool              `json:"offline,omitempty"`     // it asked for no internet
	Network    json.RawMessage   `json:"network,omitempty"`     // as its client said it, but for the values of headers that are added
	Mask       string            `json:"mask,omitempty"`        // the host that requests to its ports name, with ${PORT}; "": their own
	Env        map[string]string `json:"env,omitempty"`
	Metadata   map[string]string `json:"metadata,omitempty"`
	Contexts   []codeContext     `json:"contexts,omitempty"` // beside the first
}

// recordOf reads the record of a session; ok is false for one that is no sandbox.
func recordOf(s hub.Session, kind string) (r record, ok bool) {
	if s.Metadata[kindEntry] != kind || s.State == hub.SessionDeleted {
		return record{}, false
	}
	return r, json.Unmarshal([]byte(s.Metadata[recordEntry]), &r) == nil
}

// entries are what of a session's metadata says this, beside what else is there.
func (r record) entries(kind string, others map[string]string) (map[string]string, error) {
	return protocol.Record{Kind: kindEntry, Text: recordEntry, Of: "the metadata and the variables of the sandbox"}.Entries(kind, r, others)
}

// asleep says whether a sandbox is paused for its client, whether or not the hub has it in memory.
func (r record) asleep(now time.Time) bool { return r.Paused || r.AutoPause && !now.Before(r.End) }

// rings is when the clock of a sandbox ends it; zero: it is paused.
func (r record) rings() time.Time {
	if r.Paused {
		return time.Time{}
	}
	return r.End
}

// over says whether a sandbox is as good as deleted.
func (r record) over(now time.Time) bool { return !r.Paused && !r.AutoPause && !now.Before(r.End) }

// sandboxID is the id under which clients know a session: what follows its prefix has letters and digits alone.
func sandboxID(session string) string { return ident.Body(session) }
