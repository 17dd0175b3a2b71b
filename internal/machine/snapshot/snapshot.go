// Package snapshot keeps checkpoints on disk: a folder with the files of an engine and a manifest that says what they
// fit, how long they are and what their checksums are. Of an engine that keeps its checkpoints elsewhere, the manifest has the checkpoint's name instead; nothing
// tells such an engine yet that no snapshot has the name any more.
//
// A snapshot appears under its name only when it is whole and safely on the disk, and never changes afterwards:
//
//	<dir>/manifest.json    what it is; see Manifest
//	<dir>/verified.json    when its files were last known to be good; may be missing
//	<dir>/image/           the engine's files
//	<dir>/image/shared/    links to files that other snapshots need too
//	<dir>/../.tmp-*        a snapshot being made or removed, or what a killed process left of one; see Sweep
//
// Restoring must not cost reading every byte. So verified.json records how to recognise a file that was read and found good (inode, size, times, and the boot
// of the machine), and only a file that has changed in one of these is read again.
package snapshot

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"cove/internal/core/problem"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/sharedmem"
)

const (
	version      = 1
	manifestName = "manifest.json"
	verifiedName = "verified.json"
	imageName    = "image"
)

// Limits are those limits of a sandbox that are part of a checkpoint. Memory and processors can change at every restore.
type Limits struct {
	Processes int   `json:"processes"`
	OpenFiles int   `json:"open_files"`
	Tmp       int64 `json:"tmp_bytes"`
	Workspace int64 `json:"workspace_bytes"`
	System    int64 `json:"system_bytes,omitempty"`
}

// LimitsOf takes from l the limits that are part of a checkpoint, with the defaults filled in.
func LimitsOf(l sandbox.Limits) Limits {
	l = l.OrDefault()
	return Limits{Processes: l.Processes, OpenFiles: l.OpenFiles, Tmp: l.Tmp, Workspace: l.Workspace, System: l.System}
}

// Key is everything that has to be the same where a snapshot is made and where it is restored.
type Key struct {
	Engine      string `json:"engine"`      // the engine's name and its Fingerprint
	Environment string `json:"environment"` // the Python environment's id, the name of its folder
	Guest       string `json:"guest"`       // the protocol of what runs inside: guest and driver
	Limits      Limits `json:"limits"`
	Layers      bool   `json:"layers"` // the sandbox has the layers' folder mounted
}

// Maker is the cove that made a snapshot.
type Maker struct {
	Cove    string `json:"cove,omitempty"`    // its version
	Runtime string `json:"runtime,omitempty"` // the release of its engine's runtime
	Build   string `json:"build,omitempty"`   // identifies the executable
}

func (m Maker) String() string {
	switch {
	case m.Cove == "":
		return "an older cove"
	case m.Runtime == "":
		return "cove " + m.Cove
	}
	return fmt.Sprintf("cove %s with %s", m.Cove, m.Runtime)
}

// Manifest describes a snapshot. Create fills in Version, Elsewhere and Files.
type Manifest struct {
	Version int       `json:"version"`
	ID      string    `json:"id"`
	Created time.Time `json:"created"`
	Key     Key       `json:"key"`
	Made    Maker     `json:"made,omitzero"`
	// Elsewhere is the checkpoint of an engine that keeps it; zero for one in files.
	Elsewhere Elsewhere `json:"elsewhere,omitzero"`
	Files     []File    `json:"files"`
	// Shared are files below image/shared/ (see package sharedmem) that are elsewhere as well, and take no room of this snapshot's. One that had to be copied is among Files.
	Shared []File `json:"shared,omitempty"`
}

// Elsewhere is a checkpoint that its engine keeps.
type Elsewhere struct {
	Name string `json:"name"`
	Size int64  `json:"size"` // bytes
}

// File is one file of the engine.
type File struct {
	Name string `json:"name"` // slash-separated, below image/
	Size int64  `json:"size"` // bytes
	CRC  uint32 `json:"crc32c"`
	Form string `json:"form,omitempty"` // in a packed snapshot
}

// Snapshot is a snapshot that was found to be whole.
type Snapshot struct {
	Dir      string
	Manifest Manifest
	// Read is how many bytes had to be read to know that; 0 when every file still looked as it did when it was last read.
	Read int64
}

// Checkpoint returns what to hand to the engine. Files of it must not be changed.
func (s *Snapshot) Checkpoint() sandbox.Checkpoint {
	if e := s.Manifest.Elsewhere; e.Name != "" {
		return sandbox.CheckpointNamed(e.Name, e.Size)
	}
	return sandbox.CheckpointIn(filepath.Join(s.Dir, imageName))
}

// Warm has the system read what snapshots share, in the background.
func (s *Snapshot) Warm() { sharedmem.Warm(filepath.Join(s.Dir, imageName)) }

// Size is the length of the engine's files in bytes, or what the checkpoint takes where the engine keeps it. Clones share both. What many snapshots share does not count.
func (s *Snapshot) Size() int64 {
	n := s.Manifest.Elsewhere.Size
	for _, f := range s.Manifest.Files {
		n += f.Size
	}
	return n
}

// Occupied is the room that a folder takes on the disk, in bytes. What snapshots have in common with a template does not count: it is there once for all of them.
func Occupied(folder string) int64 {
	var n int64
	_ = filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // the folder changes while it is walked
		}
		info, err := e.Info()
		if err != nil {
			return nil
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		common := ok && st.Nlink > 1 && !e.IsDir() && filepath.Base(filepath.Dir(path)) == sharedmem.Folder
		if ok && !common {
			n += st.Blocks * 512
		}
		return nil
	})
	return n
}

// Fits returns nil when the snapshot can be restored in a place whose key is want, or a problem with code "snapshot_unfit" that names what differs.
func (s *Snapshot) Fits(want Key) error {
	have := s.Manifest.Key
	parts := append(engineParts(have.Engine, want.Engine), []aspect{
		{"the Python environment", have.Environment, want.Environment},
		{"the program inside the sandbox", have.Guest, want.Guest},
		{"the limits", fmt.Sprintf("%+v", have.Limits), fmt.Sprintf("%+v", want.Limits)},
		{"the folder of layers", fmt.Sprint(have.Layers), fmt.Sprint(want.Layers)},
	}...)
	var differs []string
	for _, p := range parts {
		if p.have != p.want {
			differs = append(differs, fmt.Sprintf("%s (it was %s, now it is %s)", p.name, orNone(p.have), orNone(p.want)))
		}
	}
	if len(differs) == 0 {
		return nil
	}
	return problem.New(problem.SnapshotUnfit, "it was saved under other conditions: "+strings.Join(differs, "; "))
}

// aspect is one thing that has to be the same.
type aspect struct{ name, have, want string }

// engineParts splits fingerprints into the parts that sandbox.Saver names, if they have those.
func engineParts(have, want string) []aspect {
	h, w := strings.Split(have, "-"), strings.Split(want, "-")
	if len(h) != 4 || len(w) != 4 || h[0] != w[0] {
		return []aspect{{"the engine", have, want}}
	}
	return []aspect{{"gVisor's release or how cove sets it up", h[1], w[1]}, {"the processor", h[2], w[2]}, {"the system's libraries", h[3], w[3]}}
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// Remove deletes the snapshot in dir, or what exists of one. When it is interrupted, the rest does not look like a snapshot.
func Remove(dir string) error {
	gone := temporary(dir)
	err := os.Rename(dir, gone)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = os.RemoveAll(gone)
	}
	if err != nil {
		return fmt.Errorf("remove snapshot %s: %w", dir, err)
	}
	return nil
}

func damaged(dir, how string) error {
	return problem.New(problem.SnapshotDamaged, "the snapshot "+dir+" is damaged: "+how)
}

// ReadManifest returns the manifest of the snapshot in dir. It does not check whether the files are whole.
func ReadManifest(dir string) (Manifest, error) { return readManifest(dir) }

func readManifest(dir string) (Manifest, error) {
	var m Manifest
	text, err := os.ReadFile(filepath.Join(dir, manifestName))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(dir); err == nil {
			return m, damaged(dir, manifestName+" is missing")
		}
		return m, problem.New(problem.SnapshotMissing, "there is no snapshot "+dir)
	}
	if err != nil {
		return m, problem.New(problem.SnapshotUnreadable, "the snapshot "+dir+" cannot be read").WithCause(err)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, damaged(dir, manifestName+" is not whole")
	}
	if m.Version != version && m.Version != packedVersion {
		return m, problem.New(problem.SnapshotForeign,
			fmt.Sprintf("the snapshot %s has format %d; this cove reads format %d", dir, m.Version, version)).
			WithHint("use the version of cove that made it")
	}
	for _, f := range m.all() {
		if !filepath.IsLocal(filepath.FromSlash(f.Name)) {
			return m, damaged(dir, manifestName+" names a file outside the snapshot")
		}
	}
	if len(m.Files) == 0 && m.Elsewhere.Name == "" {
		return m, damaged(dir, manifestName+" names no files")
	}
	return m, nil
}

// full replaces an error about a full disk by a short problem. Engines report it as text, which may be very long.
func full(err error, what string) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || strings.Contains(err.Error(), unix.ENOSPC.Error()) {
		return problem.New(problem.DiskFull, "there is no room left on the disk for "+what).WithCause(unix.ENOSPC).
			WithHint("make room, or move the folder to another disk; nothing of it was left behind")
	}
	return err
}
