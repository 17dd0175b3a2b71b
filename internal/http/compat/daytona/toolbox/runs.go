package toolbox

import (
	"context"
	"strings"
	"sync"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
)

const (
	// runPrefix begins the names of interpreters that are one request's alone.
	runPrefix = "run-"
	// kernelPatience is how long a request waits for others of its sandbox, which has room for a few interpreters.
	kernelPatience = time.Minute
	kernelRetry    = 200 * time.Millisecond
)

// runs are the interpreters that are a request's of this server alone, by their names. Others of such names are left from a server that ended before it could end them.
type runs struct {
	mu  sync.Mutex
	all map[string]bool
}

func (r *runs) begin(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[string]bool{}
	}
	r.all[name] = true
}

func (r *runs) end(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, name)
}

func (r *runs) has(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[name]
}

// ownKernel starts an interpreter for one request, and waits while the sandbox has as many as it may. stop ends it after the answer.
func (t *Toolbox) ownKernel(c *call) (name string, stop func(), err error) {
	code, _ := auth.RandomCode()
	name = runPrefix + code
	t.runs.begin(name)
	for began := time.Now(); ; {
		_, err = t.o.Hub.StartKernel(c.Context(), c.who, c.id(), name)
		if err == nil {
			return name, func() { go t.stopKernel(c, name) }, nil
		}
		if !problem.Has(err, problem.TooManyKernels) || time.Since(began) > kernelPatience {
			break
		}
		t.sweep(c)
		select {
		case <-time.After(kernelRetry):
		case <-c.Context().Done():
		}
		if c.Context().Err() != nil {
			err = c.Context().Err()
			break
		}
	}
	t.runs.end(name)
	return "", nil, err
}

// stopKernel ends an interpreter that is not needed any more.
func (t *Toolbox) stopKernel(c *call, name string) {
	defer t.runs.end(name)
	ctx, cancel := context.WithTimeout(c.lasting(), killGrace)
	defer cancel()
	if err := t.o.Hub.StopKernel(ctx, c.who, c.id(), name); err != nil && !problem.Has(err, problem.KernelNotFound, problem.SessionNotFound) {
		t.o.Log.WarnContext(ctx, "an interpreter that is not needed any more was not ended", "session", c.id(), "kernel", name, "error", err)
	}
}

// sweep ends the interpreters of requests that an earlier server was answering.
func (t *Toolbox) sweep(c *call) {
	all, err := t.o.Hub.Kernels(c.Context(), c.who, c.id())
	if err != nil {
		return // the next attempt to start one says why
	}
	for _, k := range all {
		if strings.HasPrefix(k.Name, runPrefix) && !t.runs.has(k.Name) {
			t.stopKernel(c, k.Name)
		}
	}
}
