// Package layer keeps layers: read-only folders that each hold one closure of distributions, unpacked and compiled. They are content-addressed under names that
// nobody can guess, appear whole or not at all, and are shared by every session that needs the same.
//
// # The store
//
//	layers/<name>/          a layer, hard links to files of wheels/; the only thing here that sandboxes see
//	manifests/<name>.json   what is in it (Layer); its time is that of the layer's last use
//	wheels/<hash>-<tag>/    an unpacked wheel: tree/, files.txt (what is in it) and wheel.json; the tag is the Python that it was compiled with
//	work/                   what is being made or removed; each folder is locked by the process that works on it
//	locks/                  one file for each layer or wheel that somebody makes
//	secret                  from which the names of layers are made
//	lock                    shared: layers are being used or put together; exclusive: Sweep takes things away
//
// The store is readable by its owner alone. layers/ has mode 0711, so that a sandbox can enter a folder whose name it was told and cannot list the others. The name is
// a keyed hash of the wheels' hashes: the closure alone does not give the name. Everything in layers/ comes there by one rename.
//
// # What is trusted
//
// Wheels are hostile input. They are read by a parser of our own that refuses what two readers of the format could see differently, and each file has to be the
// one that RECORD names. Nothing of a wheel is ever run on the host. Its source text is compiled, by the environment's Python in a process of its own with
// limits on memory, time and file size; compiling runs none of it. Bytecode that comes in a wheel is thrown away.
//
// What Python would run by itself at its start is left out (.pth files, sitecustomize, usercustomize), and so is what does not belong on a module path (scripts in text,
// headers, data files; see Layer.Stripped). Compiled programs are kept in the folder bin, where modules of their wheel find them. Modules with names of the standard library are kept: layers come after it on sys.path.
//
// Layers and wheels are the same files, so nobody may write to them. Sandboxes have a read-only mount. The files have mode 0444 against
// accidents of code that runs as the owner; folders stay writable for the owner, so that "rm -r" works.
package layer

import (
	"context"
	"io"
	"time"
)

// MountPoint is where sandboxes see Store.Mount.
const MountPoint = "/opt/cove/layers"

// Wheel is one file of a closure.
type Wheel struct {
	Name    string `json:"name"`           // of the distribution, normalized
	Version string `json:"version"`        //
	File    string `json:"file"`           // the wheel's file name
	SHA256  string `json:"sha256"`         // hex
	Size    int64  `json:"size,omitempty"` // bytes; 0 when unknown
}

// Closure is what a layer holds.
type Closure struct {
	Environment string  // pyenv.Environment.Key: the Python that it is compiled for
	Python      string  // host path of that environment's interpreter, which compiles
	Wheels      []Wheel // in any order; no two of one name
}

// Layer is one that exists.
type Layer struct {
	Name      string              `json:"name"`                // of its folder below Store.Mount; unguessable
	Wheels    []Wheel             `json:"wheels"`              // sorted by name; Size is always known
	Modules   []string            `json:"modules"`             // root modules, sorted
	Owners    map[string][]string `json:"owners"`              // root module to the distributions that have a part in it, sorted
	Files     int                 `json:"files"`               // with what was compiled
	Unpacked  int64               `json:"unpacked"`            // bytes, with what was compiled
	Stripped  []string            `json:"stripped,omitempty"`  // what was left out of the wheels: .pth files, sitecustomize, scripts, ...
	Conflicts []string            `json:"conflicts,omitempty"` // files that are different in two wheels, of which one was taken
}

// Limits bound one closure. 0 is no limit.
type Limits struct {
	Wheels   int   // distributions
	Download int64 // bytes of all wheels
	Unpacked int64 // bytes of what the wheels hold
	Files    int   // that the wheels hold
}

// The phases of Progress.
const (
	PhaseWait     = "wait" // somebody else is making the same
	PhaseDownload = "download"
	PhaseUnpack   = "unpack"
	PhaseCompile  = "compile"
)

// Progress says how far the making of a layer is.
type Progress struct {
	Phase           string
	Wheel           Wheel // zero when it is about the whole layer
	Received, Total int64 // bytes of all wheels that have to be downloaded; Total is 0 when unknown
}

// Fetch writes a wheel's bytes to w; they are verified again here. An error of w ends it.
type Fetch func(ctx context.Context, wheel Wheel, w io.Writer, told func(received, total int64)) error

// Used is a layer and when it was last used, to the hour.
type Used struct {
	Layer
	Used time.Time
}
