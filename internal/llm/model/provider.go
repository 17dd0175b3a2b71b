package model

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"syscall"
	"time"

	"cove/internal/core/problem"
)

// Provider describes a model service well enough to say what to do when it fails.
type Provider struct {
	Name        string // PROVIDER/NAME, as --model takes it
	Model       string // the name that the service knows
	BaseURL     string
	KeyVariable string // the environment variable that holds the key, or ""
	URLVariable string // the environment variable that holds the base URL
	BaseURLHint string // what a right base URL looks like
	StartHint   string // how to start the service where the user runs it, or ""
	ListHint    string // how to see which models there are
	Secret      string // the key, taken out of everything that a message quotes
}

// Failure is how an attempt failed and whether another one could help.
type Failure struct {
	Problem   *problem.Error
	Retryable bool
	Wait      *time.Duration // what the service asked to wait; nil when it did not say
}

func (f *Failure) Error() string { return f.Problem.Error() }
func (f *Failure) Unwrap() error { return f.Problem }

// Broken explains what ended a request or its stream; a nil error is the end of the stream.
func (p Provider) Broken(err error) *Failure {
	if err == nil {
		return p.Truncated(nil)
	}
	cause := errors.New(p.redact(problem.InWords(err, "")))
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return &Failure{Problem: problem.New(problem.ModelUnreachable,
			fmt.Sprintf("the host name %s of the model service cannot be resolved", dns.Name)).
			WithHint(p.reachHint()), Retryable: dns.IsTemporary}
	}
	op, isOp := errors.AsType[*net.OpError](err)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return &Failure{Problem: problem.New(problem.ModelUnreachable,
			fmt.Sprintf("nothing is listening at %s: the connection was refused", p.host())).
			WithHint(p.reachHint()), Retryable: true}
	case isOp && op.Op == "dial":
		return &Failure{Problem: problem.New(problem.ModelUnreachable,
			fmt.Sprintf("no connection to %s", p.host())).WithHint(p.reachHint()).WithCause(cause)}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), isReset(err):
		return p.Truncated(cause)
	case errors.Is(err, context.Canceled):
		return &Failure{Problem: problem.New(problem.GivenUp, "the question to the model was canceled").WithCause(cause)}
	}
	_, isURL := errors.AsType[*url.Error](err)
	if _, isNet := errors.AsType[net.Error](err); !isNet && !isURL {
		return p.Malformed(err)
	}
	return &Failure{Problem: problem.New(problem.ModelUnreachable,
		fmt.Sprintf("the request to %s failed", p.host())).WithHint(p.reachHint()).WithCause(cause)}
}

// isReset also knows an HTTP/2 stream that the server gave up, which has no exported type.
func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		strings.Contains(err.Error(), "stream error:") || strings.Contains(err.Error(), "server closed idle connection")
}

// Truncated explains an answer that ended without saying that it is complete. Cause may be nil.
func (p Provider) Truncated(cause error) *Failure {
	e := problem.New(problem.ModelStreamTruncated,
		fmt.Sprintf("the answer of %s broke off before its end", p.Model)).
		WithHint("ask again; nothing of an unfinished tool call was run")
	if cause != nil {
		e = e.WithCause(cause)
	}
	return &Failure{Problem: e, Retryable: true}
}

// Malformed explains an answer that is not what the wire format prescribes.
func (p Provider) Malformed(cause error) *Failure {
	return &Failure{Problem: problem.New(problem.ModelStreamMalformed,
		fmt.Sprintf("%s sent something that is not a valid answer of a model", p.host())).
		WithHint("check that " + p.URLVariable + " points to the model service itself; " + p.BaseURLHint).
		WithCause(errors.New(p.redact(problem.InWords(cause, ""))))}
}

// CheckBaseURL returns a failure when the base URL cannot be one, else nil.
func (p Provider) CheckBaseURL() *Failure {
	u, err := url.Parse(p.BaseURL)
	if err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") {
		return nil
	}
	return &Failure{Problem: problem.New(problem.ModelBaseURL,
		fmt.Sprintf("%q is not an address of a model service", p.redact(p.BaseURL))).
		WithHint(fmt.Sprintf("set %s to a full URL; %s", p.URLVariable, p.BaseURLHint))}
}

// host is the service's host and port, without anything that might be secret.
func (p Provider) host() string {
	u, err := url.Parse(p.BaseURL)
	if err != nil || u.Host == "" {
		return "the model service"
	}
	return u.Host
}

func (p Provider) reachHint() string {
	check := fmt.Sprintf("check the network and %s (now %s)", p.URLVariable, p.publicURL())
	if p.StartHint == "" {
		return check
	}
	return p.StartHint + "; otherwise " + check
}

func (p Provider) publicURL() string {
	u, err := url.Parse(p.BaseURL)
	if err != nil {
		return p.redact(p.BaseURL)
	}
	return p.redact(u.Redacted())
}

func (p Provider) redact(s string) string {
	if len(p.Secret) < 4 {
		return s
	}
	return strings.ReplaceAll(s, p.Secret, "***")
}
