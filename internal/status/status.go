// Package status says in HTTP's words what a problem says: its status, and when to come again. Every surface uses it, so that the same problem has
// the same status everywhere.
package status

import (
	"errors"
	"strings"
	"time"

	"cove/internal/problem"
)

// Of returns the HTTP status that says what p says.
// The numbers are those of RFC 9110, 6585 and 4918, and 499, which servers use in their logs for a client that went away.
func Of(p *problem.Error) int {
	if status, ok := statuses[p.Code]; ok {
		return status
	}
	switch {
	case strings.HasPrefix(p.Code, "quota_"):
		return 429
	case strings.HasSuffix(p.Code, "_exists"), strings.HasSuffix(p.Code, "_running"):
		return 409
	case strings.HasSuffix(p.Code, "_too_large"):
		return 413
	}
	switch p.Kind {
	case problem.Invalid:
		return 400
	case problem.NotFound:
		return 404
	case problem.Denied:
		return 403
	case problem.Unavailable:
		return 503
	case problem.Timeout:
		return 504
	case problem.Exhausted:
		return 429
	case problem.Canceled:
		return 499
	default:
		return 500
	}
}

// statuses are those that a problem's kind alone does not tell.
var statuses = map[string]int{
	"unauthenticated": 401,
	"key_expired":     401,

	"method_not_allowed": 405,
	"request_timeout":    408, // the client was too slow

	// The request would be right at another time, or of another thing.
	"session_closed":          409,
	"name_taken":              409,
	"not_empty":               409,
	"last_owner":              409,
	"last_admin":              409,
	"idempotency_in_progress": 409,
	"session_in_use":          409,

	"precondition_failed": 412,

	"code_too_big":   413,
	"inputs_too_big": 413,

	"request_too_complex": 413,

	"unsupported_media_type": 415,
	"range_invalid":          416,
	"misdirected":            421,
	"invalid_request":        422,
	"idempotency_mismatch":   422,

	// Limits of what was asked for, which waiting does not help.
	"archive_too_large": 422,
	"package_too_big":   422,
	"closure_too_big":   422,
	"session_oom":       422,

	// The operator's matters: the client's key is fine.
	"model_auth":        502,
	"model_key_missing": 503,
	"model_unreachable": 502,

	"model_answer_too_long": 502,

	"disk_full":        507,
	"server_disk_full": 507,
	"workspace_full":   507,
	"quota_disk":       507,
}

// RetryAfter returns how long a client does well to wait before it repeats the request; 0 means that repeating does not help, or that
// nobody knows. A problem whose Cause has a method RetryAfter() time.Duration knows better.
func RetryAfter(p *problem.Error) time.Duration {
	var knows interface{ RetryAfter() time.Duration }
	if errors.As(p.Cause, &knows) {
		return knows.RetryAfter()
	}
	switch p.Code {
	case "quota_tokens", "quota_cpu":
		return time.Hour // counted by the day
	case "draining":
		return 10 * time.Second
	case "database_unavailable", "overloaded":
		return 2 * time.Second
	}
	switch Of(p) {
	case 429:
		return 5 * time.Second
	case 503:
		return 5 * time.Second
	case 409:
		if strings.HasSuffix(p.Code, "_running") || p.Code == "session_in_use" || p.Code == "idempotency_in_progress" {
			return time.Second
		}
	}
	return 0
}
