package live

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub/record"
)

// Images are the OCI images that callers may have sessions begin from.
type Images interface {
	// May says whether callers may have sessions begin from an image; named says that the operator has named it, and not just allowed all. Problems: image_reference, image_denied.
	May(reference string) (named bool, err error)
	// Here returns the digest of an image that is on this machine for callers, by a reference; "": it has to be fetched.
	Here(reference string) (digest string)
	// Fetch has the image on this machine, and returns its digest. Problems: image_denied, and those of image.Store.Ensure.
	Fetch(ctx context.Context, reference string) (digest string, err error)
}

// MayBeginFrom is Images.May.
func (m *Manager) MayBeginFrom(reference string) (named bool, err error) {
	if m.o.Images == nil {
		return false, problem.New(problem.ImageDenied, "no session of this server begins from an image").WithHint("leave image out")
	}
	return m.o.Images.May(reference)
}

// imageFor returns the image that a session is to begin from, fetched where it is not here. That ends with the request, and when a drain stops waiting.
func (m *Manager) imageFor(ctx context.Context, who auth.Principal, reference string) (*record.SessionImage, error) {
	if _, err := m.MayBeginFrom(reference); err != nil {
		return nil, err
	}
	digest := m.o.Images.Here(reference)
	if digest == "" {
		var err error
		if digest, err = m.fetchImage(ctx, who, reference); err != nil {
			return nil, err
		}
	}
	return &record.SessionImage{Reference: reference, Digest: digest}, nil
}

func (m *Manager) fetchImage(ctx context.Context, who auth.Principal, reference string) (digest string, err error) {
	_, end, err := m.BeginWork(ctx)
	if err != nil {
		return "", err
	}
	defer end()
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	defer context.AfterFunc(m.working, func() { leave(context.Cause(m.working)) })()
	late := problem.New(problem.ImageUnreachable, "fetching the image took longer than "+m.o.Limits.Fetch.String()).WithHint("try again, or use a smaller image; the operator can set images.timeout")
	timed, cancel := context.WithTimeoutCause(ctx, m.o.Limits.Fetch, late)
	defer cancel()
	over, err := m.fetches.begin(timed, who.Project+"/"+who.Key)
	if err == nil {
		defer over()
		began := time.Now()
		digest, err = m.o.Images.Fetch(timed, reference)
		if err == nil {
			m.work.Log.InfoContext(ctx, "an image was fetched for a session", "image", reference, "digest", digest, "project", who.Project, "key", who.Key, slog.Float64("seconds", time.Since(began).Seconds()))
		}
	}
	switch {
	case err == nil:
		return digest, nil
	case m.working.Err() != nil:
		return "", drained()
	case ctx.Err() != nil:
		return "", problem.New(problem.GivenUp, "the client disconnected before the image was fetched").WithCause(context.Cause(ctx))
	case errors.Is(err, errNoTurn):
		return "", problem.New(problem.TooManyFetches, "other images are being fetched").WithHint("try again later; the operator can set images.fetches")
	case timed.Err() != nil:
		return "", late
	}
	return "", err
}

var errNoTurn = errors.New("the turn to fetch an image did not come")

// fetches bounds how many images are fetched at once: one for each key, and so many for all.
type fetches struct {
	all  chan struct{}
	mu   sync.Mutex
	keys map[string]*keyFetches
}

// keyFetches are those of one key that fetch or wait.
type keyFetches struct {
	turn chan struct{}
	here int
}

func newFetches(most int) *fetches {
	return &fetches{all: make(chan struct{}, most), keys: map[string]*keyFetches{}}
}

// mostFetches is how many of one key may fetch and wait: each holds a request.
const mostFetches = 16

// begin waits for the turn of a key, until end is called or ctx ends.
func (f *fetches) begin(ctx context.Context, key string) (end func(), err error) {
	f.mu.Lock()
	k := f.keys[key]
	if k == nil {
		k = &keyFetches{turn: make(chan struct{}, 1)}
		f.keys[key] = k
	}
	if k.here >= mostFetches {
		f.mu.Unlock()
		return nil, errNoTurn
	}
	k.here++
	f.mu.Unlock()
	leave := func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if k.here--; k.here == 0 {
			delete(f.keys, key)
		}
	}
	select {
	case k.turn <- struct{}{}:
	case <-ctx.Done():
		leave()
		return nil, errNoTurn
	}
	select {
	case f.all <- struct{}{}:
	case <-ctx.Done():
		<-k.turn
		leave()
		return nil, errNoTurn
	}
	return func() {
		<-f.all
		<-k.turn
		leave()
	}, nil
}
