package pyenv

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"cove/internal/core/problem"
	"cove/internal/python/pyindex"
)

// builder makes one environment. Its owner holds the shelf's lock.
type builder struct {
	shelf    shelf
	python   Interpreter
	tools    string
	lock     *os.File
	progress io.Writer
	terminal bool
	needed   []string
	wheels   string // see Options

	uv    string
	env   []string
	flags []string
}

func (b *builder) say(format string, args ...any) {
	fmt.Fprintf(b.progress, format+"\n", args...)
}

// build makes the environment beside its final place and renames it when it is whole and on disk.
func (b *builder) build(ctx context.Context) (*Environment, error) {
	begun := time.Now()
	if err := b.shelf.sweep(b.needed); err != nil {
		return nil, err
	}
	if err := b.checkRoom(); err != nil {
		return nil, err
	}
	r := b.shelf.recipe
	b.say("Preparing the %s Python environment on Python %s (%s).", r.set, b.python.Version, b.python.Path)
	if b.wheels == "" {
		b.say("This happens once, downloads about %s and needs %s of free disk space; later runs share the result.", size(r.download), size(r.room))
	}
	var err error
	if b.uv, err = b.findUV(ctx); err != nil {
		return nil, err
	}
	if b.env, b.flags = pyindex.Environment(os.Environ(), b.python.Base); b.wheels != "" {
		b.env, b.flags = pyindex.Offline(b.env), []string{"--no-config", "--offline", "--no-index", "--find-links", b.wheels}
	}
	tmp, err := os.MkdirTemp(b.shelf.dir, tmpPrefix)
	if err != nil {
		return nil, fmt.Errorf("make build folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	b.linkMode(tmp)
	dir := filepath.Join(tmp, "env")
	m, err := b.fill(ctx, tmp, dir)
	if err != nil {
		return nil, err
	}
	key := b.shelf.keyOf(b.python.stamp)
	if err := b.publish(dir, key, m); err != nil {
		return nil, err
	}
	e := b.shelf.open(key)
	if e == nil {
		return nil, problem.New(problem.EnvironmentBuildFailed, "the Python changed while an environment was being built on it").
			WithHint("run the command again")
	}
	b.say("Ready: %d packages, %.0f s.", len(e.Packages), time.Since(begun).Seconds())
	return e, nil
}

func (b *builder) checkRoom() error {
	var s unix.Statfs_t
	if err := unix.Statfs(b.shelf.dir, &s); err != nil {
		return fmt.Errorf("look at the free space of %s: %w", b.shelf.dir, err)
	}
	free := int64(s.Bavail) * s.Bsize
	if room := b.shelf.recipe.room; free < room {
		full := diskFull(b.shelf.dir, b.shelf.recipe.set)
		return full.Reworded(fmt.Sprintf("%s: %s are free, and %s are needed", full.Message, size(free), size(room)))
	}
	return nil
}

// fill installs everything into dir and returns its manifest.
func (b *builder) fill(ctx context.Context, tmp, dir string) (manifest, error) {
	r := b.shelf.recipe
	if _, err := b.run(ctx, b.uvCommand(tmp, "venv", "--quiet", "--relocatable", "--no-project", "--python", b.python.Path, dir)); err != nil {
		return manifest{}, err
	}
	bar := newBar(b.progress, b.terminal)
	python := filepath.Join(dir, "bin", "python")
	if err := b.install(ctx, tmp, string(r.set), r.lock, bar, "--python", python); err != nil {
		return manifest{}, err
	}
	imports := []string{"IPython"}
	if r.fonts != nil {
		if err := b.addFonts(ctx, tmp, python); err != nil {
			return manifest{}, err
		}
		imports = append(imports, "numpy", "pandas", "scipy.stats", "matplotlib.pyplot", "matplotlib_inline", "sklearn", "pyarrow", "PIL.Image", "lxml.etree")
	}
	if err := addStandins(dir); err != nil {
		return manifest{}, err
	}
	b.say("  Compiling the packages")
	if _, err := b.script(ctx, tmp, python, "compile.py"); err != nil {
		return manifest{}, err
	}
	packages, err := b.inspect(ctx, tmp, python, imports)
	if err != nil {
		return manifest{}, err
	}
	return manifest{Set: r.set, Recipe: r.digest, Python: b.python.stamp, Base: b.python.Base, Version: b.python.Version, Packages: packages}, nil
}

// addStandins puts in what stands in for pip and uv, and the start hook of child processes.
func addStandins(dir string) error {
	found, err := filepath.Glob(filepath.Join(dir, "lib", "python*", "site-packages"))
	if err != nil || len(found) != 1 {
		return fmt.Errorf("find site-packages in %s: %q: %w", dir, found, cmp.Or(err, fs.ErrNotExist))
	}
	folders := map[string]string{"programs": filepath.Join(dir, "bin"), "site-packages": found[0]}
	for _, name := range standins() {
		place, rest, _ := strings.Cut(strings.TrimPrefix(name, "standin/"), "/")
		path, mode := filepath.Join(folders[place], filepath.FromSlash(rest)), fs.FileMode(0o644)
		if place == "programs" {
			mode = 0o755
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("make a folder for %s: %w", name, err)
		}
		if err := os.WriteFile(path, asset(name), mode); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

// install runs uv pip install with a lock. Wheels only and hashes always: no foreign code runs during a build.
func (b *builder) install(ctx context.Context, tmp, name string, lock []byte, bar *bar, where ...string) error {
	path := filepath.Join(tmp, name+".txt")
	if err := os.WriteFile(path, lock, 0o644); err != nil {
		return fmt.Errorf("write the lock of %s: %w", name, err)
	}
	args := append([]string{"pip", "install", "--no-deps", "--only-binary", ":all:", "--require-hashes", "--requirements", path}, where...)
	c := b.uvCommand(tmp, append(args, b.flags...)...)
	c.follow = bar.follow
	_, err := b.run(ctx, c)
	bar.clear()
	return err
}

func (b *builder) uvCommand(dir string, args ...string) command {
	return command{name: b.uv, args: args, env: b.env, dir: dir}
}

// addFonts puts fonts for most scripts and emoji where matplotlib and other libraries find them.
func (b *builder) addFonts(ctx context.Context, tmp, python string) error {
	b.say("  Adding fonts for most scripts and emoji")
	unpacked := filepath.Join(tmp, "fonts")
	if err := b.install(ctx, tmp, "fonts", b.shelf.recipe.fonts, newBar(io.Discard, false), "--quiet", "--python", python, "--target", unpacked); err != nil {
		return err
	}
	_, err := b.script(ctx, tmp, python, "fonts.py", unpacked)
	return err
}

// inspect imports what the set is for and returns the installed packages.
func (b *builder) inspect(ctx context.Context, tmp, python string, imports []string) (map[string]string, error) {
	out, err := b.script(ctx, tmp, python, "inspect.py", imports...)
	if err != nil {
		return nil, err
	}
	var packages map[string]string
	if err := json.Unmarshal([]byte(out), &packages); err != nil {
		return nil, fmt.Errorf("read the list of installed packages: %w", err)
	}
	return packages, nil
}

// script runs one of our scripts with the environment's Python, away from the user's settings.
func (b *builder) script(ctx context.Context, tmp, python, name string, args ...string) (string, error) {
	path := filepath.Join(tmp, name)
	if err := os.WriteFile(path, asset("scripts/"+name), 0o644); err != nil {
		return "", fmt.Errorf("write %s: %w", name, err)
	}
	home := filepath.Join(tmp, "home")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return "", fmt.Errorf("make a home for %s: %w", name, err)
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "MPLCONFIGDIR=" + home, "IPYTHONDIR=" + home, "MPLBACKEND=agg", "LANG=C.UTF-8",
		"LD_LIBRARY_PATH=" + os.Getenv("LD_LIBRARY_PATH")}
	return b.run(ctx, command{name: python, args: append([]string{"-I", "-X", "utf8", path}, args...), env: env, dir: tmp})
}

// publish makes the files readable for everyone, writes the manifest, brings all of it
// to the disk and gives the environment its name.
func (b *builder) publish(dir, key string, m manifest) error {
	_ = os.Remove(filepath.Join(dir, ".lock")) // uv's own, which anybody could write to
	if err := openUp(dir); err != nil {
		return fmt.Errorf("make the environment readable: %w", err)
	}
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return fmt.Errorf("write the manifest: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, manifestName), append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the manifest: %w", err)
	}
	if err := os.Chmod(filepath.Join(dir, manifestName), 0o644); err != nil { // whatever the umask took away
		return fmt.Errorf("write the manifest: %w", err)
	}
	if err := syncAround(dir); err != nil {
		return fmt.Errorf("bring the environment to the disk: %w", err)
	}
	final := filepath.Join(b.shelf.dir, key)
	if err := discard(final); err != nil { // one that open refused
		return fmt.Errorf("replace %s: %w", final, err)
	}
	if err := os.Rename(dir, final); err != nil {
		return fmt.Errorf("publish the environment: %w", err)
	}
	return syncAround(b.shelf.dir)
}

// openUp lets everyone read dir and nobody but the owner write to it, whatever the umask was.
func openUp(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Type()&fs.ModeSymlink != 0 {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		mode := info.Mode().Perm()&^0o022 | 0o444
		if entry.IsDir() || mode&0o111 != 0 {
			mode |= 0o111
		}
		if mode == info.Mode().Perm() {
			return nil
		}
		return os.Chmod(path, mode)
	})
}

// syncAround writes the file system that holds dir to the disk.
func syncAround(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}

// linkMode tells uv to copy where it could not link from its cache, which it would warn about.
func (b *builder) linkMode(tmp string) {
	home, _ := os.UserHomeDir() // without one uv has no cache there either
	cache := cmp.Or(os.Getenv("UV_CACHE_DIR"), os.Getenv("XDG_CACHE_HOME"), filepath.Join(home, ".cache"))
	if os.Getenv("UV_LINK_MODE") == "" && device(cache) != device(tmp) {
		b.env = append(b.env, "UV_LINK_MODE=copy")
	}
	if os.Getenv("UV_CACHE_DIR") == "" && !writable(cache) {
		b.env = append(b.env, "UV_CACHE_DIR="+filepath.Join(tmp, "cache"))
	}
}

// device returns the device number of path or of the nearest folder above it that exists.
func device(path string) uint64 {
	var s unix.Stat_t
	for unix.Stat(path, &s) != nil {
		if up := filepath.Dir(path); up != path {
			path = up
			continue
		}
		return 0
	}
	return s.Dev
}

// writable tells whether a folder, or the nearest one above it that exists, can be written to.
func writable(path string) bool {
	for strings.Count(path, "/") > 0 {
		err := unix.Access(path, unix.W_OK)
		if err != unix.ENOENT {
			return err == nil
		}
		if path == "/" {
			return false
		}
		path = filepath.Dir(path)
	}
	return false
}
