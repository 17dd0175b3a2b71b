// Package pyenv finds a Python and uv on this machine and builds the base
// environment that kernels run in: once, into cove's data folder, from committed
// lock files with hashes, without root.
//
// An environment is a directory that never changes after it has appeared under
// its final name. It is a relocatable virtual environment, so engines may mount
// it elsewhere (at MountPoint); only its base Python has to be seen at the same
// path as on the host. Ensure is cheap when the environment is already there:
// it reads a manifest and starts no Python.
//
// Layout below the data folder:
//
//	pyenv/.lock               held by the process that builds
//	pyenv/.tmp-*              a build under way, or what a killed one left
//	pyenv/<set>-<key>/        an environment; environment.json is its manifest
//	pyenv/<set>.chosen        names the environment that a search for a Python led to
//	tools/uv/                 uv, where the PATH has none
//
// Charts: the standard environment carries Noto Sans CJK fonts, a matplotlib that takes
// from them the glyphs which the chosen font lacks, and a font list that knows them
// under the names that programs commonly ask for (SimHei, Microsoft YaHei, Malgun
// Gothic, Arial...). A kernel needs the variables of Environment.Variables, and before
// it imports matplotlib it has to give it a writable folder that starts with that list:
//
//	target, source = os.environ["MPLCONFIGDIR"], os.environ.get("COVE_FONTCACHE")
//	os.makedirs(target, exist_ok=True)
//	for name in os.listdir(source) if source else ():
//	    shutil.copyfile(os.path.join(source, name), os.path.join(target, name))
//
// The list holds the environment's own fonts alone, with paths relative to
// matplotlib, so that charts look the same on every machine and at every mount point.
//
// Other libraries that draw take fonts from share/fonts: what cove_fonts does when Python starts is said there, and FONTCONFIG_FILE names etc/fonts/fonts.conf.
//
// Nothing is installed from inside: standin/ puts a pip and a uv into every environment which say, as pip does, what is there already. It also
// puts in cove.pth, by which the processes that a kernel starts find the packages that were added to the kernel (COVE_LAYERS, COVE_LAYERS_FIRST), and by which os.cpu_count has the number of processors that code may use.
//
// To change what is installed, edit locks/*.in and run locks/update.sh.
package pyenv

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/machine/sandbox"
)

// MountPoint is where engines with a file system of their own show Environment.Dir.
const MountPoint = "/opt/cove/python"

// Set names a list of packages.
type Set string

// The sets.
const (
	Standard     Set = "standard"      // what code written for data questions expects
	Standard2024 Set = "standard-2024" // the same as it was at the end of 2024, for code that must not change
	Minimal      Set = "minimal"       // what the kernel itself needs: IPython
)

// traits are what sets differ in, beside their packages.
type traits struct {
	pythons  []int // the minor versions of Python that it has wheels for, in the order in which they are looked for
	charts   bool  // it draws charts, and has fonts for them
	download int64 // bytes, roughly
	room     int64 // bytes of free disk that a build needs
}

var known = map[Set]traits{
	Standard:     {pythons: []int{13, 12, 11, 14, 10}, charts: true, download: 245e6, room: 2500e6},
	Standard2024: {pythons: []int{12, 11, 13, 10}, charts: true, download: 245e6, room: 2500e6}, // with 3.13 it has NumPy 2
	Minimal:      {pythons: []int{13, 12, 11, 14, 10}, download: 5e6, room: 200e6},
}

// Room is how much free disk the build of a set's environment needs, and says it for people.
func Room(set Set) (bytes int64, text string) { return known[set].room, size(known[set].room) }

// Sets lists the sets.
func Sets() []Set { return []Set{Standard, Standard2024, Minimal} }

// span is the oldest and the newest minor version of Python that a set has wheels for.
func (s Set) span() (oldest, newest int) {
	return slices.Min(known[s].pythons), slices.Max(known[s].pythons)
}

// Built returns the folders of a set's environments below the data folder.
func Built(data string, set Set) []string {
	found, _ := filepath.Glob(filepath.Join(data, "pyenv", string(set)+"-"+strings.Repeat("[0-9a-f]", keyLength))) // the pattern is valid
	return found
}

// Environment is one that is ready to use. Its files are readable by everyone and are never changed.
type Environment struct {
	Dir      string            // host path of the virtual environment
	Python   string            // host path of its interpreter, Dir/bin/python
	Base     string            // host path of the base Python's prefix; a sandbox needs it at the same path unless it is under /usr
	Version  string            // Python's version, "3.11.7"
	Packages map[string]string // distribution, in normalized spelling ("python-docx"), to version
	Key      string            // names the content; the last element of Dir
	Set      Set
	Plain    bool   // leave plots as their libraries make them
	Data     string // host folder with data of libraries, as package libdata keeps it; "": none
	Layer    string // host folder with a layer of system packages, as package debs makes it; "": none
	// Image is set where the environment is used in the file system of an image.
	Image *InImage
}

// InImage is how an environment is used in the file system of an image; see image.Store.In.
type InImage struct {
	Name   string // begins the names of what is made for the image
	Root   string // host folder with its file system
	Own    bool   // the interpreter is the image's, and so are the packages: of the environment, the kernel's alone are there
	Python string // the interpreter's path inside
	// KernelPackages is the folder inside with what a kernel needs in the image's interpreter; "" in the environment's own.
	KernelPackages string
	Mounts         []sandbox.Mount   // in the place of the environment's own
	Variables      map[string]string // what the image sets for its programs
	Dir            string            // where its programs begin; "": the workspace
}

// Interpreter is the path of the interpreter in a sandbox of that layout.
func (e *Environment) Interpreter(l sandbox.Layout) string {
	if e.Image != nil {
		return e.Image.Python
	}
	return l.Path(MountPoint) + "/bin/python"
}

// LoaderVariables are those that an image sets for its loader, as the environment of a process that has no other: NAME=VALUE.
func (e *Environment) LoaderVariables() []string {
	if e.Image == nil || !e.Image.Own || e.Image.Variables["LD_LIBRARY_PATH"] == "" {
		return nil
	}
	return []string{"LD_LIBRARY_PATH=" + e.Image.Variables["LD_LIBRARY_PATH"]}
}

// Family begins the names of what is made for the environment, and of what is made for others in whose place it comes.
func (e *Environment) Family() string {
	if e.Image != nil {
		return e.Image.Name
	}
	return string(e.Set)
}

// DataMountPoint is where a sandbox sees Environment.Data.
const DataMountPoint = "/opt/cove/data"

// DataFolders are the folders below DataMountPoint in which libraries look, by the variables that say so to them.
func DataFolders() map[string]string {
	return map[string]string{"NLTK_DATA": "nltk", "SEABORN_DATA": "seaborn", "SCIKIT_LEARN_DATA": "sklearn", "HF_HUB_CACHE": "huggingface", "COVE_DATA_MODULES": "modules"}
}

// Mounts returns what a sandbox has to show for the environment to work in it.
func (e *Environment) Mounts() []sandbox.Mount {
	m := []sandbox.Mount{{Source: sandbox.HostFolder(e.Dir), Target: MountPoint}}
	if e.Image != nil {
		m = slices.Clone(e.Image.Mounts)
	} else if e.Base != "" && e.Base != "/usr" {
		// The interpreter is a link into the base, so the base has to have the same path inside.
		m = append(m, sandbox.Mount{Source: sandbox.HostFolder(e.Base), Target: e.Base})
	}
	if e.Data != "" {
		m = append(m, sandbox.Mount{Source: sandbox.HostFolder(e.Data), Target: DataMountPoint})
	}
	return m
}

// Variables returns what a kernel's environment needs where Dir is seen at root and Data at data.
// A set without matplotlib needs no fonts. See the package comment for COVE_FONTCACHE.
func (e *Environment) Variables(root, data string) map[string]string {
	v := map[string]string{}
	if e.Data != "" {
		for name, folder := range DataFolders() {
			v[name] = data + "/" + folder
		}
	}
	if known[e.Set].charts && (e.Image == nil || !e.Image.Own) {
		v["COVE_FONTCACHE"] = root + "/etc/matplotlib"
		v["XDG_DATA_DIRS"] = root + "/share:/usr/local/share:/usr/share" // where Pillow looks for fonts by file name
		v["FONTCONFIG_FILE"] = root + "/etc/fonts/fonts.conf"
	}
	if e.Plain {
		v["COVE_PLOT_STYLE"] = "off"
	}
	return v
}

// Options say which environment is wanted.
type Options struct {
	Data     string    // cove's data folder; made when missing
	Ahead    string    // another data folder, which is only read; an environment that is wanted and is there is not built; "": none
	Set      Set       // "" is Standard
	Python   string    // path or name of the Python to build on; "" searches the PATH
	Progress io.Writer // told what happens during a build; nil is quiet
	Terminal bool      // Progress is a terminal: draw a progress bar
	// Wheels is a folder with every wheel that a build needs, of the fonts and of uv as well. Then no index is asked and no network used, and the environment
	// becomes the one for those who name no Python. "": the indexes that uv and pip are configured for.
	Wheels string
	// Needed returns the keys of environments that must be kept however long nobody has opened them; nil means none.
	// It is called before one is built.
	Needed func() []string
}

// Ensure returns the environment that o asks for, building it when it is missing
// or when the Python below it has gone or was replaced. Processes that ask at the
// same time build once. A build that fails or is cancelled leaves nothing behind
// that a later call would use.
//
// Problems: python_not_found, python_unusable, uv_not_found, disk_full,
// package_index_unreachable, package_unavailable, package_hash_mismatch,
// environment_build_failed, data_folder_unusable, canceled.
func Ensure(ctx context.Context, o Options) (*Environment, error) {
	if o.Set == "" {
		o.Set = Standard
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	r, err := newRecipe(o.Set)
	if err != nil {
		return nil, err
	}
	data, err := filepath.Abs(o.Data)
	if err != nil {
		return nil, fmt.Errorf("locate data folder: %w", err)
	}
	s := shelf{dir: filepath.Join(data, "pyenv"), recipe: r}
	if e := s.openKnown(o.Python); e != nil && o.Wheels == "" {
		return e, nil
	}
	python, err := FindPython(ctx, o.Set, o.Python)
	if err != nil {
		return nil, err
	}
	if e := s.open(s.keyOf(python.stamp)); e != nil && o.Python != "" && o.Wheels == "" {
		return e, nil // found without waiting for somebody else's build
	}
	return prepare(ctx, s, python, data, o)
}

// prepare opens the environment for python, or builds it under the shelf's lock.
func prepare(ctx context.Context, s shelf, python Interpreter, data string, o Options) (*Environment, error) {
	if err := s.make(data); err != nil {
		return nil, err
	}
	lock, err := s.lock(ctx, o.Progress)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	key := s.keyOf(python.stamp)
	e := s.open(key)
	if e == nil && o.Ahead != "" {
		if e, err = s.take(o.Ahead, key); err != nil {
			return nil, err
		}
	}
	if e == nil {
		b := builder{shelf: s, python: python, tools: filepath.Join(data, "tools"), lock: lock, progress: o.Progress, terminal: o.Terminal, wheels: o.Wheels}
		if o.Needed != nil {
			b.needed = o.Needed()
		}
		if e, err = b.build(ctx); err != nil {
			return nil, err
		}
	}
	if o.Python == "" || o.Wheels != "" {
		if err := s.choose(e.Key); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// make makes the shelf's folder where there is none.
func (s shelf) make(data string) error {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return problem.New(problem.DataFolderUnusable, "cove cannot write to its data folder "+data).
			WithHint("make it writable, or set COVE_HOME to a folder that is").WithCause(err)
	}
	return nil
}
