package httpstatus_test

import (
	"fmt"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/http/httpstatus"
)

type later struct{}

func (later) Error() string             { return "later" }
func (later) RetryAfter() time.Duration { return 42 * time.Second }

func TestStatus(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind   problem.Kind
		code   string
		status int
		wait   time.Duration
	}{
		{problem.Invalid, "anything", 400, 0},
		{problem.Denied, "unauthenticated", 401, 0},
		{problem.Denied, "key_expired", 401, 0},
		{problem.Denied, "forbidden", 403, 0},
		{problem.NotFound, "session_not_found", 404, 0},
		{problem.Timeout, "request_timeout", 408, 0},
		{problem.Invalid, "turn_running", 409, time.Second},
		{problem.Invalid, "kernel_exists", 409, 0},
		{problem.Invalid, "quota_invalid", 400, 0},
		{problem.Invalid, "precondition_failed", 412, 0},
		{problem.Invalid, "request_too_large", 413, 0},
		{problem.Invalid, "range_invalid", 416, 0},
		{problem.Exhausted, "file_too_large", 413, 0},
		{problem.Exhausted, "quota_sessions", 429, 5 * time.Second},
		{problem.Exhausted, "queue_full", 429, 5 * time.Second},
		{problem.Exhausted, "quota_tokens", 429, time.Hour},
		{problem.Exhausted, "quota_disk", 507, 0},
		{problem.Canceled, "canceled", 499, 0},
		{problem.Internal, "internal", 500, 0},
		{problem.Unavailable, "draining", 503, 10 * time.Second},
		{problem.Unavailable, "database_unavailable", 503, 2 * time.Second},
		{problem.Timeout, "turn_timeout", 504, 0},
		{problem.Exhausted, "disk_full", 507, 0},
		{"", "", 500, 0},
	} {
		p := problem.Received(c.kind, c.code, "x")
		if got := httpstatus.Of(p); got != c.status {
			t.Errorf("%s %s is a %d, not a %d", c.kind, c.code, got, c.status)
		}
		if got := httpstatus.RetryAfter(p); got != c.wait {
			t.Errorf("%s %s may come again in %s, not %s", c.kind, c.code, got, c.wait)
		}
	}
	knows := problem.New(problem.RateLimited, "x").WithCause(fmt.Errorf("wrapped: %w", later{}))
	if got := httpstatus.RetryAfter(knows); got != 42*time.Second {
		t.Errorf("a cause that knows is not asked: %s", got)
	}
}

func TestIs(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("do x: %w", problem.Received(problem.NotFound, "x", "y"))
	if !problem.Is(err, problem.NotFound) || problem.Is(err, problem.Denied) || problem.Is(nil, problem.NotFound) || problem.Is(fmt.Errorf("z"), problem.Internal) {
		t.Error("Is is wrong")
	}
}
