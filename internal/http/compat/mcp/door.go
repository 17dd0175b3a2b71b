package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	sdkauth "github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"cove/internal/core/problem"
	"cove/internal/http/bodybudget"
)

const (
	// sessionHeader has the id of a session of the protocol, and versionHeader the version that is spoken, as of 2025-06-18.
	sessionHeader = "Mcp-Session-Id"
	versionHeader = "Mcp-Protocol-Version"
	// rounds is the first version without sessions of the protocol: questions are results, and answers come with the call once more.
	rounds = "2026-07-28"
	// mostVisits and mostVisitsOfKey bound the sessions of the protocol, which end when they are not used for longestVisit.
	mostVisits, mostVisitsOfKey = 1024, 32
	longestVisit                = 12 * time.Hour
)

// door tells apart by whom a request has to be answered. Only an older client whose user can be asked gets a session of the protocol: what the server asks goes out within the answer to a
// call, and what comes back is a request of its own.
func (s *server) door() http.Handler {
	// The front door looks at hosts, origins and keys. A client that leaves ends what it asked for.
	options := sdk.StreamableHTTPOptions{Logger: s.Log, DisableLocalhostProtection: true, MaxRequestBodyBytes: s.MaxBody, PropagateRequestCancellation: true}
	one := func(*http.Request) *sdk.Server { return s.protocol }
	held := options
	held.SessionTimeout = longestVisit
	options.Stateless = true
	stateless, stateful := sdk.NewStreamableHTTPHandler(one, &options), sdk.NewStreamableHTTPHandler(one, &held)
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info := sdkauth.TokenInfoFromContext(r.Context())
		switch {
		case r.Method == http.MethodGet || r.Header.Get(versionHeader) >= rounds: // nothing is ever said without having been asked, which is what GET is for
			stateless.ServeHTTP(w, r)
		case r.Header.Get(sessionHeader) != "":
			s.open.during(r.Header.Get(sessionHeader), info.UserID, r.Method == http.MethodDelete, func() { stateful.ServeHTTP(w, r) })
		case r.Method == http.MethodPost && r.Header.Get(versionHeader) == "" && s.asksToOpen(w, r) && s.open.room(info.UserID):
			stateful.ServeHTTP(w, r)
			s.open.add(w.Header().Get(sessionHeader), info.UserID)
		default:
			stateless.ServeHTTP(w, r)
		}
	})
	inner := sdkauth.RequireBearerToken(known, &sdkauth.RequireBearerTokenOptions{AllowMissingExpiration: true})(answer)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer key") // whatever the key came as: known goes by the context
		inner.ServeHTTP(w, r)
	})
}

// asksToOpen says whether a request is the first of a client of an older version that can ask its user. Its body can be read once more.
func (s *server) asksToOpen(w http.ResponseWriter, r *http.Request) bool {
	body, err := bodybudget.Read(r.Context(), bodybudget.Bounded(w, r.Body, s.MaxBody))
	r.Body = io.NopCloser(bytes.NewReader(body))
	if err != nil { // the protocol's library says so
		r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), broken{err}))
		return false
	}
	var m struct {
		Method string `json:"method"`
		Params struct {
			Version      string                 `json:"protocolVersion"`
			Capabilities sdk.ClientCapabilities `json:"capabilities"`
		} `json:"params"`
	}
	return json.Unmarshal(body, &m) == nil && m.Method == "initialize" && m.Params.Version < rounds && hasForms(&m.Params.Capabilities)
}

// broken is a body that ends with an error.
type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

// visits are the sessions of the protocol. The protocol's library has them; here they are counted.
type visits struct {
	mu  sync.Mutex
	all map[string]*visit
}

type visit struct {
	owner string
	under int // requests
	used  time.Time
}

// room says whether there may be one more.
func (v *visits) room(owner string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	own := 0
	for id, one := range v.all {
		if one.under == 0 && time.Since(one.used) > longestVisit {
			delete(v.all, id)
		} else if one.owner == owner {
			own++
		}
	}
	return len(v.all) < mostVisits && own < mostVisitsOfKey
}

func (v *visits) add(id, owner string) {
	if id == "" {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.all == nil {
		v.all = map[string]*visit{}
	}
	v.all[id] = &visit{owner: owner, used: time.Now()}
}

// during counts a request of a session. Whether there is such a session, and whose, the protocol's library knows.
func (v *visits) during(id, owner string, last bool, serve func()) {
	v.mu.Lock()
	one := v.all[id]
	if one != nil && one.owner == owner {
		one.under++
	} else {
		one = nil
	}
	v.mu.Unlock()
	serve()
	if one == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if one.under--; last {
		delete(v.all, id)
	}
	one.used = time.Now()
}

// hasForms says whether a client can ask its user for words.
func hasForms(of *sdk.ClientCapabilities) bool {
	return of != nil && of.Elicitation != nil && (of.Elicitation.Form != nil || of.Elicitation.URL == nil)
}

// errNobody is what code gets that asks for input when nobody answers.
var errNobody = errors.New("nobody answers")

func gone() error {
	return problem.New(problem.InvalidRequest, "the code does not wait for this answer any more").WithHint("run the code again")
}
