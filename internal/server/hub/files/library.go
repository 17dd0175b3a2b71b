// Package files has what a project keeps beside its sessions: stored files and the uploads that become such, and volumes. It changes with how bytes are kept.
package files

import (
	"sync"

	"cove/internal/core/seal"
	"cove/internal/server/hub/meter"
	"cove/internal/server/hub/work"
)

// Options are what a Library is made of.
type Options struct {
	Contents   string        // folder of file contents, by hash
	Sealer     *seal.Sealer  // what the contents are sealed with; nil: they are not
	Volumes    VolumeFolders // nil: there are none
	NoVolumes  string        // why
	MostFile   int64         // bytes of one file
	MostVolume int64         // bytes in one volume; 0: no limit
}

// Library has the files and volumes of all projects.
//
// Its locks: a content's lock (contents.lockContent) may be held while the store writes a record; contents.mu, uploads.mu and mu are leaves, but that uploads.mu is
// held while the request before is stopped, which does not wait.
type Library struct {
	work     *work.Core
	meter    *meter.Meter
	o        Options
	contents *contents
	uploads  *uploads

	mu      sync.Mutex
	mounted map[[2]string]bool // projects and ids of volumes that were in use when volumes were counted last, or have been changed since
}

// New returns a library.
func New(core *work.Core, m *meter.Meter, o Options) *Library {
	return &Library{work: core, meter: m, o: o, contents: newContents(o.Contents, o.Sealer), uploads: &uploads{writers: map[string]*writer{}}}
}
