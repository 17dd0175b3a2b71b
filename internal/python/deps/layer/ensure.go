package layer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"cove/internal/core/problem"
)

const (
	downloads = 6 // wheels of one closure that are made at a time
	// roomFactor is how much of the disk a wheel needs while it is being made, in sizes of its file: the file, what is in it, and the bytecode.
	roomFactor = 5
	attempts   = 3 // to put a layer together, when a sweep takes its wheels away meanwhile
)

// Ensure returns the layer of a closure, making it when it is missing; made says which. Callers that ask for the same layer at the same time, in any process, wait for one
// making, and for one download of each wheel. When it fails or is killed, nothing half-made is left that anybody would use; wheels that were
// whole by then are kept. told may be nil; it is not called from two goroutines at once.
//
// Problems: wheel_invalid (with the reason), package_hash_mismatch, closure_too_big, closure_invalid, disk_full, python_unusable, canceled (which
// wraps the context's cause), and those of fetch.
func (s *Store) Ensure(ctx context.Context, c Closure, fetch Fetch, told func(Progress)) (l *Layer, made bool, err error) {
	if err := checkClosure(c); err != nil {
		return nil, false, err
	}
	tag, err := s.tagOf(ctx, c.Python)
	if err != nil {
		return nil, false, s.explain(ctx, err)
	}
	name := s.nameOf(tag, c.Wheels)
	if l, ok := s.use(name); ok {
		return l, false, nil
	}
	m := newMaking(s, c, tag, name, fetch, told)
	lock, err := s.alone(ctx, name, func() { m.tell(Progress{Phase: PhaseWait}) })
	if err != nil {
		return nil, false, s.explain(ctx, err)
	}
	defer free(lock)
	if l, ok := s.use(name); ok {
		return l, false, nil
	}
	l, err = m.run(ctx)
	if err != nil {
		return nil, false, s.explain(ctx, err)
	}
	return l, true, nil
}

// explain turns what an operation ended with into a problem, where it is not one yet.
func (s *Store) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return problem.New(problem.GivenUp, "the installation of packages was cancelled").
			WithHint("no incomplete files were kept; run it again to start over").WithCause(context.Cause(ctx))
	}
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return s.diskFull().WithCause(err)
	}
	return fmt.Errorf("install packages: %w", err)
}

func (s *Store) diskFull() *problem.Error {
	return problem.New(problem.DiskFull, "there is not enough free disk space for packages at "+s.dir).
		WithHint("free some space there, or set COVE_HOME to a folder on a larger disk")
}

// making is the making of one layer. Its owner holds the layer's lock.
type making struct {
	store  *Store
	python string
	tag    string
	name   string
	wheels []Wheel // sorted by name
	fetch  Fetch

	telling  sync.Mutex
	told     func(Progress)
	received map[string]int64 // by hash
	total    map[string]int64

	mu     sync.Mutex
	counts map[string]*count // by hash
}

// count is what of a closure's limits one wheel takes.
type count struct {
	wheel    Wheel
	download int64
	unpacked int64
	files    int
}

func newMaking(s *Store, c Closure, tag, name string, fetch Fetch, told func(Progress)) *making {
	m := &making{store: s, python: c.Python, tag: tag, name: name, fetch: fetch, told: told, wheels: slices.Clone(c.Wheels),
		received: map[string]int64{}, total: map[string]int64{}, counts: map[string]*count{}}
	slices.SortFunc(m.wheels, func(a, b Wheel) int { return strings.Compare(a.Name, b.Name) })
	return m
}

// tell passes progress on.
func (m *making) tell(p Progress) {
	if m.told == nil {
		return
	}
	m.telling.Lock()
	defer m.telling.Unlock()
	for _, n := range m.received {
		p.Received += n
	}
	for _, n := range m.total {
		if n == 0 {
			p.Total = 0
			break
		}
		p.Total += n
	}
	m.told(p)
}

// run makes the missing wheels and puts the layer together.
func (m *making) run(ctx context.Context) (*Layer, error) {
	for attempt := 1; ; attempt++ {
		wheels, err := m.gather(ctx)
		if err != nil {
			return nil, err
		}
		l, err := m.join(ctx, wheels)
		if attempt < attempts && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		return l, err
	}
}

// gather returns what is in each wheel, after making those that are missing.
func (m *making) gather(ctx context.Context) ([]*contents, error) {
	found := make([]*contents, len(m.wheels))
	for i, w := range m.wheels {
		if err := m.charge(w, func(c *count) { c.download = w.Size }); err != nil {
			return nil, err
		}
		if found[i] = m.store.known(wheelKey(w, m.tag)); found[i] != nil {
			if err := m.accept(w, found[i]); err != nil {
				return nil, err
			}
			m.store.noteWheel(wheelKey(w, m.tag))
			continue
		}
		m.total[w.SHA256] = w.Size
	}
	if err := m.checkRoom(found); err != nil {
		return nil, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(downloads)
	for i, w := range m.wheels {
		if found[i] != nil {
			continue
		}
		group.Go(func() error {
			var err error
			found[i], err = m.ensureWheel(ctx, w)
			return err
		})
	}
	return found, group.Wait()
}

// accept counts a wheel that is there already. The hash alone decides what it is, so the name has to be compared again.
func (m *making) accept(w Wheel, c *contents) error {
	if !sameWheel(w, c.Wheel) {
		return invalidWheel(w, fmt.Sprintf("it is %s %s", c.Name, c.Version))
	}
	return m.charge(w, func(n *count) { n.download, n.unpacked, n.files = c.Size, c.Unpacked, c.Files })
}

// ensureWheel returns a wheel that somebody else is making, or makes it.
func (m *making) ensureWheel(ctx context.Context, w Wheel) (*contents, error) {
	key := wheelKey(w, m.tag)
	lock, err := m.store.alone(ctx, key, func() { m.tell(Progress{Phase: PhaseWait, Wheel: w}) })
	if err != nil {
		return nil, err
	}
	defer free(lock)
	if c := m.store.known(key); c != nil {
		m.telling.Lock()
		delete(m.total, w.SHA256)
		m.telling.Unlock()
		return c, m.accept(w, c)
	}
	return m.makeWheel(ctx, w)
}

// checkRoom looks whether the disk has room for the wheels that are missing.
func (m *making) checkRoom(found []*contents) error {
	var need int64
	for i, w := range m.wheels {
		if found[i] == nil {
			need += w.Size * roomFactor
		}
	}
	return m.store.checkRoom(need)
}

// Reserve stays free on the disk: requests for packages must not be able to fill it.
const Reserve = 1 << 30

func (s *Store) checkRoom(need int64) error {
	if need == 0 {
		return nil
	}
	var st unix.Statfs_t
	if err := unix.Statfs(s.dir, &st); err != nil {
		return fmt.Errorf("look at the free space of %s: %w", s.dir, err)
	}
	if free := int64(st.Bavail) * st.Bsize; free < need+Reserve {
		full := s.diskFull()
		return full.Reworded(fmt.Sprintf("%s: %s are free, and about %s are needed", full.Message, bytesText(free), bytesText(need+Reserve)))
	}
	return nil
}

// charge changes what a wheel takes of the limits, and says if that is too much.
func (m *making) charge(w Wheel, change func(*count)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.counts[w.SHA256]
	if c == nil {
		c = &count{wheel: w}
		m.counts[w.SHA256] = c
	}
	change(c)
	var sum count
	for _, c := range m.counts {
		sum.download += c.download
		sum.unpacked += c.unpacked
		sum.files += c.files
	}
	l := m.store.limits
	number := func(n int64) string { return fmt.Sprintf("%d", n) }
	switch {
	case l.Wheels > 0 && len(m.wheels) > l.Wheels:
		return tooBig("distributions", number(int64(len(m.wheels))), number(int64(l.Wheels)), "")
	case l.Download > 0 && sum.download > l.Download:
		return tooBig("to download", bytesText(sum.download), bytesText(l.Download), m.biggest(bytesText, func(c *count) int64 { return c.download }))
	case l.Unpacked > 0 && sum.unpacked > l.Unpacked:
		return tooBig("unpacked", bytesText(sum.unpacked), bytesText(l.Unpacked), m.biggest(bytesText, func(c *count) int64 { return c.unpacked }))
	case l.Files > 0 && sum.files > l.Files:
		return tooBig("files", number(int64(sum.files)), number(int64(l.Files)), m.biggest(number, func(c *count) int64 { return int64(c.files) }))
	}
	return nil
}

func tooBig(what, is, limit, biggest string) error {
	message := fmt.Sprintf("these packages are too big to install: %s %s, where the limit is %s", is, what, limit)
	if biggest != "" {
		message += "; the biggest: " + biggest
	}
	return problem.New(problem.ClosureTooBig, message).WithHint("ask for less at a time, or raise the limits of packages in the configuration")
}

// biggest names up to three wheels. The caller holds the lock.
func (m *making) biggest(text func(int64) string, of func(*count) int64) string {
	var all []*count
	for _, c := range m.counts {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *count) int {
		return cmp.Or(cmp.Compare(of(b), of(a)), strings.Compare(a.wheel.Name, b.wheel.Name))
	})
	var names []string
	for _, c := range all[:min(3, len(all))] {
		names = append(names, fmt.Sprintf("%s %s (%s)", c.wheel.Name, c.wheel.Version, text(of(c))))
	}
	return strings.Join(names, ", ")
}

func bytesText(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.1f GB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f kB", float64(n)/1e3)
}
