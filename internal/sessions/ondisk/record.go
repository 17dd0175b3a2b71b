package ondisk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"cove/internal/core/durable"
	"cove/internal/core/problem"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/snapshot"
	"cove/internal/python/installation"
)

const (
	recordVersion = 1
	recordName    = "session.json"
	snapshotsName = "snapshots"
	packedSuffix  = ".packed"
)

// Limits are the limits of a session's sandbox, spelled out, so that a change of the defaults does not change a session.
type Limits struct {
	Memory int64   `json:"memory_bytes"`
	CPUs   float64 `json:"cpus"`
	snapshot.Limits
}

// LimitsOf spells out l.
func LimitsOf(l sandbox.Limits) Limits {
	l = l.OrDefault()
	return Limits{Memory: l.Memory, CPUs: l.CPUs, Limits: snapshot.LimitsOf(l)}
}

// Sandbox returns the limits as engines take them.
func (l Limits) Sandbox() sandbox.Limits {
	return sandbox.Limits{Memory: l.Memory, CPUs: l.CPUs, Processes: l.Processes, OpenFiles: l.OpenFiles, Tmp: l.Tmp, Workspace: l.Workspace, System: l.System}
}

// Base is what a session is made of.
type Base struct {
	Engine      string `json:"engine"`
	Packages    string `json:"packages"`    // the set of packages
	Environment string `json:"environment"` // the Python environment's id; "" where it is still to be chosen, by Packages
	Limits      Limits `json:"limits"`
	// Installed is what was installed for the session besides, as its last owner knew.
	Installed installation.State `json:"installed,omitzero"`
	// Kernels are the process ids of its kernels by name, in the sandbox or the snapshot that it goes on with, as its last owner knew; see session.Options.
	Kernels map[string]int `json:"kernels,omitempty"`
	// Parked are the executions that wait in kernels of the head; see session.Options. Only the process that has them knows.
	Parked map[string]string `json:"-"`
	// Volumes are folders that other sessions use, too.
	Volumes []Volume `json:"volumes,omitempty"`
}

// Volume is a folder of a server's that a session has.
type Volume struct {
	Folder string `json:"folder"`        // below that of all volumes
	Sub    string `json:"sub,omitempty"` // a folder in it, that is shown alone
	Path   string `json:"path"`          // where it is inside
}

// Entry is a point in a session's history. Without a Snapshot it is the beginning.
type Entry struct {
	Snapshot   string    `json:"snapshot,omitempty"`
	Saved      time.Time `json:"saved,omitzero"`
	Executions int       `json:"executions"`
	Size       int64     `json:"size_bytes,omitempty"`
	// Elsewhere is what of Size is not in the session's folder: a checkpoint that its engine keeps; see sandbox.CheckpointNamed.
	Elsewhere int64 `json:"elsewhere_bytes,omitempty"`
	// Reseed says that another session goes on from the same snapshot, so that the random generators must be given new seeds.
	Reseed bool `json:"reseed,omitempty"`
	// Kernels are the process ids of the kernels in Snapshot by name.
	Kernels map[string]int `json:"kernels,omitempty"`
	// Kept says that the next save keeps the entry as a point to return to.
	Kept bool `json:"kept,omitempty"`
	// Before names what began at this point, in the caller's words; see LeasedSession.Mark.
	Before []string `json:"before,omitempty"`
	// Packed says that Snapshot is packed (see package snapshot), and Room what it takes then besides what it has in common with older points, in bytes.
	Packed bool  `json:"packed,omitempty"`
	Room   int64 `json:"room_bytes,omitempty"`
	// Made is the cove that made Snapshot, if another one could not restore it: then the entry is the way back, which only removing the session removes.
	Made *snapshot.Maker `json:"made,omitempty"`
}

// hold records how large the entry's snapshot is.
func (e *Entry) hold(snap *snapshot.Snapshot) {
	e.Size, e.Elsewhere = snap.Size(), snap.Manifest.Elsewhere.Size
}

// elsewhere is what the session's snapshots take outside its folder, in bytes.
func (r Record) elsewhere() int64 {
	n := r.Head.Elsewhere
	for _, e := range r.Undo {
		n += e.Elsewhere
	}
	return n
}

// Owner is a process that uses a session.
type Owner struct {
	PID     int       `json:"pid"`
	Command string    `json:"command"`
	Since   time.Time `json:"since"`
}

func (o Owner) String() string {
	return fmt.Sprintf("process %d (%s) since %s", o.PID, o.Command, clock(o.Since))
}

// Memory says that a process keeps the session in memory between commands; see Store.Keep.
type Memory struct {
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
	Idle  float64   `json:"idle_seconds"` // the session is paused after so long without use; 0: never
	// Unsaved says that the session has changed since the head was saved, or may have.
	Unsaved bool `json:"unsaved"`
	// Pinned says that undo returns to the head, so the next save keeps it, as one of this many. 0: the next save need not keep it.
	Pinned int `json:"pinned,omitempty"`
	// Left is a command that was killed while it used the session, which the next command has to say.
	Left *Owner `json:"left,omitempty"`
	// Ended says why the keeper ended, if it could record that itself.
	Ended string `json:"ended,omitempty"`
}

// Notice is something that the user was told about a session.
type Notice struct {
	Time time.Time `json:"time"`
	Text string    `json:"text"`
}

// Record is what session.json says.
type Record struct {
	Version    int       `json:"version"`
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	Created    time.Time `json:"created"`
	Used       time.Time `json:"used"`
	Executions int       `json:"executions"`
	Base
	Python  string  `json:"python,omitempty"`
	Head    Entry   `json:"head"`
	Undo    []Entry `json:"undo"`                // the points to return to, oldest first
	Running *Owner  `json:"running,omitempty"`   // the process that has the session, or had it when it died
	Memory  *Memory `json:"in_memory,omitempty"` // the process that keeps the session in memory, or did when it died
	Notice  *Notice `json:"notice,omitempty"`    // the last one
	Served  bool    `json:"served,omitempty"`    // a hub has made it for its clients, and its record in the database has the name as the id
}

// broken returns the problem of a session that cannot be used at all.
func broken(name, why string) *problem.Error {
	return problem.New(problem.SessionBroken, "session "+name+" is broken: "+why).
		WithHint("`cove session rm " + name + "` removes it")
}

func readRecord(dir, name string) (Record, error) {
	var r Record
	text, err := os.ReadFile(filepath.Join(dir, recordName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r, broken(name, recordName+" is missing")
	case err != nil:
		return r, broken(name, recordName+" cannot be read").WithCause(err)
	case json.Unmarshal(text, &r) != nil:
		return Record{}, broken(name, recordName+" is not whole")
	case r.Version != recordVersion:
		return Record{}, broken(name, fmt.Sprintf("%s has format %d; this cove reads format %d", recordName, r.Version, recordVersion)).
			WithHint("use the version of cove that made it, or remove it: `cove session rm " + name + "`")
	}
	for _, e := range append([]Entry{r.Head}, r.Undo...) {
		if e.Snapshot != "" && filepath.Base(e.Snapshot) != e.Snapshot {
			return Record{}, broken(name, recordName+" names a snapshot outside the session")
		}
	}
	r.Name = name // the folder's name counts: the folder may have been copied
	return r, nil
}

// write replaces the record on the disk, durably and as a whole.
func (r Record) write(dir string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := durable.Replace(filepath.Join(dir, recordName), 0o600, bytes.NewReader(append(text, '\n'))); err != nil {
		return unwritable(dir, err)
	}
	return nil
}

func snapshotPath(dir string, e Entry) string {
	name := e.Snapshot
	if e.Packed {
		name += packedSuffix
	}
	return filepath.Join(dir, snapshotsName, name)
}

// remains says what the session goes on from when the present command's work is lost.
func (r Record) remains() string {
	if r.Head.Snapshot == "" {
		return "it starts anew"
	}
	return "the session is as it was at " + clock(r.Head.Saved)
}

// lossNotice says what the death of the last owner cost, or of the process that kept the session in memory.
func (r Record) lossNotice() string {
	if r.Memory != nil {
		return r.memoryLossNotice()
	}
	last := fmt.Sprintf("the last command (process %d, %s)", r.Running.PID, clock(r.Running.Since))
	if r.Head.Snapshot == "" {
		return last + " ended before session " + r.Name + " was saved; the session was lost before it was first saved, it starts anew"
	}
	return last + " ended before session " + r.Name + " was saved; " + r.remains()
}

// unsaved says whether the session in memory has changed since the head was saved, or may have.
func (r Record) unsaved() bool {
	return r.Memory != nil && (r.Memory.Unsaved || r.Running != nil)
}

func (r Record) memoryLossNotice() string {
	how := "its process ended"
	if r.Memory.Ended != "" {
		how = r.Memory.Ended
	}
	text := "session " + r.Name + " was in memory and " + how
	if !r.unsaved() {
		return text + "; nothing is lost"
	}
	if r.Memory.Ended == "" {
		text += " before it was saved"
	}
	text += "; " + r.remains()
	switch n := r.Executions - r.Head.Executions; {
	case r.Running != nil:
		text += fmt.Sprintf(" (%d executions are lost, and the work of process %d)", n, r.Running.PID)
	case n == 1:
		text += " (1 execution is lost)"
	default:
		text += fmt.Sprintf(" (%d executions are lost)", n)
	}
	return text
}

// advance makes entry the head. With depth above 0 the former head is kept for undo, as one of at most depth; a way back is kept anyway.
func (r Record) advance(entry Entry, depth int) (next Record, dropped []Entry) {
	next, dropped = r, []Entry{r.Head}
	next.Head = entry
	if depth > 0 || r.Head.Made != nil {
		next.Undo, dropped = append(slices.Clone(r.Undo), r.Head), nil
	}
	plain := len(next.Undo)
	for _, e := range next.Undo {
		if e.Made != nil {
			plain--
		}
	}
	next.Undo = slices.DeleteFunc(next.Undo, func(e Entry) bool {
		over := depth > 0 && plain > depth && e.Made == nil
		if over {
			dropped, plain = append(dropped, e), plain-1
		}
		return over
	})
	next.remember(func(m *Memory) { m.Unsaved, m.Pinned = false, 0 })
	return next, dropped
}

// remember changes the record's Memory, if the session is in memory.
func (r *Record) remember(change func(*Memory)) {
	if r.Memory != nil {
		m := *r.Memory // copies of the record share it
		change(&m)
		r.Memory = &m
	}
}

// discard removes the snapshots of entries that the record does not name any more. What cannot be removed now is left to tidy.
func discard(dir string, entries []Entry) {
	for _, e := range entries {
		if e.Snapshot != "" {
			_ = snapshot.Remove(snapshotPath(dir, e))
		}
	}
}
