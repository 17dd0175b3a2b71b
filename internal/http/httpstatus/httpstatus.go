// Package httpstatus says in HTTP's words what a problem says: its status, and when to come again. Every surface uses it, so that the same problem has
// the same status everywhere.
package httpstatus

import (
	"errors"
	"time"

	"cove/internal/core/problem"
)

// Of returns the HTTP status that says what p says.
// The numbers are those of RFC 9110, 6585 and 4918, and 499, which servers use in their logs for a client that went away.
func Of(p *problem.Error) int {
	for status, codes := range exceptions {
		if problem.Has(p, codes...) {
			return status
		}
	}
	return OfKind(p.Kind)
}

// OfKind returns the status of most problems of a kind.
func OfKind(kind problem.Kind) int {
	switch kind {
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

// exceptions are the codes whose status their kind alone does not tell.
var exceptions = map[int][]problem.Code{
	401: {problem.Unauthenticated, problem.KeyExpired, problem.TokenInvalid, problem.SignInCodeUnknown, problem.SignInCodeUsed, problem.SignInWrong},
	405: {problem.MethodNotAllowed},
	408: {problem.RequestTimeout}, // the client was too slow

	// The request would be right at another time, or of another thing.
	409: {
		problem.SessionClosed, problem.SessionInUse, problem.NameTaken, problem.NotEmpty, problem.LastOwner, problem.LastAdmin, problem.IdempotencyInProgress,
		problem.AlreadyExists, problem.ConfigExists, problem.FileExists, problem.HolderExists, problem.KernelExists, problem.MemberExists, problem.ProjectExists, problem.SessionExists, problem.UserExists, problem.VolumeExists, problem.VolumeUsed,
		problem.ServerRunning, problem.TurnRunning, problem.QuestionChanged, problem.UploadInUse, problem.UploadOffset,
	},

	412: {problem.PreconditionFailed},
	413: {
		problem.CodeTooBig, problem.InputsTooBig, problem.RequestTooComplex, problem.BodyTooLarge, problem.CodeTooLarge, problem.ConversationTooLarge, problem.QuestionTooLarge,
		problem.DataTooLarge, problem.ExportTooLarge, problem.FileTooLarge, problem.ImageTooLarge, problem.RequestTooLarge, problem.ShareTooLarge, problem.ScanTooLarge,
	},
	415: {problem.UnsupportedMediaType},
	416: {problem.RangeInvalid},
	421: {problem.Misdirected},

	422: {
		problem.InvalidRequest, problem.IdempotencyMismatch,
		problem.ArchiveTooLarge, problem.PackageTooBig, problem.ClosureTooBig, problem.SessionOOM, // limits of what was asked for, which waiting does not help
	},

	// The operator's matters: the client's key is fine.
	502: {problem.PortBroken, problem.ModelAuth, problem.ModelUnreachable, problem.ModelAnswerTooLong},
	503: {problem.ModelKeyMissing},

	507: {problem.DiskFull, problem.ServerDiskFull, problem.WorkspaceFull, problem.QuotaDisk},
}

// RetryAfter returns how long a client does well to wait before it repeats the request; 0 means that repeating does not help, or that
// nobody knows. A problem whose Cause has a method RetryAfter() time.Duration knows better.
func RetryAfter(p *problem.Error) time.Duration {
	var knows interface{ RetryAfter() time.Duration }
	switch {
	case errors.As(p.Cause, &knows):
		return knows.RetryAfter()
	case problem.Has(p, problem.QuotaTokens, problem.QuotaCPU):
		return time.Hour // counted by the day
	case problem.Has(p, problem.Draining):
		return 10 * time.Second
	case problem.Has(p, problem.DatabaseUnavailable, problem.Overloaded):
		return 2 * time.Second
	case problem.Has(p, problem.TurnRunning, problem.ServerRunning, problem.SessionInUse, problem.IdempotencyInProgress, problem.UploadInUse):
		return time.Second
	}
	if status := Of(p); status == 429 || status == 503 {
		return 5 * time.Second
	}
	return 0
}
