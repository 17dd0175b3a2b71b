package openai

import (
	"slices"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// mostPlaces bounds the containers that are looked up for one request.
const mostPlaces = 20

// place says in which session the code of a request runs; "" leaves it to the hub.
func (s *server) place(c *call, r *request, b before, in *input) (string, error) {
	if !r.python {
		return "", nil
	}
	if r.container.id != "" {
		session, err := s.container(c, r.container.id)
		return session.ID, err
	}
	session, expired, err := s.lastPlace(c, b, in)
	if err != nil || session != "" {
		return session, err
	}
	if r.container.memory == 0 && r.container.network == nil && !expired {
		return "", nil
	}
	if !c.who.May(auth.SessionsWrite) {
		return "", c.who.Require(auth.SessionsWrite)
	}
	made, err := s.Hub.CreateSession(c.Context(), c.who, hub.NewSession{Memory: r.container.memory, Network: r.container.network})
	return made.ID, err
}

// lastPlace finds the session that "container": {"type": "auto"} goes on in: the one in which the newest code ran that the items tell of, as far as
// it is the caller's and lives, else that of the response or the conversation before. One that was lost counts when no other lives: it goes on from
// what was saved of it, and the model is told so. "" is none; expired says that the one of the response or the conversation is no longer to be used.
func (s *server) lastPlace(c *call, b before, in *input) (id string, expired bool, err error) {
	lost := ""
	for _, session := range in.places(b.session) {
		found, err := s.Hub.Session(c.Context(), c.who, session)
		switch p := problem.Of(err); {
		case err == nil:
		case p.Kind == problem.NotFound || p.Kind == problem.Denied:
			continue
		default:
			return "", false, err
		}
		switch over := s.expired(found); {
		case over:
			expired = expired || session == b.session
		case found.State == hub.SessionDeleted:
		case found.State == hub.SessionLost:
			if lost == "" {
				lost = session
			}
		default:
			in.alreadyIn(containerID(session))
			return session, false, s.prolong(c, found)
		}
	}
	return lost, expired, nil
}

// places are the sessions in which code ran, the newest first.
func (in *input) places(before string) []string {
	var out []string
	for _, container := range slices.Backward(in.placed) {
		if session, ok := own(ident.Session, containerPrefix, container); ok && !slices.Contains(out, session) && len(out) < mostPlaces {
			out = append(out, session)
		}
	}
	if before != "" && !slices.Contains(out, before) {
		out = append(out, before)
	}
	return out
}

// prolong has a container live on for as long as its maker said.
func (s *server) prolong(c *call, session hub.Session) error {
	n := minutesOf(session)
	if n == 0 || !c.who.May(auth.SessionsWrite) {
		return nil
	}
	life := time.Duration(n)*time.Minute + grace
	_, err := s.Hub.ChangeSession(c.Context(), c.who, session.ID, hub.SessionChange{Life: &life})
	return err
}
