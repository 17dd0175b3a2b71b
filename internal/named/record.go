package named

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"cove/internal/problem"
	"cove/internal/sandbox"
	"cove/internal/snapshot"
)

const (
	recordVersion = 1
	recordName    = "session.json"
	snapshotsName = "snapshots"
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
	return sandbox.Limits{Memory: l.Memory, CPUs: l.CPUs, Processes: l.Processes, OpenFiles: l.OpenFiles, Tmp: l.Tmp, Workspace: l.Workspace}
}

// Base is what a session is made of.
type Base struct {
	Engine      string `json:"engine"`
	Packages    string `json:"packages"`    // the set of packages
	Environment string `json:"environment"` // the Python environment's id; "" where it is still to be chosen, by Packages
	Limits      Limits `json:"limits"`
}

// Entry is a point that a session can be at. Without a Snapshot it is the beginning.
type Entry struct {
	Snapshot   string    `json:"snapshot,omitempty"`
	Saved      time.Time `json:"saved,omitzero"`
	Executions int       `json:"executions"`
	Size       int64     `json:"size_bytes,omitempty"`
	// Reseed says that another session goes on from the same snapshot, so that the random generators must be given new seeds.
	Reseed bool `json:"reseed,omitempty"`
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
	Undo    []Entry `json:"undo"`              // oldest first
	Running *Owner  `json:"running,omitempty"` // who has it, or had it when it died
	Notice  *Notice `json:"notice,omitempty"`  // the last one
}

// broken says why a session cannot be used at all.
func broken(name, why string) *problem.Error {
	return problem.New(problem.Unavailable, "session_broken", "session "+name+" is broken: "+why).
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
	r.Name = name // the folder decides: it may have been copied
	return r, nil
}

// write puts the record into place, whole and on the disk.
func (r Record) write(dir string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	tmp := filepath.Join(dir, "."+recordName)
	if err := writeSynced(tmp, append(text, '\n')); err != nil {
		return unwritable(dir, err)
	}
	if err := os.Rename(tmp, filepath.Join(dir, recordName)); err != nil {
		return unwritable(dir, err)
	}
	if err := syncFolder(dir); err != nil {
		return unwritable(dir, err)
	}
	return nil
}

func writeSynced(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func snapshotPath(dir string, e Entry) string {
	return filepath.Join(dir, snapshotsName, e.Snapshot)
}

// remains says what there is of the session when the present command's work is lost.
func (r Record) remains() string {
	if r.Head.Snapshot == "" {
		return "it starts anew"
	}
	return "the session is as it was at " + clock(r.Head.Saved)
}

// mourn says what the death of the last owner cost.
func (r Record) mourn() string {
	last := fmt.Sprintf("the last command (process %d, %s)", r.Running.PID, clock(r.Running.Since))
	if r.Head.Snapshot == "" {
		return last + " ended before session " + r.Name + " was saved; the session was lost before it was first saved, it starts anew"
	}
	return last + " ended before session " + r.Name + " was saved; " + r.remains()
}
