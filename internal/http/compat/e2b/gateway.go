package e2b

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/http/protocol"
	"cove/internal/machine/guestlink"
	"cove/internal/server/auth"
	"cove/internal/server/ports"
)

// byName serves names of ports: PORT-ID.DOMAIN. Those of sandboxes are open to all, as at E2B, unless their maker wants the traffic token.
func (s *server) byName(w http.ResponseWriter, r *http.Request) {
	session, port, ok := s.Address().Find(hostName(r.Host))
	if ok && (port == agentPort || port == interpreterPort) {
		s.gateway(w, r)
		return
	}
	if b, err := s.awake(r, session); err == nil && (!b.record.Closed || r.Header.Get(trafficHeader) != "" || !ports.Asks(r)) {
		ctx, over := s.clocks.Enter(r.Context(), b.id, false)
		defer over()
		s.toPort(w, r.WithContext(ctx), b, port)
		return
	}
	if s.gone.has(session) {
		gone(w, session, problem.New(problem.SessionNotFound, notFound))
		return
	}
	s.Names.Handler.ServeHTTP(w, r)
}

// gateway serves what is for a sandbox: its agent and its code interpreter, for which the host answers, and its ports.
func (s *server) gateway(w http.ResponseWriter, r *http.Request) {
	if protocol.Preflight(w, r) {
		return
	}
	id, port := s.addressed(r)
	if id == "" {
		signed, err := s.bySignature(r)
		if err != nil {
			reply(w, http.StatusUnauthorized, map[string]any{"code": http.StatusUnauthorized, "message": err.Error()})
			return
		}
		id, port = signed, agentPort
	}
	b, err := s.awake(r, id)
	if err != nil {
		gone(w, id, err)
		return
	}
	leave, err := auth.VisitOf(r.Context()).Enter(r.Context(), b.who)
	if err != nil {
		refuse(w, err)
		return
	}
	defer leave()
	ctx, over := s.clocks.Enter(r.Context(), b.id, false)
	defer over()
	c := &cut{ResponseWriter: w, ctx: ctx}
	r = r.WithContext(context.WithValue(ctx, sandboxKey{}, b))
	switch port {
	case agentPort:
		s.toAgent(c, r, b)
	case interpreterPort:
		s.toInterpreter(c, r, b)
	default:
		s.toPort(c, r, b, port)
	}
	c.close()
}

type sandboxKey struct{}

// sandboxOf returns the sandbox that a request to the agent is about.
func sandboxOf(ctx context.Context) sandbox {
	b, _ := ctx.Value(sandboxKey{}).(sandbox)
	return b
}

// addressed returns which sandbox a request is for, and which port of it; "" where its address does not say so.
func (s *server) addressed(r *http.Request) (session string, port int) {
	if id := r.Header.Get(sandboxHeader); id != "" {
		port, err := strconv.Atoi(r.Header.Get(portHeader))
		if err != nil || port < 1 || port > 65535 {
			port = agentPort
		}
		return sessionOf(id), port
	}
	if session, port, ok := s.Address().Find(hostName(r.Host)); ok {
		return session, port
	}
	return "", 0
}

func hostName(host string) string {
	name, _, _ := strings.Cut(host, ":")
	return strings.ToLower(strings.TrimSuffix(name, "."))
}

// notFound is what SDKs look for.
const notFound = "The sandbox was not found"

// awake returns a sandbox that may be used, and wakes one that is paused where its maker wanted that. Its caller is who made it, limited to what a link to it allows.
func (s *server) awake(r *http.Request, session string) (sandbox, error) {
	nothing := problem.New(problem.SessionNotFound, notFound)
	if s.gone.has(session) || !ident.Valid(ident.Session, session) {
		return sandbox{}, nothing
	}
	_, who, err := s.Hub.LinkOf(r.Context(), s.token(session))
	if err != nil {
		return sandbox{}, nothing
	}
	visitor := auth.VisitOf(r.Context()).Visitor()
	who.Request, who.IP, who.Agent = visitor.Request, visitor.IP, visitor.Agent
	row, err := s.Hub.Session(r.Context(), who, session)
	if err != nil {
		return sandbox{}, nothing
	}
	rec, ok := recordOf(row, kindSandbox)
	now := time.Now()
	if !ok || rec.over(now) || rec.asleep(now) && (!rec.AutoResume || rec.Memory != "") {
		return sandbox{}, nothing
	}
	b := sandbox{id: session, who: who, record: rec, session: row}
	if !rec.asleep(now) {
		s.clocks.Know(session, rec.rings())
		return b, nil
	}
	b.record, err = s.prolong(r.Context(), who, session, func(r *record) { r.Paused, r.End = false, time.Now().UTC().Add(defaultLife) })
	return b, err
}

// gone answers for a sandbox that is not there, in the words that SDKs know: 502.
func gone(w http.ResponseWriter, session string, err error) {
	p, _ := problem.Public(err)
	reply(w, http.StatusBadGateway, map[string]any{"sandboxId": ident.Body(session), "message": p.Message, "code": http.StatusBadGateway})
}

// holds says whether a request brings one of the tokens. Addresses that often send wrong ones are held back.
func holds(r *http.Request, tokens ...string) error {
	return auth.VisitOf(r.Context()).Look(r.Context(), func(context.Context) error {
		for _, name := range []string{tokenHeader, trafficHeader} {
			for _, token := range tokens {
				if subtle.ConstantTimeCompare([]byte(r.Header.Get(name)), []byte(token)) == 1 {
					return nil
				}
			}
		}
		return problem.New(problem.LinkNotFound, "the access token is missing or wrong").WithHint("connect to the sandbox with your key: its access token comes with the answer")
	})
}

// signature is that of a link to a file, as E2B's SDKs make it: the hash of what it is for and of the sandbox's token.
func signature(path, operation, user, token, expires string) string {
	text := path + ":" + operation + ":" + user + ":" + token
	if expires != "" {
		text += ":" + expires
	}
	sum := sha256.Sum256([]byte(text))
	return "v1_" + base64.RawStdEncoding.EncodeToString(sum[:])
}

// signed says whether the address of a file is signed with a sandbox's token. Problems: link_not_found.
func (s *server) signed(r *http.Request, session string) error {
	q, operation := r.URL.Query(), "read"
	if r.Method == http.MethodPost {
		operation = "write"
	}
	expires := q.Get("signature_expiration")
	if subtle.ConstantTimeCompare([]byte(q.Get("signature")), []byte(signature(q.Get("path"), operation, q.Get("username"), s.token(session), expires))) != 1 {
		return problem.New(problem.LinkNotFound, "invalid signature")
	}
	if at, err := strconv.ParseInt(expires, 10, 64); expires != "" && (err != nil || time.Now().Unix() > at) {
		return problem.New(problem.LinkNotFound, "signature is already expired")
	}
	return nil
}

// bySignature finds whose file an address is for that says nothing of a sandbox but has a signature: that of one of those that are known here.
func (s *server) bySignature(r *http.Request) (session string, err error) {
	err = auth.VisitOf(r.Context()).Look(r.Context(), func(context.Context) error {
		last := error(problem.New(problem.LinkNotFound, "invalid signature"))
		for _, id := range s.clocks.Known() {
			err := s.signed(r, id)
			if err == nil {
				session = id
				return nil
			}
			if problem.Of(err).Message != "invalid signature" {
				last = err
			}
		}
		return last
	})
	return session, err
}

// toPort forwards a request to a server in the sandbox.
func (s *server) toPort(w http.ResponseWriter, r *http.Request, b sandbox, port int) {
	if b.record.Closed {
		if err := holds(r, s.trafficToken(b.id), s.token(b.id)); err != nil {
			reply(w, http.StatusForbidden, map[string]any{"sandboxId": sandboxID(b.id), "message": "The traffic access token is missing or wrong", "code": http.StatusForbidden})
			return
		}
	}
	for _, name := range []string{tokenHeader, trafficHeader} {
		r.Header.Del(name) // no credential goes into a sandbox
	}
	closed := func(w http.ResponseWriter, _ *http.Request, _ *problem.Error) {
		reply(w, http.StatusBadGateway, map[string]any{
			"sandboxId": sandboxID(b.id), "message": "The sandbox is running but port is not open", "port": port, "code": http.StatusBadGateway,
		})
	}
	begun := false
	err := s.Hub.UsePort(r.Context(), b.who, b.id, port, func(ctx context.Context, stream guestlink.Stream) error {
		begun = true
		ports.Forward(ctx, w, r, stream, ports.Way{Session: b.id, Port: port, Host: strings.ReplaceAll(b.record.Mask, portWord, strconv.Itoa(port))}, closed)
		return nil
	})
	if err != nil && !begun {
		closed(w, r, nil)
	}
}

// cut is an answer that breaks off when its sandbox ends: a stream that ended as if it were whole would be taken for one. SDKs look then whether the sandbox is gone.
type cut struct {
	http.ResponseWriter
	ctx     context.Context
	started bool
}

// broken says whether the sandbox has ended, rather than its client left.
func (c *cut) broken() bool {
	why := context.Cause(c.ctx)
	return errors.Is(why, errKilled) || errors.Is(why, errEnded) || errors.Is(why, errPaused)
}

// WriteHeader implements http.ResponseWriter.
func (c *cut) WriteHeader(code int) {
	if !c.broken() {
		c.started = true
		c.ResponseWriter.WriteHeader(code)
	}
}

// Write implements http.ResponseWriter.
func (c *cut) Write(p []byte) (int, error) {
	if c.broken() {
		return 0, context.Cause(c.ctx)
	}
	c.started = true
	return c.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (c *cut) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// Flush implements http.Flusher.
func (c *cut) Flush() { _ = http.NewResponseController(c.ResponseWriter).Flush() } // nobody can be told

// close breaks the connection off where the sandbox has ended.
func (c *cut) close() {
	if c.broken() {
		panic(http.ErrAbortHandler)
	}
}

// line writes one JSON object and a line end, in ASCII alone: a client of E2B's decodes each piece that it gets by itself.
func line(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(text)+1)
	for _, r := range string(text) {
		switch {
		case r < 0x80:
			out = append(out, byte(r))
		case r < 0x10000:
			out = append(out, escaped(uint16(r))...)
		default:
			r -= 0x10000
			out = append(append(out, escaped(uint16(0xd800+r>>10))...), escaped(uint16(0xdc00+r&0x3ff))...)
		}
	}
	return append(out, '\n'), nil
}

func escaped(unit uint16) []byte {
	const digits = "0123456789abcdef"
	return []byte{'\\', 'u', digits[unit>>12], digits[unit>>8&15], digits[unit>>4&15], digits[unit&15]}
}
