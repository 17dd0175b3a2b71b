package toolbox

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// few is a hub whose sandbox has room for two interpreters.
type few struct {
	Hub
	mu    sync.Mutex
	names []string
}

func (f *few) Kernels(context.Context, auth.Principal, string) (all []hub.Kernel, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range f.names {
		all = append(all, hub.Kernel{Name: name})
	}
	return all, nil
}

func (f *few) StartKernel(_ context.Context, _ auth.Principal, _, name string) (hub.Kernel, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.names) == 2 {
		return hub.Kernel{}, problem.New(problem.TooManyKernels, "there are two")
	}
	f.names = append(f.names, name)
	return hub.Kernel{Name: name}, nil
}

func (f *few) StopKernel(_ context.Context, _ auth.Principal, _, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.names = slices.DeleteFunc(f.names, func(n string) bool { return n == name })
	return nil
}

// TestInterpretersOfRequests has one end that an earlier server left, and others wait for room, which requests make that end.
func TestInterpretersOfRequests(t *testing.T) {
	t.Parallel()
	f := &few{names: []string{"main", runPrefix + "left"}}
	box := New(Options{Hub: f})
	c := &call{Request: httptest.NewRequest(http.MethodPost, "/", nil)}
	name, stop, err := box.ownKernel(c)
	if err != nil || !slices.Equal(f.names, []string{"main", name}) {
		t.Fatalf("%q, %v", f.names, err)
	}
	second := make(chan string)
	go func() {
		name, _, err := box.ownKernel(c)
		if err != nil {
			name = err.Error()
		}
		second <- name
	}()
	select {
	case name := <-second:
		t.Fatalf("there was no room for %s", name)
	default:
	}
	stop()
	if got := <-second; got == name || !slices.Contains(f.names, got) {
		t.Errorf("got %q of %q", got, f.names)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c = &call{Request: c.WithContext(ctx)}
	if _, _, err := box.ownKernel(c); err == nil {
		t.Error("a client that left got an interpreter")
	}
}
