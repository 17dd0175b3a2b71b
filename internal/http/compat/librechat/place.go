package librechat

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/server/hub"
)

const (
	// conversationKey is the metadata by which the session of a conversation is found.
	conversationKey = "librechat.conversation"
	// life is how long a session lives; LibreChat uploads files again that are gone.
	life = 7 * 24 * time.Hour
	// idle is how long a session stays in memory when nobody uses it.
	idle = 5 * time.Minute
)

// place returns the session in which the code of a request runs.
func (s *server) place(ctx context.Context, c *call, r request) (hub.Session, error) {
	if r.Hint != "" {
		return s.conversation(ctx, c, r.Hint)
	}
	if id, ok := own(ident.Session, r.Session); ok {
		found, err := s.Hub.Session(ctx, c.who, id)
		if err == nil || !problem.Has(err, problem.SessionNotFound) {
			return found, err
		}
	}
	return s.Hub.CreateSession(ctx, c.who, hub.NewSession{Life: life, Idle: idle})
}

// conversation returns the session of a conversation.
func (s *server) conversation(ctx context.Context, c *call, hint string) (hub.Session, error) {
	sum := sha256.Sum256([]byte(hint)) // a hint may be longer than metadata
	finding := s.finding[sum[0]%byte(len(s.finding))]
	select {
	case finding <- struct{}{}:
		defer func() { <-finding }()
	case <-ctx.Done():
		return hub.Session{}, ctx.Err()
	}
	meta := map[string]string{conversationKey: hex.EncodeToString(sum[:])}
	found, err := s.Hub.Sessions(ctx, c.who, hub.SessionFilter{Meta: meta}, hub.Page{Limit: 1})
	if err != nil {
		return hub.Session{}, err
	}
	if len(found.Items) > 0 {
		return found.Items[0], nil
	}
	return s.Hub.CreateSession(ctx, c.who, hub.NewSession{Metadata: meta, Life: life, Idle: idle})
}

// putInputs has the files of a request in the session. Of those with one name it is the newest, and what is there by that name stays when it is newer still: code has changed it.
func (s *server) putInputs(ctx context.Context, c *call, session hub.Session, r request) error {
	newest := map[string]source{} // by place
	for _, in := range r.Files {
		if id, ok := own(ident.Session, in.storage()); ok && id == session.ID {
			continue
		}
		from, err := s.find(ctx, c, in)
		if err != nil {
			from = source{missing: err}
		}
		if old, ok := newest[in.place()]; !ok || from.since.After(old.since) {
			newest[in.place()] = from
		}
	}
	for place, from := range newest {
		current := false // the session has the file, and nothing newer came
		err := s.Hub.Tree(ctx, c.who, session.ID, false, func(ctx context.Context, t hub.Tree) error {
			old, err := t.Stat(ctx, place)
			current = err == nil && !from.since.After(old.Modified)
			return nil
		})
		if err == nil && !current {
			err = s.putInput(ctx, c, session, from, place)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// source is where the content of an input comes from: a file that was uploaded, or one of another session.
type source struct {
	file    string // id of the stored file, or ""
	session string
	path    string
	since   time.Time // when its content was written
	missing error     // why there is no content any more; a session may have it still
}

func (s *server) find(ctx context.Context, c *call, in input) (source, error) {
	if f, id, err := s.uploaded(ctx, c, in.storage(), in.ID); err == nil {
		return source{file: id, since: f.Created}, nil
	}
	session, e, err := s.object(ctx, c, in.storage(), in.ID)
	return source{session: session, path: e.Path, since: e.Modified}, err
}

// putInput puts a file into a session.
func (s *server) putInput(ctx context.Context, c *call, session hub.Session, from source, place string) error {
	if from.missing != nil {
		return from.missing
	}
	if from.file != "" {
		_, err := s.Hub.PutFile(ctx, c.who, session.ID, from.file, place)
		return err
	}
	r, w := io.Pipe()
	go func() {
		err := s.Hub.Tree(ctx, c.who, from.session, false, func(ctx context.Context, t hub.Tree) error {
			_, err := t.Read(ctx, from.path, 0, 0, w)
			return err
		})
		_ = w.CloseWithError(err)
	}()
	defer func() { _ = r.Close() }()
	return s.Hub.Tree(ctx, c.who, session.ID, true, func(ctx context.Context, t hub.Tree) error {
		_, err := t.Write(ctx, place, r)
		return err
	})
}
