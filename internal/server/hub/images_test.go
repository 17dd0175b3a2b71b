package hub_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/sessions/ondisk"
)

// pictures stands for the images of a server: "here" is there, "slow" and "other" are fetched when the gate opens, and all others are not allowed.
type pictures struct {
	mu      sync.Mutex
	fetched map[string]int
	now     int // that are being fetched
	most    int
	gate    chan struct{}
}

func (p *pictures) May(reference string) (bool, error) {
	if !slices.Contains([]string{"here", "slow", "other"}, reference) {
		return false, problem.New(problem.ImageDenied, "not this one")
	}
	return true, nil
}

func (p *pictures) Here(reference string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if reference == "here" || p.fetched[reference] > 0 {
		return "sha256:" + reference
	}
	return ""
}

func (p *pictures) Fetch(ctx context.Context, reference string) (string, error) {
	p.mu.Lock()
	p.now++
	p.most = max(p.most, p.now)
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.now--
		p.mu.Unlock()
	}()
	select {
	case <-p.gate:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fetched[reference]++
	return "sha256:" + reference, nil
}

// pictured is a life with images; based are the environments that its sessions are made in.
func pictured(t *testing.T, change func(*hub.Options)) (l *life, p *pictures, based func() []string) {
	t.Helper()
	p = &pictures{fetched: map[string]int{}, gate: make(chan struct{})}
	var mu sync.Mutex
	var all []string
	l = newLife(t, func(o *hub.Options) {
		o.Images = p
		prepare := o.Prepare
		o.Prepare = func(ctx context.Context, b ondisk.Base) (*ondisk.Ground, error) {
			mu.Lock()
			all = append(all, b.Environment)
			mu.Unlock()
			return prepare(ctx, b)
		}
		if change != nil {
			change(o)
		}
	})
	return l, p, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

// TestASessionStaysInItsImage has a session, and its fork, begin from an image by its digest.
func TestASessionStaysInItsImage(t *testing.T) {
	t.Parallel()
	l, _, based := pictured(t, nil)
	who := someone(auth.LocalProject)
	s, err := l.CreateSession(t.Context(), who, hub.NewSession{Image: "here"})
	if err != nil {
		t.Fatal(err)
	}
	want := hub.SessionImage{Reference: "here", Digest: "sha256:here"}
	if got := based(); !slices.Equal(got, []string{"+here"}) {
		t.Errorf("it is made in %q", got)
	}
	if got, err := l.Session(t.Context(), who, s.ID); err != nil || got.Image == nil || *got.Image != want {
		t.Errorf("it has %+v, %v", got.Image, err)
	}
	fork, err := l.ForkSession(t.Context(), who, s.ID, hub.NewSession{})
	if err != nil || fork.Image == nil || *fork.Image != want {
		t.Errorf("the fork has %+v, %v", fork.Image, err)
	}
	_, err = l.ForkStored(t.Context(), who, s.ID, hub.NewSession{})
	fails(t, err, "session_image")
	_, err = l.ForkSession(t.Context(), who, s.ID, hub.NewSession{Image: "slow"})
	fails(t, err, "session_image")
	_, err = l.CreateSession(t.Context(), who, hub.NewSession{Image: "private"})
	fails(t, err, "image_denied")
	plain, err := l.CreateSession(t.Context(), who, hub.NewSession{})
	if err != nil || plain.Image != nil {
		t.Errorf("a session without an image has %+v, %v", plain.Image, err)
	}
	_, err = l.ForkSession(t.Context(), who, plain.ID, hub.NewSession{Image: "here"})
	fails(t, err, "session_image")
	without := newLife(t, nil)
	_, err = without.CreateSession(t.Context(), who, hub.NewSession{Image: "here"})
	fails(t, err, "image_denied")
}

// TestFetchesAreBounded has one image fetched at a time for each key and two for the server, and a session's life begin when its image is there.
func TestFetchesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, p, _ := pictured(t, nil)
		begun, many := time.Now(), someone(auth.LocalProject)
		type made struct {
			hub.Session
			error
		}
		all := make(chan made)
		for _, who := range []auth.Principal{many, many, many, someone(auth.LocalProject), someone(auth.LocalProject)} {
			go func() {
				s, err := l.CreateSession(t.Context(), who, hub.NewSession{Image: "slow", Life: time.Hour})
				all <- made{s, err}
			}()
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		p.mu.Lock()
		if p.now != 2 {
			t.Errorf("%d images are fetched at once", p.now)
		}
		p.mu.Unlock()
		close(p.gate)
		for range 5 {
			m := <-all
			if m.error != nil {
				t.Error(m.error)
			} else if life := m.Expires.Sub(begun); life < 70*time.Minute {
				t.Errorf("it lives until %s after it was asked for", life)
			}
		}
		if p.most != 2 {
			t.Errorf("%d images were fetched at once", p.most)
		}
	})
}

// TestWaitsForFetchesAreBounded has a key wait for no more images than it may.
func TestWaitsForFetchesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, p, _ := pictured(t, nil)
		who := someone(auth.LocalProject)
		const more, may = 20, 16
		all := make(chan error, more)
		for range more {
			go func() {
				_, err := l.CreateSession(t.Context(), who, hub.NewSession{Image: "slow"})
				all <- err
			}()
		}
		for range more - may {
			fails(t, <-all, "too_many_fetches")
		}
		close(p.gate)
		for range may {
			if err := <-all; err != nil {
				t.Error(err)
			}
		}
	})
}

// TestAFetchEnds has a fetch end with its request, after its time, and a wait for the turn as well.
func TestAFetchEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, p, _ := pictured(t, func(o *hub.Options) { o.Limits.Fetch = time.Minute })
		who := someone(auth.LocalProject)
		leaving, leave := context.WithCancel(t.Context())
		left := make(chan error)
		go func() {
			_, err := l.CreateSession(leaving, who, hub.NewSession{Image: "slow"})
			left <- err
		}()
		synctest.Wait()
		leave()
		fails(t, <-left, "canceled")
		one, two := make(chan error), make(chan error)
		go func() {
			_, err := l.CreateSession(t.Context(), who, hub.NewSession{Image: "slow"})
			one <- err
		}()
		synctest.Wait()
		time.Sleep(time.Second)
		go func() {
			_, err := l.CreateSession(t.Context(), who, hub.NewSession{Image: "other"})
			two <- err
		}()
		fails(t, <-one, "image_unreachable")
		close(p.gate) // in the second that the other one has left
		if err := <-two; err != nil {
			t.Error(err)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.now != 0 || p.fetched["slow"] != 0 || p.fetched["other"] != 1 {
			t.Errorf("%d are fetched, and %v were", p.now, p.fetched)
		}
	})
}
