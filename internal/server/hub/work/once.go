package work

import (
	"context"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
)

// The bounds of idempotency keys.
const (
	promiseLife = 24 * time.Hour
	longestWord = 255
)

// promise is what a word will stand for when the first request with it has ended. It is removed when the store has the answer.
type promise struct {
	request string // a hash of what was asked
	made    chan struct{}
	id      string // guarded by made
	err     error
}

// RunOnce runs a request with an idempotency key one time: do runs for the first request with the word, and every later one gets the id that do returned, also
// while the first still runs. request identifies the request (a hash of its content): the same word with another request is a problem. A request that failed
// may be tried again. Without a word do always runs. again says that do was not run.
func (c *Core) RunOnce(ctx context.Context, who auth.Principal, action, word, request string, do func() (id string, err error)) (id string, again bool, err error) {
	if word == "" {
		id, err = do()
		return id, false, err
	}
	if len(word) > longestWord {
		return "", false, problem.New(problem.IdempotencyKey, "the idempotency key is longer than 255 characters")
	}
	word = action + " " + who.User + " " + word
	for {
		p, mine := c.promiseFor(who.Project+" "+word, request)
		if mine {
			id, again, err = c.runPromised(ctx, who, word, p, do)
			return id, again, err
		}
		if p.request != request {
			return "", false, misusedKey()
		}
		select {
		case <-p.made:
		case <-ctx.Done():
			return "", false, problem.New(problem.GivenUp, "the client disconnected").WithCause(context.Cause(ctx))
		}
		if p.err == nil {
			return p.id, true, nil
		}
	}
}

func misusedKey() error {
	return problem.New(problem.IdempotencyMismatch, "this idempotency key was used for another request").WithHint("use a new key for every request")
}

// promiseFor returns what a word will stand for, and whether the caller has to run the request.
func (c *Core) promiseFor(word, request string) (p *promise, mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p = c.promises[word]; p != nil {
		return p, false
	}
	p = &promise{request: request, made: make(chan struct{})}
	c.promises[word] = p
	return p, true
}

// runPromised runs a promised request, or finds what an earlier run has made.
func (c *Core) runPromised(ctx context.Context, who auth.Principal, word string, p *promise, do func() (string, error)) (id string, again bool, err error) {
	forget := func() { delete(c.promises, who.Project+" "+word) }
	remembered := true
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if p.id, p.err = id, err; remembered {
			forget()
		}
		close(p.made)
	}()
	request, there, err := c.Store.Remembered(ctx, who.Project, word)
	switch {
	case err != nil:
		return "", false, err
	case there != "" && request != p.request:
		return "", false, misusedKey()
	case there != "":
		return there, true, nil
	}
	if id, err = do(); err != nil {
		return id, false, err
	}
	until := c.Now().Add(promiseLife)
	remember := func(ctx context.Context) error {
		_, _, err := c.Store.Remember(ctx, who.Project, word, p.request, id, until)
		return err
	}
	if remember(context.WithoutCancel(ctx)) != nil {
		remembered = false
		c.RunInBackground(func(ctx context.Context) {
			if err := c.WriteUntilStored(ctx, remember); err != nil {
				c.Log.WarnContext(ctx, "an idempotency key was not stored", "error", err)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			forget()
		})
	}
	return id, false, nil
}
