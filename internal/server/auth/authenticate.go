package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"slices"
	"sync"
	"time"

	"cove/internal/core/problem"
)

const (
	// remembering bounds how long another process goes on to take a key that was revoked in this one's database.
	remembering = 5 * time.Second
	// rememberedKeys bounds the memory for keys.
	rememberedKeys = 10_000
	// usedStep is how exact Key.Used is.
	usedStep = time.Minute
	// touching bounds a note of when a key was used, and touchers how many are on their way.
	touching = 5 * time.Second
	touchers = 4
)

// Authenticate returns whom a key's text stands for. Any other text, a revoked key or one whose user is no longer a member is a problem of
// kind Denied with code "unauthenticated" that does not say which; who has the whole text of an expired key is told so ("key_expired").
// The look-up and the comparison are made in the same way whether or not there is such a key.
func (a *Accounts) Authenticate(ctx context.Context, text string) (Principal, error) {
	id, hash, err := ParseText(text)
	if err != nil {
		return Principal{}, unauthenticated()
	}
	now := a.now()
	if who, ok := a.known.get(id, hash, now); ok {
		return who, nil
	}
	round := a.known.round()
	k, err := a.Store.Key(ctx, id)
	if err != nil && problem.Of(err).Kind != problem.NotFound {
		return Principal{}, err
	}
	var kept [sha256.Size]byte // of a key that does not exist: nothing hashes to it
	copy(kept[:], k.Hash)
	same := subtle.ConstantTimeCompare(kept[:], hash[:]) == 1 && err == nil && len(k.Hash) == len(kept)
	if !same || !k.Revoked.IsZero() {
		return Principal{}, unauthenticated()
	}
	if !a.good(k) {
		return Principal{}, problem.New(problem.KeyExpired, "the key has expired").WithHint("make a new one: cove key create")
	}
	who, err := a.principal(ctx, k)
	if err != nil {
		return Principal{}, err
	}
	until := now.Add(remembering)
	if !k.Expires.IsZero() && k.Expires.Before(until) {
		until = k.Expires
	}
	a.known.put(round, id, entry{hash, who, until})
	if now.Sub(k.Used) >= usedStep {
		a.touches.start(func() { a.touch(ctx, id, now) })
	}
	return who, nil
}

func unauthenticated() error {
	return problem.New(problem.Unauthenticated, "the key is not valid").WithHint("send a valid key as Authorization: Bearer cove_...")
}

func (a *Accounts) principal(ctx context.Context, k Key) (Principal, error) {
	role, err := a.Store.Role(ctx, k.Project, k.User)
	if err != nil {
		return Principal{}, err
	}
	u, err := a.Store.User(ctx, k.User)
	if err != nil && problem.Of(err).Kind != problem.NotFound {
		return Principal{}, err
	}
	if role == "" || err != nil {
		return Principal{}, unauthenticated()
	}
	return Principal{User: k.User, Project: k.Project, Key: k.ID, Role: role, Scopes: k.Scopes, Admin: u.Admin}, nil
}

// Present returns what a user may in a project now, by a key ("": by none), for what was asked for before. It is no more than it takes to work in the project. Problems:
// asker_gone.
func (a *Accounts) Present(ctx context.Context, project, user, key string) (Principal, error) {
	k := Key{Project: project, User: user}
	if key != "" {
		var err error
		if k, err = a.Store.Key(ctx, key); err != nil && !problem.Is(err, problem.NotFound) {
			return Principal{}, err
		} else if err != nil || !a.good(k) || k.Project != project || k.User != user {
			return Principal{}, askerGone("the key that put the question was revoked or has expired")
		}
	}
	who, err := a.principal(ctx, k)
	if problem.Is(err, problem.Denied) {
		return Principal{}, askerGone("who put the question is no longer a member of the project")
	}
	who.Admin = false
	return who, err
}

func askerGone(message string) error {
	return problem.New(problem.AskerGone, message).WithHint("change the question, which makes it yours, or take it out of the queue")
}

// errFresh ends a change of a key that needs none.
var errFresh = errors.New("used a moment ago")

// touch notes that a key was used. That it failed is nobody's problem: the next use tries again.
func (a *Accounts) touch(ctx context.Context, id string, at time.Time) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), touching)
	defer cancel()
	_, _ = a.Store.ChangeKey(ctx, id, func(k *Key) error {
		if at.Sub(k.Used) < usedStep {
			return errFresh
		}
		k.Used = at.UTC().Truncate(usedStep)
		return nil
	})
}

// Wait returns when the notes of when keys were used are written. Call it before the store is closed.
func (a *Accounts) Wait() { a.touches.running.Wait() }

// touches are goroutines that nobody waits for but at the end, a bounded number of them: the store may be slow.
type touches struct {
	mu      sync.Mutex
	now     int
	running sync.WaitGroup
}

func (t *touches) start(touch func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.now >= touchers {
		return
	}
	t.now++
	t.running.Go(func() {
		touch()
		t.mu.Lock()
		t.now--
		t.mu.Unlock()
	})
}

// known are keys that were good a moment ago. A change of keys, users or members forgets all of them.
type known struct {
	mu      sync.Mutex
	entries map[string]entry
	changes int
}

type entry struct {
	hash  [sha256.Size]byte
	who   Principal
	until time.Time
}

func (c *known) get(id string, hash [sha256.Size]byte, now time.Time) (Principal, bool) {
	c.mu.Lock()
	e, ok := c.entries[id]
	c.mu.Unlock()
	if !ok || !now.Before(e.until) || subtle.ConstantTimeCompare(e.hash[:], hash[:]) != 1 {
		return Principal{}, false
	}
	e.who.Scopes = slices.Clone(e.who.Scopes)
	return e.who, true
}

// round is to be taken before the store is asked, and given to put: what was read before a change must not be remembered after it.
func (c *known) round() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changes
}

func (c *known) put(round int, id string, e entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if round != c.changes {
		return
	}
	if c.entries == nil || len(c.entries) >= rememberedKeys {
		c.entries = map[string]entry{}
	}
	c.entries[id] = e
}

func (c *known) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
	c.entries = nil
}
