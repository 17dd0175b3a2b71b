package testneeds

import (
	"bytes"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// How long a test may take, without the time in which it waited for a slot. Package report ends what does not end by itself.
const (
	QuickTimeout   = 30 * time.Second // of tests that need nothing but Go
	LandingTimeout = 3 * time.Minute  // of those that `make test` runs, too
	FullTimeout    = 10 * time.Minute // of those that only `make test-all` runs
)

// Patience bounds how long a test waits for a fact. It is a guard against hanging and measures nothing.
const Patience = 4 * time.Minute

// slownessVariable says how many times as long as usual tests may take: under the race detector, on an emulated machine.
const slownessVariable = "COVE_TEST_SLOWNESS"

// Allowed returns how long a test may take that has this timeout on a usual machine.
func Allowed(timeout time.Duration) time.Duration {
	times, err := strconv.Atoi(os.Getenv(slownessVariable))
	if err != nil || times < 1 {
		return timeout
	}
	return timeout * time.Duration(times)
}

// TimeoutSet begins the line in which a test says how long it may take.
const TimeoutSet = "timeout: "

// timeouts are what this process knows of its tests.
type timeouts struct {
	mu          sync.Mutex
	full        map[string]bool // tests and parts of tests of the full tier
	ends        map[string][]func()
	downloading map[string]int
}

var ownTimeouts = sync.OnceValue(func() *timeouts {
	return &timeouts{full: map[string]bool{}, ends: map[string][]func(){}, downloading: map[string]int{}}
})

// isFull says whether a test, or what it is a part of, is of the full tier.
func (o *timeouts) isFull(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for ; ; name = name[:strings.LastIndexByte(name, '/')] {
		if o.full[name] || !strings.Contains(name, "/") {
			return o.full[name]
		}
	}
}

func (o *timeouts) setFull(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.full[name] = true
}

// OnTimeout has end be called when the test takes longer than it may, so that what the test waits for ends.
func OnTimeout(t testing.TB, end func()) {
	o := ownTimeouts()
	o.mu.Lock()
	defer o.mu.Unlock()
	top, _, _ := strings.Cut(t.Name(), "/")
	o.ends[top] = append(o.ends[top], end)
}

// Download has a test fetch what is kept for all tests, or wait until another has fetched it. That counts for no timeout: how long it takes depends on what was there before.
func Download(t testing.TB, fetch func() error) error {
	t.Helper()
	defer await(t, "a download")()
	o := ownTimeouts()
	top, _, _ := strings.Cut(t.Name(), "/")
	count := func(n int) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.downloading[top] += n
	}
	count(1)
	defer count(-1)
	return fetch()
}

// spends says whether a test spends time of its own.
func (o *timeouts) spends(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	top, _, _ := strings.Cut(name, "/")
	return o.downloading[top] == 0
}

// timeout has the test fail when it takes longer than its tier may, with what all goroutines do.
func timeout(t testing.TB) {
	t.Helper()
	if _, ok := t.(*testing.T); !ok || os.Getenv("COVE_SOAK") != "" {
		return // benchmarks and soaks take as long as they take
	}
	o := ownTimeouts()
	most := LandingTimeout
	if o.isFull(t.Name()) {
		most = FullTimeout
	}
	most = Allowed(most)
	t.Logf("%s%s", TimeoutSet, most)
	ended, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		if o.endsIn(t.Name(), most, ended) {
			return
		}
		var all bytes.Buffer
		_ = pprof.Lookup("goroutine").WriteTo(&all, 1)
		t.Errorf("it took longer than %s; the goroutines:\n%s", most, head(all.String(), 400))
		top, _, _ := strings.Cut(t.Name(), "/")
		o.mu.Lock()
		ends := o.ends[top]
		o.mu.Unlock()
		for _, end := range ends {
			end()
		}
	}()
	t.Cleanup(func() {
		close(ended)
		<-watched
	})
}

// endsIn says whether a test ends before it has taken so long.
func (o *timeouts) endsIn(name string, most time.Duration, ended <-chan struct{}) bool {
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for spent := time.Duration(0); spent < most; {
		select {
		case <-ended:
			return true
		case <-second.C:
		}
		if o.spends(name) {
			spent += CountedTime(time.Second)
		}
	}
	return false
}

// CountedTime returns how much of the time that has just passed counts for a timeout: less than all of it while more threads could run than there are processors. So a timeout measures the test, and
// not what else the machine does.
func CountedTime(passed time.Duration) time.Duration {
	text, err := os.ReadFile("/proc/loadavg") // 0.20 0.18 0.12 1/80 11206
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 4 {
		return passed
	}
	ready, _, _ := strings.Cut(fields[3], "/")
	n, err := strconv.Atoi(ready)
	if err != nil || n <= runtime.NumCPU() {
		return passed
	}
	return passed * time.Duration(runtime.NumCPU()) / time.Duration(n)
}

// head returns the first n lines of a text.
func head(text string, n int) string {
	lines := strings.SplitAfterN(text, "\n", n+1)
	return strings.Join(lines[:min(len(lines), n)], "")
}
