package image

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/machine/sandbox"
	"cove/internal/python/pyenv"
)

// Where sandboxes with an image find what is not the image's.
const (
	environmentDir = "/opt/cove/environment" // the environment, whose interpreter cannot be started by its own name there
	baseDir        = "/opt/cove/base"        // what it was built on
	systemDir      = "/opt/cove/system"      // the host's libraries
	kernelDir      = "/opt/cove/kernel"      // what a kernel in the image's own Python needs
	dataDir        = ".made-"                // begins the names of folders in the store with what is made for all images
	keySeparator   = "+"                     // between an environment's key and the image that it is used in
)

// The versions of Python 3 in which a kernel runs whose packages come from elsewhere.
const (
	oldestOwn = 11
	newestOwn = 14
)

// Key names the environment with that key as it is used in an image.
func Key(environment, digest string) string {
	return environment + keySeparator + strings.TrimPrefix(digest, digestPrefix)
}

// CutKey returns the two parts of a Key, and for another key that and "".
func CutKey(key string) (environment, digest string) {
	environment, hex, is := strings.Cut(key, keySeparator)
	if !is {
		return environment, ""
	}
	return environment, digestPrefix + hex
}

// UsesOwnPython says whether code runs in the image's own Python, because that is new enough.
func (i *Image) UsesOwnPython() bool {
	return i.Python.Minor >= oldestOwn && i.Python.Minor <= newestOwn
}

// In returns an environment as sandboxes with the image have it: in the image's own Python where that is new enough, with the packages of the image; else with its own interpreter beside the
// image, and its own packages. launcher is a program that starts an interpreter under another loader (see package guest).
func (s Store) In(env *pyenv.Environment, i *Image, launcher string) (*pyenv.Environment, error) {
	in := *env
	in.Key = Key(env.Key, i.Digest)
	in.Image = &pyenv.InImage{Name: i.family(), Root: i.Root(), Variables: i.Variables(), Dir: i.Dir}
	if in.Image.Variables["PATH"] == "" {
		in.Image.Variables["PATH"] = usualPath
	}
	if i.UsesOwnPython() {
		made, err := s.kernelModules(env, i.Python.Minor)
		if err != nil {
			return nil, err
		}
		in.Image.Own, in.Image.Python, in.Image.Mounts = true, i.Python.Path, []sandbox.Mount{{Source: sandbox.HostFolder(made), Target: kernelDir}}
		in.Image.KernelPackages = kernelDir
		in.Packages, in.Version = map[string]string{}, fmt.Sprintf("3.%d", i.Python.Minor)
		return &in, nil
	}
	made, mounts, err := s.beside(env, launcher)
	if err != nil {
		return nil, err
	}
	in.Image.Python = pyenv.MountPoint + "/bin/python"
	in.Image.Mounts = append([]sandbox.Mount{{Source: sandbox.HostFolder(made), Target: pyenv.MountPoint}, {Source: sandbox.HostFolder(env.Dir), Target: environmentDir}}, mounts...)
	return &in, nil
}

// make makes a folder of the store that is the same for all images, unless it is there.
func (s Store) make(name string, fill func(dir string) error) (dir string, err error) {
	dir = filepath.Join(s.Dir, dataDir+name)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	tmp, err := os.MkdirTemp(s.Dir, tmpPrefix)
	if err != nil {
		return "", unusable(s.Dir, err)
	}
	if err = os.Chmod(tmp, 0o755); err == nil { //nolint:gosec // sandboxed code reads it
		err = fill(tmp)
	}
	if err == nil {
		err = openAll(tmp)
	}
	if err == nil {
		err = os.Rename(tmp, dir)
	}
	if err != nil {
		_ = os.RemoveAll(tmp)
		if _, there := os.Stat(dir); there == nil { // another process was quicker
			return dir, nil
		}
		return "", unusable(s.Dir, err)
	}
	return dir, nil
}

// openAll lets everybody read what is in a folder, whatever the umask was.
func openAll(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.Type()&fs.ModeSymlink != 0 {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		mode := info.Mode().Perm() | 0o444
		if e.IsDir() || mode&0o100 != 0 {
			mode |= 0o111
		}
		return os.Chmod(path, mode)
	})
}

func madeName(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// kernelDistributions are what a kernel imports; all of them are the same for every Python.
var kernelDistributions = []string{
	"asttokens", "decorator", "executing", "ipython", "ipython_pygments_lexers", "jedi", "matplotlib_inline", "parso", "pexpect", "prompt_toolkit", "ptyprocess", "pure_eval", "pygments", "stack_data", "traitlets", "typing_extensions", "wcwidth",
}

// kernelModules makes the folder with what a kernel needs in an interpreter that is not the environment's.
func (s Store) kernelModules(env *pyenv.Environment, minor int) (string, error) {
	site, err := filepath.Glob(filepath.Join(env.Dir, "lib", "python3.*", "site-packages"))
	if err != nil || len(site) != 1 {
		return "", problem.New(problem.EnvironmentDamaged, "the Python environment "+env.Dir+" is damaged")
	}
	var has, oldest int
	if _, err := fmt.Sscanf(env.Version, "3.%d", &has); err != nil || has < oldestOwn {
		oldest = oldestOwn
	}
	if oldest > 0 {
		return "", problem.New(problem.ImageUnfit, fmt.Sprintf("an image with Python 3.%d takes a cove whose own Python is 3.%d or newer; this one has %s", minor, oldestOwn, env.Version)).
			WithHint("set COVE_PYTHON to a newer one")
	}
	return s.make("kernel-"+madeName(env.Key, "1"), func(dir string) error {
		for _, name := range kernelDistributions {
			if err := copyDistribution(site[0], name, dir); err != nil {
				return err
			}
		}
		return nil
	})
}

// copyDistribution copies the modules of a distribution. One that is not there is none that this Python needs.
func copyDistribution(site, name, to string) error {
	found, err := filepath.Glob(filepath.Join(site, name+"-*.dist-info", "RECORD"))
	if err != nil || len(found) != 1 {
		return err
	}
	record, err := os.ReadFile(found[0])
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(record)) {
		file, _, _ := strings.Cut(strings.TrimPrefix(line, `"`), ",")
		if !filepath.IsLocal(file) || strings.HasSuffix(file, ".pyc") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(site, file))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		target := filepath.Join(to, file)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil { //nolint:gosec // sandboxed code reads it
			return err
		}
		if err := os.WriteFile(target, text, 0o644); err != nil { //nolint:gosec // the same
			return err
		}
	}
	return nil
}

// libraryFolders are where the host's loader looks for libraries.
var libraryFolders = []string{
	"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64", "/usr/local/lib", "/usr/local/lib64", "/lib", "/usr/lib",
}

// loaders are the host's program loader by processor, of which one is there.
var loaders = []string{"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"}

// beside makes the folder that stands for an environment in an image, and returns what has to be shown for it besides the environment.
func (s Store) beside(env *pyenv.Environment, launcher string) (string, []sandbox.Mount, error) {
	mounts := []sandbox.Mount{}
	for _, p := range []string{"/usr", "/lib", "/lib64"} {
		if info, err := os.Lstat(p); err == nil && info.IsDir() {
			mounts = append(mounts, sandbox.Mount{Source: sandbox.HostFolder(p), Target: systemDir + p})
		}
	}
	base := systemDir + env.Base
	if env.Base != "/usr" {
		base = baseDir
		mounts = append(mounts, sandbox.Mount{Source: sandbox.HostFolder(env.Base), Target: baseDir})
	}
	interpreter, err := filepath.EvalSymlinks(env.Python)
	if err != nil {
		return "", nil, problem.New(problem.EnvironmentDamaged, "the Python environment "+env.Dir+" is damaged").WithCause(err)
	}
	below, err := filepath.Rel(env.Base, interpreter)
	if err != nil || !filepath.IsLocal(below) {
		return "", nil, problem.New(problem.EnvironmentDamaged, "the Python environment "+env.Dir+" is not built on "+env.Base)
	}
	libraries := []string{base + "/lib"}
	for _, p := range libraryFolders {
		if folder, err := filepath.EvalSymlinks(p); err == nil && !slices.Contains(libraries, systemDir+folder) {
			libraries = append(libraries, systemDir+folder)
		}
	}
	loader := ""
	for _, p := range loaders {
		if file, err := filepath.EvalSymlinks(p); err == nil {
			loader = systemDir + file
		}
	}
	if loader == "" {
		return "", nil, problem.New(problem.ImageUnfit, "the image has no Python that is new enough, and this machine's cannot be shown in it: it is not the usual Linux with the GNU C library").
			WithHint(fmt.Sprintf("use an image with Python 3.%d to 3.%d", oldestOwn, newestOwn))
	}
	says := strings.Join([]string{loader, strings.Join(libraries, ":"), base + "/" + below}, "\n") + "\n"
	made, err := s.make("python-"+madeName(env.Key, launcher, says, "1"), func(dir string) error { return standIn(env, dir, launcher, says, base) })
	return made, mounts, err
}

// standIn fills a folder that looks like the environment to its interpreter.
func standIn(env *pyenv.Environment, dir, launcher, says, base string) error {
	program, err := os.ReadFile(launcher)
	if err != nil {
		return err
	}
	config, err := os.ReadFile(filepath.Join(env.Dir, "pyvenv.cfg"))
	if err != nil {
		return err
	}
	var own bytes.Buffer
	for line := range strings.Lines(string(config)) {
		key, _, _ := strings.Cut(line, "=")
		if key = strings.TrimSpace(key); key == "home" || key == "executable" || key == "command" {
			continue
		}
		own.WriteString(line)
	}
	own.WriteString("home = " + base + "/bin\n")
	entries, err := os.ReadDir(env.Dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if name := e.Name(); name != "bin" && name != "pyvenv.cfg" {
			if err := os.Symlink(environmentDir+"/"+name, filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil { //nolint:gosec // sandboxed code runs what is there
		return err
	}
	python := filepath.Join(dir, "bin", "python")
	version := strings.SplitN(env.Version, ".", 3)
	err = errors.Join(
		os.WriteFile(filepath.Join(dir, "pyvenv.cfg"), own.Bytes(), 0o644), //nolint:gosec // sandboxed code reads it
		os.WriteFile(filepath.Join(dir, "loader"), []byte(says), 0o644),    //nolint:gosec // the same
		os.WriteFile(python, program, 0o755),                               //nolint:gosec // the same
		os.Symlink("python", python+"3"),
	)
	if len(version) > 1 {
		err = errors.Join(err, os.Symlink("python", python+"3."+version[1]))
	}
	return err
}
