package daytona

import (
	"encoding/json"
	"time"

	"cove/internal/core/ident"
	"cove/internal/http/protocol"
	"cove/internal/server/hub"
)

// What a session's metadata says of a sandbox.
const (
	kindEntry   = "daytona.kind"
	nameEntry   = "daytona.name"
	recordEntry = "daytona.record"

	kindSandbox  = "sandbox"
	kindSnapshot = "snapshot"
)

// languageLabel is the label in which clients keep the language of a sandbox.
const languageLabel = "code-toolbox-language"

// record is what the hub does not know of a sandbox, or of a snapshot. Intervals are minutes.
type record struct {
	Name     string            `json:"name"`
	Labels   map[string]string `json:"labels,omitempty"`
	Env      map[string]string `json:"env,omitempty"`
	Snapshot string            `json:"snapshot,omitempty"` // that it was made from, as its client said it
	Image    string            `json:"image,omitempty"`    // the same, of clients before there were snapshots
	Build    string            `json:"build,omitempty"`    // the same, as lines of a Dockerfile
	Of       string            `json:"of,omitempty"`       // the session that it was forked from
	Target   string            `json:"target,omitempty"`
	Created  time.Time         `json:"created"`
	Changed  time.Time         `json:"changed"`
	Seen     time.Time         `json:"seen"`             // when it was used last, as far as was recorded
	Stopped  time.Time         `json:"stopped,omitzero"` // zero: it runs, unless the time without use is over
	Paused   bool              `json:"paused,omitempty"` // it was paused, not stopped
	Archived bool              `json:"archived,omitempty"`
	Public   bool              `json:"public,omitempty"` // its ports are open to all
	BlockAll bool              `json:"block_all,omitempty"`
	Networks string            `json:"networks,omitempty"` // that it may reach, as its client said it
	Domains  string            `json:"domains,omitempty"`
	Rotated  int               `json:"rotated,omitempty"` // how often its signing key was changed
	Dir      string            `json:"dir,omitempty"`     // in which what clients start begins; "": the home
	Building bool              `json:"building,omitempty"`
	Failed   string            `json:"failed,omitempty"` // why its image could not be built

	AutoStop    int64 `json:"auto_stop"`    // 0: never
	AutoPause   int64 `json:"auto_pause"`   // 0: never
	AutoArchive int64 `json:"auto_archive"` // 0: the longest
	AutoDelete  int64 `json:"auto_delete"`  // below 0: never
	TTL         int64 `json:"ttl"`          // 0: none

	Dies time.Time `json:"dies,omitzero"` // when the TTL is over
}

// recordOf reads the record of a session; ok is false for one that is nothing of this kind.
func recordOf(s hub.Session, kind string) (r record, ok bool) {
	if s.Metadata[kindEntry] != kind || s.State == hub.SessionDeleted {
		return record{}, false
	}
	return r, json.Unmarshal([]byte(s.Metadata[recordEntry]), &r) == nil
}

// entries are what of a session's metadata says this, beside what else is there.
func (r record) entries(kind string, others map[string]string) (map[string]string, error) {
	all, err := protocol.Record{Kind: kindEntry, Text: recordEntry, Of: "the labels and the variables of the sandbox"}.Entries(kind, r, others)
	if err != nil {
		return nil, err
	}
	if delete(all, nameEntry); r.Name != "" {
		all[nameEntry] = r.Name
	}
	return all, nil
}

func (r record) language() string {
	switch l := r.Labels[languageLabel]; l {
	case "typescript", "javascript":
		return l
	}
	return "python"
}

// sandboxID is the id under which clients know a session.
func sandboxID(session string) string { return ident.Body(session) }

// sessionOf returns the id of the session behind a sandbox's.
func sessionOf(id string) (string, bool) {
	session := ident.Session + "_" + id
	return session, ident.Valid(ident.Session, session)
}

// The states of a sandbox that clients are told. Those in between are none here, but for images: requests are answered when they are done.
const (
	started   = "started"
	stopped   = "stopped"
	paused    = "paused"
	archived  = "archived"
	destroyed = "destroyed"
)

// The states of a sandbox whose image is not there yet: that in which it is answered, that in which it is shown then, and the last where it cannot be built.
const (
	pendingBuild  = "pending_build"
	buildingState = "building_snapshot"
	buildFailed   = "build_failed"
)

const (
	defaultAutoStop    = 15
	defaultAutoArchive = 7 * 24 * 60
	longestArchive     = 30 * 24 * 60
	longestInterval    = 10 * 365 * 24 * 60
	// longestLife is how long a sandbox is kept that nobody uses.
	longestLife = 30 * 24 * time.Hour
)

func minutes(n int64) time.Duration { return time.Duration(n) * time.Minute }

// life is what a record means at a time.
type life struct {
	state string
	stops time.Time // when it stops, or did; zero: never
	ends  time.Time // when it is to be deleted; zero: never
}

// quiet is how many minutes without use stop or pause a sandbox; 0: none do.
func (r record) quiet() int64 { return max(r.AutoStop, r.AutoPause) }

// at returns the life of a sandbox that was used last at a time.
func (r record) at(now, used time.Time) (l life) {
	switch {
	case r.Building:
		return life{state: buildingState}
	case r.Failed != "":
		return life{state: buildFailed}
	}
	l.state, l.stops = started, r.Stopped
	if r.Stopped.IsZero() && r.quiet() > 0 {
		l.stops = used.Add(minutes(r.quiet()))
	}
	if over := !l.stops.IsZero() && !now.Before(l.stops); over {
		archives := l.stops.Add(minutes(longestArchive))
		if r.AutoArchive > 0 {
			archives = l.stops.Add(minutes(r.AutoArchive))
		}
		switch {
		case r.Paused || r.Stopped.IsZero() && r.AutoPause > 0:
			l.state = paused
		case r.Archived, !now.Before(archives):
			l.state = archived
		default:
			l.state = stopped
		}
	}
	if r.AutoDelete >= 0 && !l.stops.IsZero() {
		l.ends = l.stops.Add(minutes(r.AutoDelete))
	}
	if !r.Dies.IsZero() && (l.ends.IsZero() || r.Dies.Before(l.ends)) {
		l.ends = r.Dies
	}
	return l
}

// live has a sandbox's life begin at a time.
func (r *record) live(from time.Time) {
	r.Created, r.Changed, r.Seen = from, from, from
	r.setTTL(r.TTL, from)
}

// setTTL has a sandbox be deleted so many minutes after a time, whatever happens; 0: never.
func (r *record) setTTL(n int64, from time.Time) {
	r.TTL, r.Dies = n, time.Time{}
	if n > 0 && n <= longestInterval { // what is more is refused
		r.Dies = from.Add(minutes(n))
	}
}

// over says whether a sandbox is as good as deleted.
func (l life) over(now time.Time) bool { return !l.ends.IsZero() && !now.Before(l.ends) }

// next is when something happens to a sandbox that nobody uses; zero: nothing does.
func (l life) next(now time.Time) time.Time {
	if l.stops.After(now) && (l.ends.IsZero() || l.stops.Before(l.ends)) {
		return l.stops
	}
	return l.ends
}
