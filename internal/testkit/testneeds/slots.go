package testneeds

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	slotsVariable = "COVE_TEST_SLOTS" // the number of slots, where it is not that of the processors
	innerVariable = "COVE_TEST_INNER" // set for programs that a test with a slot starts, its own among them: they take none
	slotPoll      = 20 * time.Millisecond
)

// In a line with Awaited a test says that it waits for what is no part of it, a Slot or a download, and in one with Came that it goes on. Package report, which does not count the time between,
// reads them.
const (
	Awaited = "awaited: "
	Came    = "came: "
	Slot    = "a slot"
)

// slots are the rights to put this machine to work, of which it has as many as processors: a test takes one before it starts a sandbox, a server, a browser, a database or a compiler, and has
// it until it ends. So the bounds of a test measure that test, and not those that run beside it, whatever their number. A slot is a locked file, which holds across processes and ends with them.
type slots struct {
	inner bool       // this process was started by a test that has one
	queue sync.Mutex // one test of a process looks for a slot at a time, so that they get one in the order in which they asked
	spare spare
	mu    sync.Mutex
	held  map[string]*os.File // by the name of the test
}

// ownSlots are those of this process.
var ownSlots = sync.OnceValue(func() *slots {
	return &slots{inner: os.Getenv(innerVariable) != "", held: map[string]*os.File{}}
})

// TakeSlot waits for a slot, which t has until it ends. What belongs to a test that has one, as its parts do, takes no second: parts of such a test are not parallel, since they may wait for each
// other then.
func TakeSlot(t testing.TB) {
	t.Helper()
	if ownSlots().take(t) {
		timeout(t)
	}
}

// take waits for a slot for t, unless t has one already.
func (s *slots) take(t testing.TB) bool {
	t.Helper()
	if s.inner || s.has(t.Name()) {
		return false
	}
	defer await(t, Slot)()
	s.queue.Lock()
	defer s.queue.Unlock()
	if s.has(t.Name()) { // another goroutine of the test has taken it meanwhile
		return false
	}
	for {
		file, err := lockSlot(s.spare.slots())
		if err != nil {
			t.Fatalf("take a slot: %v", err)
		}
		if file != nil {
			s.set(t.Name(), file)
			break
		}
		time.Sleep(slotPoll)
	}
	if err := os.Setenv(innerVariable, "1"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.set(t.Name(), nil) })
	return true
}

// await says that a test waits for something. The function that it returns says that it does not any more.
func await(t testing.TB, what string) (came func()) {
	t.Helper()
	began := time.Now()
	t.Log(Awaited + what)
	return func() {
		t.Helper()
		t.Logf("%s%s after %.1fs", Came, what, time.Since(began).Seconds())
	}
}

// has says whether a test or what it is a part of has a slot.
func (s *slots) has(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if s.held[name] != nil {
			return true
		}
		i := strings.LastIndexByte(name, '/')
		if i < 0 {
			return false
		}
		name = name[:i]
	}
}

// set notes the slot of a test, or gives it back when file is nil.
func (s *slots) set(name string, file *os.File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if file == nil {
		_ = s.held[name].Close()
		delete(s.held, name)
		return
	}
	s.held[name] = file
}

// lockSlot returns the file of a free slot, locked, or nil when there is none. There are some more than usual, unless their number was set.
func lockSlot(more int) (*os.File, error) {
	count := runtime.NumCPU() + more
	if text := os.Getenv(slotsVariable); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%s is %q; it is a number from 1", slotsVariable, text)
		}
		count = n
	}
	folder := filepath.Join(os.TempDir(), "cove-test-slots") // of all users
	if err := os.Mkdir(folder, 0o777); err == nil {
		err = os.Chmod(folder, 0o777) // whatever the umask
		if err != nil {
			return nil, err
		}
	} else if !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	for i := range count {
		file, err := openSlot(filepath.Join(folder, strconv.Itoa(i)))
		if err != nil {
			return nil, err
		}
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return file, nil
		}
		_ = file.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, err
		}
	}
	return nil, nil
}

// openSlot opens the file of a slot for reading, which is enough for a lock and which every user may, and makes it where it is missing.
func openSlot(path string) (*os.File, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		file, err = os.OpenFile(path, os.O_RDONLY|os.O_CREATE, 0o644)
	}
	return file, err
}
