package oauth

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"cove/internal/core/problem"
)

const (
	// patience bounds the wait for the issuer, all in all, where Options does not.
	patience = 5 * time.Second
	// fresh is how long keys are used before the issuer is asked again, beside the requests that use them, and stale how long when it does not answer.
	fresh, stale = 10 * time.Minute, time.Hour
	// between is the least time from one question to the next: tokens with keys that nobody knows cost the issuer nothing.
	between = 10 * time.Second
	// mostWaiting bounds the requests that wait for an answer.
	mostWaiting = 64
	// mostKeys bounds the keys of an issuer.
	mostKeys = 100
)

// keys are those that the issuer signs with, as it said last.
type keys struct {
	o Options

	mu      sync.Mutex
	set     []jose.JSONWebKey
	at      time.Time     // when the issuer said so
	asked   time.Time     // when it was asked last
	err     error         // of that time
	asking  chan struct{} // closed when the answer is there; nil: nobody asks
	waiting int
}

// get returns the keys that a token may be signed with, whose header names one ("": it does not).
func (k *keys) get(ctx context.Context, name string) ([]jose.JSONWebKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	found := k.named(name)
	age := k.o.Now().Sub(k.at)
	if len(found) > 0 && age < fresh {
		return found, nil
	}
	k.ask()
	if len(found) > 0 && age < stale {
		return found, nil
	}
	if asking := k.asking; asking != nil {
		if k.waiting >= mostWaiting {
			return nil, unavailable("too many requests wait for its answer", nil)
		}
		k.waiting++
		k.mu.Unlock()
		select {
		case <-asking:
		case <-ctx.Done():
		}
		k.mu.Lock()
		k.waiting--
		if ctx.Err() != nil {
			return nil, problem.New(problem.GivenUp, "the client gave up the request")
		}
	}
	if k.err != nil { // what is wrong is the operator's to know, and in the log
		return nil, unavailable("come again in a moment", k.err)
	}
	if found = k.named(name); len(found) == 0 || k.o.Now().Sub(k.at) >= stale {
		return nil, invalid("its issuer has no such key")
	}
	return found, nil
}

func (k *keys) named(name string) (found []jose.JSONWebKey) {
	for _, one := range k.set {
		if name == "" || one.KeyID == name {
			found = append(found, one)
		}
	}
	return found
}

// ask has the issuer asked, unless that is under way or was done a moment ago. k is locked.
func (k *keys) ask() {
	if k.asking != nil || !k.asked.IsZero() && k.o.Now().Sub(k.asked) < between {
		return
	}
	asking := make(chan struct{})
	k.asking, k.asked = asking, k.o.Now()
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), k.o.Patience) // the client that asked first may leave; others wait as well
		defer cancel()
		found, err := k.fetch(ctx)
		if err != nil {
			k.o.Log.Warn("the authorization server cannot be asked for its keys", "error", problem.Of(err).Message, "cause", errors.Unwrap(err))
		} else {
			k.take(found)
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		k.err, k.asking = err, nil
		close(asking)
	}()
}

// take has these keys be the issuer's from now on.
func (k *keys) take(found []jose.JSONWebKey) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.set, k.at, k.err = found, k.o.Now(), nil
}

// keySet is a JSON Web Key Set (RFC 7517). Keys of kinds that are not known must not make the others unreadable.
type keySet struct {
	Keys []json.RawMessage `json:"keys"`
}

func (s keySet) usable() (found []jose.JSONWebKey) {
	for _, text := range s.Keys[:min(len(s.Keys), mostKeys)] {
		var one jose.JSONWebKey
		if one.UnmarshalJSON(text) != nil || !one.Valid() || one.Use != "" && one.Use != "sig" {
			continue
		}
		switch key := one.Key.(type) {
		case *ecdsa.PublicKey, ed25519.PublicKey:
		case *rsa.PublicKey:
			if key.N.BitLen() < 2048 || key.N.BitLen() > 8192 {
				continue
			}
		default: // secrets, and private keys
			continue
		}
		found = append(found, one)
	}
	return found
}

// candidates are the keys that one token may be signed with. It is an oidc.KeySet.
type candidates struct {
	signed *jose.JSONWebSignature
	keys   []jose.JSONWebKey
	failed bool
}

func (c *candidates) VerifySignature(context.Context, string) ([]byte, error) {
	for _, one := range c.keys {
		if one.Algorithm != "" && one.Algorithm != c.signed.Signatures[0].Protected.Algorithm {
			continue
		}
		if payload, err := c.signed.Verify(one.Key); err == nil {
			return payload, nil
		}
	}
	c.failed = true
	return nil, errors.New("no key fits")
}

// words are what JSON has as words in one text or as a list of texts.
type words []string

func (w *words) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*w = strings.Fields(one)
		return nil
	}
	return json.Unmarshal(text, (*[]string)(w))
}
