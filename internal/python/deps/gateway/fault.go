package gateway

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"cove/internal/core/problem"
)

var (
	errSlow    = errors.New("nothing was received for too long")
	errDown    = errors.New("no connection could be made a moment ago")
	errProxy   = errors.New("the settings for proxies are wrong")
	errOutside = errors.New("it leads to an address that is not allowed")
)

const (
	timeHint      = "try again later, or use another index (UV_DEFAULT_INDEX)"
	reachHint     = "check the network, HTTPS_PROXY and the address of the index (UV_DEFAULT_INDEX, PIP_INDEX_URL)"
	trustHint     = "name the file with your certificates: SSL_CERT_FILE=/path/to/ca.pem"
	passwordHint  = "put user and password into the index's URL, into UV_INDEX_<NAME>_USERNAME and UV_INDEX_<NAME>_PASSWORD, or into ~/.netrc"
	malformedHint = "check the address of the index (it usually ends in /simple), and whether a proxy or a login page answers instead"
)

// busyError is the answer of an index that wants to be asked again later.
type busyError struct {
	status int
	after  time.Duration
}

func (b *busyError) Error() string { return fmt.Sprintf("HTTP status %d", b.status) }

// fault turns an error of the network into a problem.
func (u *upstream) fault(ctx context.Context, err error) error {
	if p, ok := errors.AsType[*problem.Error](err); ok {
		return p
	}
	cause := context.Cause(ctx)
	name := "the package index " + u.shown
	scrubbed := u.scrub(err)
	switch {
	case errors.Is(err, errSlow) || errors.Is(cause, errSlow):
		return problem.New(problem.IndexTimeout, fmt.Sprintf("%s does not answer, or has stopped in the middle of its answer", name)).
			WithHint(timeHint).WithCause(errSlow)
	case errors.Is(cause, context.DeadlineExceeded):
		return problem.New(problem.IndexTimeout, name+" has not answered in time").WithHint(timeHint).WithCause(cause)
	case ctx.Err() != nil:
		return problem.New(problem.GivenUp, "asking "+name+" was canceled").WithCause(ctx.Err())
	case errors.Is(err, errOutside):
		return u.malformed("it leads to an address inside of this network", nil)
	case untrusted(err):
		return problem.New(problem.IndexUntrusted, name+" shows a certificate that is not trusted here").WithHint(trustHint).WithCause(scrubbed)
	}
	p := problem.New(problem.IndexUnreachable, name+" cannot be reached").WithHint(reachHint).WithCause(scrubbed)
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		u.setDown(p)
	}
	return p
}

func untrusted(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.AlertError](err); ok {
		return true
	}
	_, ok := errors.AsType[tls.RecordHeaderError](err)
	return ok
}

// status turns an HTTP status that is no answer into a problem.
func (u *upstream) status(r *http.Response) error {
	code := r.StatusCode
	cause := &busyError{status: code, after: retryAfter(r.Header)}
	switch {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		message := "the package index " + u.shown + " wants credentials"
		if u.user != nil {
			message = "the package index " + u.shown + " does not accept the credentials that are set for it"
		}
		return problem.New(problem.IndexDenied, message).WithHint(passwordHint).WithCause(cause)
	case code == http.StatusProxyAuthRequired:
		return problem.New(problem.IndexDenied, "the proxy before the package index "+u.shown+" wants credentials").
			WithHint("put them into the proxy's URL: HTTPS_PROXY=http://user:password@host:port").WithCause(cause)
	case code == http.StatusTooManyRequests || code >= 500:
		return problem.New(problem.IndexUnreachable, fmt.Sprintf("the package index %s is not working (HTTP status %d)", u.shown, code)).
			WithHint(timeHint).WithCause(cause)
	}
	return u.malformed(fmt.Sprintf("it answered with HTTP status %d", code), nil)
}

func (u *upstream) malformed(what string, cause error) error {
	p := problem.New(problem.IndexMalformed, "the package index "+u.shown+" cannot be used: "+what).WithHint(malformedHint)
	if cause != nil {
		return p.WithCause(u.scrub(cause))
	}
	return p
}

// scrub leaves no credentials in an error.
func (u *upstream) scrub(err error) error {
	text := err.Error()
	if u.user != nil {
		password, _ := u.user.Password()
		for _, secret := range []string{password, u.user.Username()} {
			if secret != "" {
				text = strings.ReplaceAll(text, secret, "***")
			}
		}
	}
	if len(text) > 500 {
		text = text[:500]
	}
	return errors.New(clean(text))
}

// IndexFailed says whether err is the fault of an index, of the way to it or of its settings, and not of the package that was asked for.
func IndexFailed(err error) bool {
	return problem.Has(err, problem.IndexDenied, problem.IndexMalformed, problem.IndexOffline, problem.IndexSettingsInvalid, problem.IndexTimeout, problem.IndexUnreachable,
		problem.IndexUntrusted)
}
