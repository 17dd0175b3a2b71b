package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"cove/internal/commands/terminal"
	"cove/internal/core/config"
	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/python/kernel"
)

// What one command may put into the out folder. Code in the sandbox is hostile: it must not fill the user's disk
// with files without end.
const (
	maxSavedFiles = 1000
	maxSavedBytes = 8 << 30
	maxNameBytes  = 255
	maxListed     = 1_000_000 // names of a folder that are looked at
)

// outFolder receives what code made. It is created when the first thing is put into it. Every path is opened through
// an os.Root, so that no name leads out of it.
type outFolder struct {
	dir     string
	data    string        // cove's data folder
	inputs  []fs.FileInfo // never overwritten
	record  *outRecord    // of what may be, besides; nil until the folder is open
	force   bool          // everything else may be, too
	brought []string      // inputs, whose names were not taken and which nobody was told of yet
	spared  []string      // files of the user's, whose names were not taken and which nobody was told of yet
	root    *os.Root
	used    map[string]bool   // names taken in this command
	byID    map[string]string // display id -> the figure that it replaces
	byPath  map[string]string // workspace path -> where it was put, which a later version of it replaces
	figures int
	bytes   int64
	saved   []saved
	lost    []loss
	live    *terminal.Live // shows what is saved now, while files are fetched; may be nil
	fetches bool

	held      []heldFigure
	heldBytes int
}

// loss is something that should have been put into the out folder and is not there.
type loss struct {
	name string
	why  error
	told bool
}

// saved is one file in the out folder.
type saved struct {
	Path string // as the user can open it
	Size int64
	From string // "figure" or "file"
}

// newOutFolder returns a folder for results. data is cove's data folder; with force, results replace files of the user's.
func newOutFolder(dir, data string, inputs []input, force bool) (*outFolder, error) {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		return nil, problem.New(problem.OutNotAFolder, dir+" exists and is not a folder").WithHint("choose another folder with --out")
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, problem.New(problem.OutUnusable, "cannot use the folder "+dir).WithCause(err).WithHint("choose another folder with --out")
	}
	o := &outFolder{dir: dir, data: data, force: force, used: map[string]bool{}, byID: map[string]string{}, byPath: map[string]string{}}
	for _, in := range inputs {
		o.inputs = append(o.inputs, in.info)
	}
	return o, nil
}

func (o *outFolder) close() {
	if o.root != nil {
		o.record.save(o.root)
		_ = o.root.Close()
	}
}

func (o *outFolder) open() error {
	if o.root != nil {
		return nil
	}
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return problem.New(problem.OutUnusable, "cannot make the folder "+o.dir).WithCause(err).WithHint("choose another folder with --out")
	}
	root, err := os.OpenRoot(o.dir)
	if err != nil {
		return problem.New(problem.OutUnusable, "cannot use the folder "+o.dir).WithCause(err).WithHint("choose another folder with --out")
	}
	o.root, o.record = root, openOutRecord(o.data, o.dir)
	return nil
}

// hasRoom says whether one more file may be saved; the first refusal leaves a note.
func (o *outFolder) hasRoom() bool {
	if len(o.saved) < maxSavedFiles && o.bytes < maxSavedBytes {
		return true
	}
	o.lose(afterwards, problem.New(problem.OutFull, fmt.Sprintf("one command saves at most %d files and %s", maxSavedFiles, config.Size(maxSavedBytes))))
	return false
}

// mostLosses bounds the results that were not saved and are remembered by name.
const mostLosses = 100

// afterwards is the name of all that comes after a bound.
const afterwards = "what came after"

// lose notes that a result was not saved, once for each name; what it had said before is no longer so.
func (o *outFolder) lose(name string, why error) {
	if len(o.lost) >= mostLosses {
		name = afterwards
	}
	for i := range o.lost {
		if o.lost[i].name == name {
			o.lost[i].why = why
			return
		}
	}
	o.lost = append(o.lost, loss{name: name, why: why})
}

// shownLosses bounds how many results that were not saved are told of by name.
const shownLosses = 5

// failure says what was not saved, or is nil when everything was. It must not be ignored: the user of a command wants its results.
func (o *outFolder) failure() error {
	if len(o.lost) == 0 {
		return nil
	}
	var parts []string
	for _, l := range o.lost[:min(len(o.lost), shownLosses)] {
		parts = append(parts, oneLine(l.name)+": "+oneLine(message(l.why)))
	}
	if more := len(o.lost) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return problem.New(problem.ResultsUnsaved, "not everything was saved in "+o.dir+": "+strings.Join(parts, "; ")).
		WithHint("choose another folder with --out, or make room in this one")
}

// tellSpared writes which files stayed as they were, and was not told of before, for people.
func (o *outFolder) tellSpared(w io.Writer) {
	for _, path := range o.spared {
		notef(w, "%s was there before and is not from cove: it stays, and what the code made got another name (--force replaces it)", oneLine(path))
	}
	for _, path := range o.brought {
		notef(w, "%s came with -f and stays as it is: what the code made of it got another name", oneLine(path))
	}
	o.spared, o.brought = nil, nil
}

// tellLosses writes what was not saved, or not under its name, and was not told of before, for people.
func (o *outFolder) tellLosses(w io.Writer) {
	o.tellSpared(w)
	for i := range o.lost {
		if l := &o.lost[i]; !l.told {
			l.told = true
			notef(w, "%s was not saved: %s", oneLine(l.name), oneLine(spoken(l.why)))
		}
	}
}

// mostHeld bounds the bytes of figures that are held back.
const mostHeld = 64 << 20

// heldFigure is a figure that code has saved itself as the file name. It is saved where that file does not come.
type heldFigure struct {
	name, ending string
	content      []byte
}

// shown is something that code showed.
type shown struct {
	data     kernel.Bundle
	metadata map[string]any
	id       string
	update   bool
}

// figure saves the image in a bundle, where there is one. ok is false when the bundle has none, and when it is lost. A figure that the code has saved
// itself is held back, and then s has no path.
func (o *outFolder) figure(d shown, plotly func() string) (s saved, ok bool) {
	ending, content := figureOf(d.data, plotly)
	if content == nil || !o.hasRoom() {
		return saved{}, false
	}
	if name := aboutFigure(d.metadata).Saved; name != "" && !d.update && o.heldBytes+len(content) <= mostHeld {
		o.held = append(o.held, heldFigure{name, ending, content})
		o.heldBytes += len(content)
		return saved{From: "figure"}, true
	}
	return o.put(ending, content, d.id, d.update)
}

// release saves the figures that were held back for files that did not come.
func (o *outFolder) release() {
	held := o.held
	o.held, o.heldBytes = nil, 0
	for _, h := range held {
		if _, came := o.byPath[h.name]; !came && o.hasRoom() {
			o.put(h.ending, h.content, "", false)
		}
	}
}

// number is the number of the next figure: figures of earlier commands in the same folder stay.
func (o *outFolder) number() int {
	if o.figures == 0 && o.open() == nil {
		if dir, err := o.root.Open("."); err == nil {
			names, _ := dir.Readdirnames(maxListed) // of those that cannot be read, free looks at each
			for _, name := range names {
				digits, found := strings.CutPrefix(strings.TrimSuffix(name, path.Ext(name)), "figure-")
				if n, err := strconv.Atoi(digits); found && err == nil && n < maxListed {
					o.figures = max(o.figures, n)
				}
			}
			_ = dir.Close()
		}
	}
	o.figures++
	return o.figures
}

func (o *outFolder) put(ending string, content []byte, id string, update bool) (s saved, ok bool) {
	name, again := o.byID[id]
	if !update || !again || path.Ext(name) != ending {
		name = fmt.Sprintf("figure-%d%s", o.number(), ending)
		again = false
	}
	asked, err := name, error(nil)
	if !again {
		name, err = o.free(name)
	}
	var size int64
	if err == nil {
		size, err = o.write(name, func(w io.Writer) error { _, err := w.Write(content); return err })
	}
	if err != nil {
		o.lose(asked, err)
		return saved{}, false
	}
	if id != "" {
		o.byID[id] = name
	}
	s = saved{Path: filepath.Join(o.dir, name), Size: size, From: "figure"}
	o.remember(s)
	return s, true
}

func (o *outFolder) remember(s saved) {
	for i := range o.saved {
		if o.saved[i].Path == s.Path {
			o.bytes += s.Size - o.saved[i].Size
			o.saved[i] = s
			return
		}
	}
	o.bytes += s.Size
	o.saved = append(o.saved, s)
}

// fetcher is the part of a session that hands files out.
type fetcher interface {
	Fetch(ctx context.Context, path string, w io.Writer) error
}

// files fetches what the code created or changed, and returns those that were not saved and may be tried again. One file that cannot be had
// does not stop the rest.
func (o *outFolder) files(ctx context.Context, from fetcher, files []kernel.File) (left []kernel.File) {
	if len(files) > 0 {
		o.fetches = true
		defer func() { o.fetches = false; o.live.Over() }()
	}
	defer o.release()
	for _, f := range files {
		if _, again := o.byPath[f.Path]; !again && !o.hasRoom() {
			continue
		}
		err := ctx.Err()
		if err == nil {
			err = o.file(ctx, from, f.Path)
		}
		switch {
		case ctx.Err() != nil:
			o.lose(f.Path, problem.New(problem.GivenUp, "it was stopped before that"))
			left = append(left, f)
		case err != nil:
			o.lose(f.Path, err)
			left = append(left, f)
		default:
			o.lost = slices.DeleteFunc(o.lost, func(l loss) bool { return l.name == f.Path })
		}
	}
	return left
}

func (o *outFolder) file(ctx context.Context, from fetcher, name string) error {
	safe, err := safePath(name)
	if err != nil {
		return err
	}
	if earlier, again := o.byPath[name]; again {
		safe = earlier
	} else if safe, err = o.free(safe); err != nil {
		return err
	}
	gone := false
	size, err := o.write(safe, func(w io.Writer) error {
		err := from.Fetch(ctx, name, w)
		gone = problem.Has(err, problem.FileNotFound)
		return err
	})
	if gone {
		return nil // by what still runs: it is no result any more
	}
	if err != nil {
		return err
	}
	o.byPath[name] = safe
	o.remember(saved{Path: filepath.Join(o.dir, filepath.FromSlash(safe)), Size: size, From: "file"})
	return nil
}

// safePath makes a name from the sandbox fit for the user's disk and terminal, or refuses it.
func safePath(name string) (string, error) {
	if name == "" || strings.HasPrefix(name, "/") {
		return "", problem.New(problem.NameRefused, "its path is not relative to the workspace")
	}
	parts := strings.Split(name, "/")
	for i, part := range parts {
		if part == "" || part == "." || part == ".." || len(part) > maxNameBytes {
			return "", problem.New(problem.NameRefused, "its path is not plain")
		}
		parts[i] = strings.Map(func(r rune) rune {
			if r == unicode.ReplacementChar || r == '\\' || !unicode.IsGraphic(r) {
				return '_'
			}
			return r
		}, part)
	}
	return strings.Join(parts, "/"), nil
}

// free returns name, or a variant of it when name was given out in this command or is a file of the user's.
func (o *outFolder) free(name string) (string, error) {
	if err := o.open(); err != nil {
		return "", err
	}
	ending := path.Ext(name)
	if ending == path.Base(name) {
		ending = "" // as .bashrc
	}
	for n := 1; n <= maxSavedFiles; n++ {
		candidate := name
		if n > 1 {
			candidate = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, ending), n, ending)
		}
		if !o.used[candidate] && !o.isUsers(candidate) {
			o.used[candidate] = true
			return candidate, nil
		}
	}
	return "", problem.New(problem.NameTaken, "too many files have this name")
}

func (o *outFolder) isInput(name string) bool {
	info, err := o.root.Stat(name)
	if err != nil {
		return false
	}
	for _, in := range o.inputs {
		if os.SameFile(info, in) {
			return true
		}
	}
	return false
}

// write puts a file in place whole or not at all: it fills a partial file beside it, then renames.
func (o *outFolder) write(name string, fill func(io.Writer) error) (int64, error) {
	if err := o.parents(path.Dir(name)); err != nil {
		return 0, err
	}
	if info, err := o.root.Lstat(name); err == nil && info.IsDir() {
		return 0, problem.New(problem.NameTaken, "a folder of that name is in "+o.dir)
	}
	partial := path.Join(path.Dir(name), fmt.Sprintf("%s%d", partialPrefix, os.Getpid()))
	f, err := o.root.OpenFile(partial, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return 0, unwrittenResult(err)
	}
	counted := &boundedWriter{to: f, left: maxSavedBytes - o.bytes, told: func(n int64) {
		if o.fetches {
			o.live.Progress("saving " + filepath.Join(o.dir, name) + "  " + humanSize(n))
		}
	}}
	err = fill(counted)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = o.root.Rename(partial, name)
	}
	if err != nil {
		_ = o.root.Remove(partial)
		return 0, unwrittenResult(err)
	}
	if info, err := o.root.Lstat(name); err == nil {
		o.record.add(name, info)
	}
	return counted.written, nil
}

// parents makes the folders above a file; a link or a file in their place is refused, never followed.
func (o *outFolder) parents(dir string) error {
	if dir == "." {
		return nil
	}
	at := ""
	for _, part := range strings.Split(dir, "/") {
		at = path.Join(at, part)
		info, err := o.root.Lstat(at)
		switch {
		case err == nil && info.IsDir():
		case err == nil:
			return problem.New(problem.NameTaken, filepath.Join(o.dir, at)+" is in the way and is not a folder")
		case !errors.Is(err, fs.ErrNotExist):
			return err
		default:
			if err := o.root.Mkdir(at, 0o755); err != nil {
				return err
			}
		}
	}
	return nil
}

// boundedWriter counts, and refuses more bytes than were left; a sandbox may claim any size for a file.
type boundedWriter struct {
	to            io.Writer
	left, written int64
	told          func(written int64)
}

func (b *boundedWriter) Write(p []byte) (int, error) {
	if int64(len(p)) > b.left {
		return 0, problem.New(problem.OutFull, "one command may save "+config.Size(maxSavedBytes).String()+" in all")
	}
	n, err := b.to.Write(p)
	b.left -= int64(n)
	b.written += int64(n)
	if b.told != nil {
		b.told(b.written)
	}
	return n, err
}

// list writes what was saved, for people.
func (o *outFolder) list(w io.Writer) {
	o.tellSpared(w)
	width := 0
	for _, s := range o.saved {
		width = max(width, len(s.Path))
	}
	for _, s := range o.saved {
		lang.Fprintf(w, "saved %-*s  %s\n", width, s.Path, humanSize(s.Size))
	}
}

func humanSize(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	v, u := float64(n), 0
	for v >= 1024 && u < len(units)-1 {
		v, u = v/1024, u+1
	}
	if u == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", v, units[u])
}
