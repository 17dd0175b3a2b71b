package daytona

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/http/protocol"
	"cove/internal/machine/guestlink"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/server/ports"
)

const (
	// tokenCookie remembers the token of a sandbox at the name of one of its ports. It begins as the server's own cookies, which no program in a session is sent.
	tokenCookie = "cove_daytona"

	defaultPreview = time.Minute // that a signed address holds
	longestPreview = 24 * time.Hour
)

// port is the port that a request's path names.
func (c *call) port() (int, error) {
	port, err := strconv.Atoi(c.PathValue("port"))
	if err != nil || port < 1 || port > 65535 {
		return 0, invalid("port is a number from 1 to 65535")
	}
	return port, nil
}

// preview tells where a port of a sandbox is. Where ports have no names, the address is that of a link, which needs no token.
func (s *Server) preview(c *call) error {
	b, err := s.of(c)
	if err != nil {
		return err
	}
	port, err := c.port()
	if err != nil {
		return err
	}
	at := strings.TrimSuffix(s.Address().URL(b.id, port), "/")
	if at == "" {
		code := s.portCode(b.id, strconv.Itoa(port))
		_, _, err := s.Hub.LinkOf(c.Context(), code)
		if problem.Is(err, problem.NotFound) {
			_, _, err = s.Hub.AddLink(c.Context(), c.who, hub.NewLink{Session: b.id, Purpose: hub.LinkPort, Port: port, Code: code})
		}
		if err != nil {
			return err
		}
		at = origin(c.Request) + ports.PathPrefix + code
	}
	reply(c.w, http.StatusOK, map[string]any{"sandboxId": sandboxID(b.id), "url": at, "token": s.token(b.id), "legacyProxyUrl": at})
	return nil
}

// signedPreview makes an address of a port that needs no token, and ends.
func (s *Server) signedPreview(c *call) error {
	b, err := s.of(c)
	if err != nil {
		return err
	}
	port, err := c.port()
	if err != nil {
		return err
	}
	life := defaultPreview
	if text := c.URL.Query().Get("expiresInSeconds"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 || n > int64(longestPreview/time.Second) {
			return invalid("expiresInSeconds is a number from 1 to 86400")
		}
		life = time.Duration(n) * time.Second
	}
	_, code, err := s.Hub.AddLink(c.Context(), c.who, hub.NewLink{Session: b.id, Purpose: hub.LinkPort, Port: port, Life: life})
	if err == nil {
		reply(c.w, http.StatusOK, map[string]any{"sandboxId": sandboxID(b.id), "port": port, "token": code, "url": origin(c.Request) + ports.PathPrefix + code})
	}
	return err
}

// expirePreview ends a signed address.
func (s *Server) expirePreview(c *call) error {
	b, err := s.of(c)
	if err != nil {
		return err
	}
	port, err := c.port()
	if err != nil {
		return err
	}
	hash, _ := auth.CodeHash(c.PathValue("token"))
	all, err := s.Hub.Links(c.Context(), c.who, b.id)
	if err != nil {
		return err
	}
	for _, l := range all {
		if l.Hash == hash && l.Purpose == hub.LinkPort && l.Port == port {
			if err := s.Hub.DeleteLink(c.Context(), c.who, b.id, l.ID); err != nil {
				return err
			}
			c.w.WriteHeader(http.StatusOK)
			return nil
		}
	}
	return &fault{http.StatusNotFound, "there is no such signed address of this port"}
}

// signingKey tells the key with which clients sign addresses of files.
func (s *Server) signingKey(c *call) error {
	b, err := s.of(c)
	if err == nil {
		reply(c.w, http.StatusOK, s.keyOf(b))
	}
	return err
}

// rotateKey changes that key: what was signed before holds no longer.
func (s *Server) rotateKey(c *call) error {
	b, err := s.of(c)
	if err == nil {
		b, err = s.change(c.Context(), c.who, b.id, func(r *record) error {
			r.Rotated++
			return nil
		})
	}
	if err == nil {
		reply(c.w, http.StatusOK, s.keyOf(b))
	}
	return err
}

// Names serves the ports of sandboxes by their names, PORT-ID.DOMAIN; what is no sandbox of this surface's, or brings no token of one, goes to next.
func (s *Server) Names(next protocol.Surface) protocol.Surface {
	out := next
	out.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.byName(w, r) {
			next.Handler.ServeHTTP(w, r)
		}
	})
	return out
}

// byName serves a request for a port; false leaves it to others.
func (s *Server) byName(w http.ResponseWriter, r *http.Request) bool {
	host, _, _ := strings.Cut(r.Host, ":")
	session, port, ok := s.Address().Find(strings.ToLower(strings.TrimSuffix(host, ".")))
	if !ok {
		return false
	}
	b, err := s.byLink(r, ident.Body(session))
	if err != nil {
		return false
	}
	cookie, _ := r.Cookie(tokenCookie)
	query := r.URL.Query()
	given := r.Header.Get(tokenHeader)
	switch {
	case given != "":
	case query.Get(tokenParameter) != "":
		given = query.Get(tokenParameter)
		http.SetCookie(w, &http.Cookie{Name: tokenCookie, Value: given, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: strings.HasPrefix(origin(r), "https")})
	case cookie != nil:
		given = cookie.Value
	}
	if !b.record.Public {
		if given == "" {
			return false
		}
		err := auth.VisitOf(r.Context()).Look(r.Context(), func(context.Context) error {
			if equal(given, s.token(b.id)) {
				return nil
			}
			return problem.New(problem.Unauthenticated, "the token of the sandbox is wrong")
		})
		if err != nil {
			w.Header().Del("Set-Cookie")
			refuse(w, r, err)
			return true
		}
	}
	if query.Has(tokenParameter) { // no credential goes into a sandbox
		query.Del(tokenParameter)
		r.URL.RawQuery = query.Encode()
	}
	r.Header.Del(tokenHeader)
	s.toPort(w, r, b, port)
	return true
}

// toPort forwards a request to a server in a sandbox.
func (s *Server) toPort(w http.ResponseWriter, r *http.Request, b sandbox, port int) {
	leave, err := auth.VisitOf(r.Context()).Enter(r.Context(), b.who)
	if err != nil {
		refuse(w, r, err)
		return
	}
	defer leave()
	ctx, over, err := s.enter(r, b)
	if err != nil {
		refuse(w, r, err)
		return
	}
	defer over()
	closed := func(w http.ResponseWriter, r *http.Request, p *problem.Error) { refuse(w, r, p) }
	begun := false
	err = s.Hub.UsePort(ctx, b.who, b.id, port, func(ctx context.Context, stream guestlink.Stream) error {
		begun = true
		ports.Forward(ctx, w, r, stream, ports.Way{Session: b.id, Port: port}, closed)
		return nil
	})
	if err != nil && !begun {
		if problem.Has(err, problem.PortRefused) {
			err = &fault{http.StatusBadGateway, "the sandbox runs, and nothing listens at port " + strconv.Itoa(port)}
		}
		refuse(w, r, err)
	}
}
