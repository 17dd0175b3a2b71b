package problem

import (
	"errors"
	"regexp"
	"strings"
	"sync"
	"syscall"
)

// Public makes what went wrong in a server fit for its clients, who may be anybody: without the server's paths and addresses, without what a provider of
// models or a program of the host said, and without what its operator alone can do about it. differs says that something was taken out, which is for
// the log. It returns nil for a nil error.
func Public(err error) (p *Error, differs bool) {
	if err == nil {
		return nil, false
	}
	p = Of(err)
	switch words, known := wordsFor(p.Code); {
	case !Has(p, DiskFull) && full(err, p):
		return New(DiskFull, "there is no room left on the server's disk").WithHint("the operator has to make room; delete what is not needed").WithCause(err), true
	case Has(p, Fault):
		return New(Fault, "something went wrong in the server").WithHint("tell the operator the request_id").WithCause(err), true
	case known:
		return p.Reworded(words).WithHint(publicHint(p.Hint)), true
	}
	c := *p
	if c.Hint = publicHint(p.Hint); !p.Inside {
		c.Message = scrub(p.Message)
	}
	if c.Message == p.Message && c.Hint == p.Hint {
		return p, false
	}
	return &c, true
}

// full says whether it was the disk of the server that had no room.
func full(err error, p *Error) bool {
	if Has(p, WorkspaceFull, ServerDiskFull, QuotaDisk) {
		return false
	}
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || p.Kind == Internal && strings.Contains(err.Error(), syscall.ENOSPC.Error())
}

// wordsFor are the words for clients of what a model's provider was asked: the operator's words quote it, and name its address.
func wordsFor(code string) (words string, known bool) {
	switch code {
	case string(ModelAuth), string(ModelKeyMissing):
		return "the provider of the model does not take the server's key", true
	case string(ModelUnreachable), string(ModelBaseURL), string(ModelConnectTimeout):
		return "the provider of the model cannot be reached", true
	case string(ModelUnavailable):
		return "the provider of the model failed to answer", true
	case string(ModelOverloaded):
		return "the provider of the model is overloaded", true
	case string(ModelRateLimited):
		return "the provider of the model is limiting the rate of requests", true
	case string(ModelQuotaExhausted):
		return "the server's account at the provider of the model has no quota left", true
	case string(ModelRequestRejected):
		return "the provider of the model rejected the request", true
	case string(ModelContextTooLong):
		return "the conversation is longer than the model can read", true
	case string(ModelFirstTokenTimeout):
		return "the model did not begin to answer in time", true
	case string(ModelStalled):
		return "the model stopped in the middle of its answer", true
	case string(ModelStreamTruncated), string(ModelStreamMalformed):
		return "the model's answer broke off or cannot be read", true
	case string(ModelAnswerTooLong):
		return "the model said more than one answer may have", true
	case string(ToolsUnsupported):
		return "the model cannot call tools", true
	case string(ImagesUnsupported):
		return "the model cannot see images", true
	case string(ReplayNotFound), string(ReplayInvalid), string(RecordFailed):
		return "the model cannot be asked", true
	}
	return "", false
}

// operators is in hints for the operator: variables of the environment and flags of commands.
var operators = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b|(^|\s)--[a-z]|` + "`cove ")
})

// paths and addresses are those of the host. What is in a sandbox or in the API has the same path for everybody, and "input[0]" is no address.
var (
	paths     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(^|[\s"'(=:])(/[\w.@+-]+(?:/[\w.@+-]+)+)`) })
	addresses = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?:https?://)?(?:\b\d{1,3}(?:\.\d{1,3}){3}\b|\[[0-9a-fA-F]*:[0-9a-fA-F]*:[0-9a-fA-F:.]*\]|\blocalhost\b)(?::\d+)?(?:/[\w./-]*)?`)
	})
)

func publicHint(hint string) string {
	if operators().MatchString(hint) || scrub(hint) != hint {
		return "try again later; if it goes on, the operator of the server has to see to it"
	}
	return hint
}

func scrub(text string) string {
	text = addresses().ReplaceAllString(text, "(an address of the server)")
	return paths().ReplaceAllStringFunc(text, func(found string) string {
		at := strings.IndexByte(found, '/')
		for _, shared := range []string{"/home/user", "/home/daytona", "/workspace", "/mnt/data", "/tmp/", "/api/", "/v1/", "/usr/"} {
			if strings.HasPrefix(found[at:], shared) {
				return found
			}
		}
		return found[:at] + "(a place on the server)"
	})
}
