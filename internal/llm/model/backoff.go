package model

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// backoff returns the wait after failed attempt n (from 1): base doubled for each attempt before it, less up to a
// quarter so that many clients do not come back at the same moment.
func backoff(base time.Duration, n int) time.Duration {
	d := base << min(n-1, 16)
	return d - rand.N(d/4+1)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// retryAfter reads a Retry-After header (RFC 9110 section 10.2.3: seconds or an HTTP date) or the millisecond form
// that OpenAI sends. It returns nil when there is none that makes sense.
func retryAfter(header map[string][]string, now time.Time) *time.Duration {
	if ms, err := strconv.ParseFloat(first(header, "Retry-After-Ms"), 64); err == nil && ms >= 0 && ms < 1e12 {
		d := time.Duration(ms * float64(time.Millisecond))
		return &d
	}
	value := strings.TrimSpace(first(header, "Retry-After"))
	if s, err := strconv.ParseFloat(value, 64); err == nil && s >= 0 && s < 1e9 {
		d := time.Duration(s * float64(time.Second))
		return &d
	}
	if at, err := time.Parse("Mon, 02 Jan 2006 15:04:05 GMT", value); err == nil {
		d := max(at.Sub(now), 0)
		return &d
	}
	return nil
}

func first(header map[string][]string, name string) string {
	if v := header[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}
