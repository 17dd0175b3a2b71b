package layer

import (
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"cove/internal/python/deps/require"
)

const (
	longestName = 255
	longestPath = 1024
	deepestPath = 64

	modeType      = 0o170000
	modeRegular   = 0o100000
	modeDirectory = 0o040000
)

// target is a file that is unpacked.
type target struct {
	member
	path       string // below the tree
	record     string // the hash that it has to have; "" for RECORD itself
	executable bool
}

// plan says what to unpack of a wheel.
type plan struct {
	targets  []target
	stripped []string
	size     int64 // bytes, as the archive says
}

// planner makes a plan.
type planner struct {
	wheel   Wheel
	archive *archive
	info    string // the .dist-info folder
	record  record
	skipped map[string]int // what kind of file was left out, how many
	scripts []member       // compiled programs among the wheel's scripts
	plan    plan
}

// programs is the folder of a layer with the compiled programs of wheels. It is on no PATH; `python -m ruff` and its like look for their program there, beside the module.
const programs = "bin"

// makePlan decides about each file of a wheel. Nothing is written yet.
func makePlan(w Wheel, a *archive) (*plan, error) {
	p := &planner{wheel: w, archive: a, skipped: map[string]int{}}
	if err := p.checkNames(); err != nil {
		return nil, err
	}
	if err := p.readInfo(); err != nil {
		return nil, err
	}
	for _, m := range a.members {
		if isFolder(m) {
			continue
		}
		if err := p.place(m); err != nil {
			return nil, err
		}
	}
	if err := p.placePrograms(); err != nil {
		return nil, err
	}
	if err := p.checkTargets(); err != nil {
		return nil, err
	}
	for kind, n := range p.skipped {
		p.plan.stripped = append(p.plan.stripped, fmt.Sprintf("%s: %s (%d)", w.Name, kind, n))
	}
	slices.Sort(p.plan.stripped)
	return &p.plan, nil
}

func isFolder(m member) bool { return strings.HasSuffix(m.name, "/") }

// checkNames refuses names that lead elsewhere or that mean different things to different readers, and everything but files and folders.
func (p *planner) checkNames() error {
	seen := make(map[string]bool, len(p.archive.members))
	for _, m := range p.archive.members {
		name := strings.TrimSuffix(m.name, "/")
		if why := badName(name); why != "" {
			return defectf("it has a file name that %s: %q", why, shortened(m.name))
		}
		switch kind := m.mode & modeType; {
		case isFolder(m) && (kind != 0 && kind != modeDirectory || m.size != 0):
			return defectf("%q is not a folder, as its name says", name)
		case !isFolder(m) && kind != 0 && kind != modeRegular:
			return defectf("%q is not an ordinary file", name)
		case seen[name] && !isFolder(m):
			return defectf("%q is in it twice", name)
		}
		seen[name] = true
	}
	return nil
}

// badName says what is wrong with a path of an archive, or returns "".
func badName(name string) string {
	switch {
	case name == "":
		return "is empty"
	case len(name) > longestPath || strings.Count(name, "/") >= deepestPath:
		return "is too long"
	case name[0] == '/' || len(name) > 1 && name[1] == ':':
		return "is absolute"
	case strings.Contains(name, "\\"):
		return "has a backslash"
	}
	for _, c := range []byte(name) {
		if c < 0x20 || c == 0x7f {
			return "has a control character"
		}
	}
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "" || part == "." || part == "..":
			return "leads elsewhere"
		case len(part) > longestName:
			return "is too long"
		}
	}
	return ""
}

func shortened(s string) string {
	if len(s) > 80 {
		return strings.ToValidUTF8(s[:80], "") + "..."
	}
	return s
}

// readInfo finds the .dist-info folder and reads what is needed of it.
func (p *planner) readInfo() error {
	for _, m := range p.archive.members {
		top, _, below := strings.Cut(m.name, "/")
		if !below || !strings.HasSuffix(strings.ToLower(top), ".dist-info") {
			continue
		}
		if p.info != "" && p.info != top {
			return defectf("it has two folders of metadata, %q and %q", p.info, top)
		}
		p.info = top
	}
	stem := strings.TrimSuffix(p.info, ".dist-info")
	dash := strings.LastIndex(stem, "-")
	if p.info == "" || dash < 0 {
		return defect("it has no folder of metadata")
	}
	if require.Normalize(stem[:dash]) != p.wheel.Name || !sameVersion(stem[dash+1:], p.wheel.Version) {
		return defectf("its metadata is of another distribution or version, %q", stem)
	}
	texts := map[string][]byte{"METADATA": nil, "WHEEL": nil, "RECORD": nil}
	for _, m := range p.archive.members {
		file, ok := strings.CutPrefix(m.name, p.info+"/")
		if _, wanted := texts[file]; !ok || !wanted {
			continue
		}
		text, err := p.readSmall(m, file)
		if err != nil {
			return err
		}
		texts[file] = text
	}
	for file, text := range texts {
		if text == nil {
			return defectf("it has no %s", file)
		}
	}
	if err := checkMetadata(texts["METADATA"], p.wheel); err != nil {
		return err
	}
	if err := checkWheelFile(texts["WHEEL"]); err != nil {
		return err
	}
	var err error
	p.record, err = readRecord(texts["RECORD"])
	return err
}

func (p *planner) readSmall(m member, file string) ([]byte, error) {
	limit := int64(longestMetadata)
	if file == "RECORD" {
		limit = longestRecord
	}
	if m.size > limit {
		return nil, defectf("its %s is too long", file)
	}
	text, err := io.ReadAll(p.archive.content(m, newInflater()))
	if text == nil {
		text = []byte{}
	}
	return text, err
}

// place decides about one file.
func (p *planner) place(m member) error {
	where := m.name
	if top, below, _ := strings.Cut(m.name, "/"); strings.HasSuffix(strings.ToLower(top), ".data") {
		scheme, rest, _ := strings.Cut(below, "/")
		if scheme == "scripts" && p.isProgram(m, rest) {
			p.scripts = append(p.scripts, m)
			return nil
		}
		if scheme != "purelib" && scheme != "platlib" || rest == "" {
			p.skipped[strings.TrimRight("files of "+top+"/"+scheme, "/")]++
			return nil
		}
		where = rest
		if top, _, _ := strings.Cut(rest, "/"); top != p.info && strings.HasSuffix(strings.ToLower(top), ".dist-info") {
			return defectf("it has two folders of metadata, %q and %q", p.info, top)
		}
	}
	if isBytecode(where) {
		p.skipped["compiled files"]++
		return nil
	}
	entry, listed := p.record[m.name]
	switch {
	case m.name == p.info+"/RECORD":
		entry = ""
	case m.name == p.info+"/RECORD.jws" || m.name == p.info+"/RECORD.p7s":
		return nil
	case !listed:
		return defectf("its RECORD does not list %q", m.name)
	default:
		if h, _ := newHash(entry); h == nil {
			return defectf("its RECORD has no SHA-256 hash for %q", m.name)
		}
	}
	if why := startsItself(where); why != "" {
		p.plan.stripped = append(p.plan.stripped, fmt.Sprintf("%s: %s (%s)", p.wheel.Name, where, why))
		return nil
	}
	p.plan.size += m.size
	p.plan.targets = append(p.plan.targets, target{member: m, path: where, record: entry, executable: m.mode&modeType == modeRegular && m.mode&0o111 != 0})
	return nil
}

// isProgram says that one of a wheel's scripts is a compiled program, which modules of the wheel may start. Scripts in text are left out: their first line names an interpreter
// that an installer would have to write.
func (p *planner) isProgram(m member, name string) bool {
	if name == "" || strings.Contains(name, "/") || m.size < int64(len(elfMagic)) {
		return false
	}
	head := make([]byte, len(elfMagic))
	_, err := io.ReadFull(p.archive.content(m, newInflater()), head)
	return err == nil && string(head) == elfMagic
}

// elfMagic begins every program of Linux; see elf(5).
const elfMagic = "\x7fELF"

// placePrograms puts compiled programs into the folder programs, where no other file of the wheel is in their way.
func (p *planner) placePrograms() error {
	taken := make(map[string]bool, len(p.plan.targets))
	for _, t := range p.plan.targets {
		taken[t.path] = true
	}
	for _, m := range p.scripts {
		where := programs + "/" + path.Base(m.name)
		if taken[programs] || taken[where] {
			p.skipped["programs in the place of other files"]++
			continue
		}
		taken[where] = true
		entry, listed := p.record[m.name]
		if !listed {
			return defectf("its RECORD does not list %q", m.name)
		}
		if h, _ := newHash(entry); h == nil {
			return defectf("its RECORD has no SHA-256 hash for %q", m.name)
		}
		p.plan.size += m.size
		p.plan.targets = append(p.plan.targets, target{member: m, path: where, record: entry, executable: true})
	}
	return nil
}

// isBytecode tells what Python would take for its own work.
func isBytecode(name string) bool {
	lower := strings.ToLower(name)
	return strings.HasSuffix(lower, ".pyc") || strings.HasSuffix(lower, ".pyo") || slices.Contains(strings.Split(lower, "/"), "__pycache__")
}

// startsItself tells what Python's site module would run at the start of every interpreter if the tree were a site folder.
// See the documentation of Python's module site; .start files come with Python 3.15 (PEP 829).
func startsItself(name string) string {
	top, _, below := strings.Cut(strings.ToLower(name), "/")
	if ext := path.Ext(top); !below && (ext == ".pth" || ext == ".start") {
		return "would run at every start"
	}
	switch root, _, _ := strings.Cut(top, "."); root {
	case "sitecustomize", "usercustomize":
		return "would run at every start"
	}
	return ""
}

// checkTargets refuses two files in one place, also after the .data folders were merged, and a file in the place of a folder.
func (p *planner) checkTargets() error {
	files := make(map[string]bool, len(p.plan.targets))
	for _, t := range p.plan.targets {
		if files[t.path] {
			return defectf("%q is in it twice", t.path)
		}
		files[t.path] = true
	}
	for _, t := range p.plan.targets {
		for dir := path.Dir(t.path); dir != "."; dir = path.Dir(dir) {
			if files[dir] {
				return defectf("%q is a file and a folder", dir)
			}
		}
	}
	return nil
}

// identifier is roughly a Python identifier; a name with other letters than ASCII is taken as one.
var identifier = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z_\x{80}-\x{10ffff}][A-Za-z0-9_\x{80}-\x{10ffff}]*$`)
})

// rootsOf returns the root modules that a tree with those files provides, sorted.
func rootsOf(files []entry) []string {
	found := map[string]bool{}
	for _, f := range files {
		top, _, below := strings.Cut(f.path, "/")
		base := path.Base(f.path)
		if ext := path.Ext(base); ext != ".py" && ext != ".so" {
			continue
		}
		if !below {
			top, _, _ = strings.Cut(base, ".")
		}
		if identifier().MatchString(top) {
			found[top] = true
		}
	}
	roots := make([]string, 0, len(found))
	for root := range found {
		roots = append(roots, root)
	}
	slices.Sort(roots)
	return roots
}
