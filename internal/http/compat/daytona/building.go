package daytona

import (
	"context"
	"errors"
	"io"
	"maps"
	"strings"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/builder"
	"cove/internal/server/hub"
)

// A sandbox whose image is not there yet is answered at once, and its client asks for its state and follows the log. The steps run in the sandbox's own session, with the network that builds
// have; a fork of it is kept as the image for the next that is the same. Snapshots of images are made in the same way.

// failedLife is how long a sandbox is shown that could not be built.
const failedLife = time.Hour

// building is a session that is being made into what an image says.
type building struct {
	who     auth.Principal
	session string
	kind    string
	of      unbuilt
	network *hub.Network // that the session has when it is built
	code    string       // of a link that holds as long as the key of who has it built
	log     *buildLog
}

// build has a session be built beside the request; done is closed when it is, or could not be.
func (s *Server) build(ctx context.Context, b building) (done <-chan struct{}) {
	b.log = s.logs.begin(b.session)
	over := make(chan struct{})
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), longestBuild, errTooLong)
	go func() {
		defer close(over)
		defer cancel()
		defer b.log.end()
		if err := s.built(ctx, b); err != nil {
			s.unbuilt(ctx, b, err)
		}
	}()
	return over
}

var errTooLong = errors.New("the build took longer than two hours")

func (s *Server) built(ctx context.Context, b building) error {
	setting, err := builder.Build(ctx, builder.Options{
		Hub: s.Hub, Who: b.who, Session: b.session, Root: s.Root, Recipe: b.of.recipe, StepTime: longestStep, Log: b.log.say,
		Archive: func(ctx context.Context, names string) (io.ReadCloser, error) {
			return s.openContexts(ctx, b.who, strings.Split(names, ","))
		},
		Allowed: func(ctx context.Context) error { // the key may have been withdrawn
			_, _, err := s.Hub.LinkOf(ctx, b.code)
			return err
		},
	})
	if err != nil {
		return err
	}
	if b.kind == kindSnapshot {
		if _, err := s.Hub.PauseSession(ctx, b.who, b.session); err != nil {
			return err
		}
	}
	if err := s.keepImage(ctx, b, setting); err != nil { // the next one builds it anew
		s.Log.WarnContext(ctx, "an image was built and could not be kept", "session", b.session, "error", err)
	}
	if _, err := s.Hub.ChangeSession(ctx, b.who, b.session, hub.SessionChange{Network: b.network}); err != nil {
		return err
	}
	return s.finish(ctx, b, func(r *record) {
		r.Env, r.Dir, r.Building = merged(setting.Env, r.Env), setting.Dir, false
		r.live(time.Now().UTC())
	})
}

// keepImage keeps a fork of what was built as the image.
func (s *Server) keepImage(ctx context.Context, b building, setting builder.Setting) error {
	now := time.Now().UTC()
	r := record{Name: b.of.name, Env: setting.Env, Dir: setting.Dir, Created: now, Changed: now, Seen: now, AutoDelete: -1}
	entries, err := r.entries(kindImage, nil)
	if err == nil {
		_, err = s.Hub.ForkSession(ctx, b.who, b.session, hub.NewSession{Metadata: entries, Life: imageLife, Network: &hub.Network{}})
	}
	return err
}

// finish records what became of a session that was built.
func (s *Server) finish(ctx context.Context, b building, edit func(*record)) error {
	if b.kind == kindSandbox {
		_, err := s.change(ctx, b.who, b.session, func(r *record) error {
			edit(r)
			return nil
		})
		return err
	}
	row, err := s.Hub.Session(ctx, b.who, b.session)
	if err != nil {
		return err
	}
	r, ok := recordOf(row, b.kind)
	if !ok {
		return problem.New(problem.SessionNotFound, "the snapshot was deleted")
	}
	edit(&r)
	life := longestSnapshot
	if r.Failed != "" {
		life = failedLife
	}
	all, err := r.entries(b.kind, maps.Clone(row.Metadata))
	if err == nil {
		_, err = s.Hub.ChangeSession(ctx, b.who, b.session, hub.SessionChange{Metadata: all, Life: &life})
	}
	return err
}

// unbuilt records why a session could not be built. It is shown for a while, and not kept in memory.
func (s *Server) unbuilt(ctx context.Context, b building, err error) {
	why := ""
	if f, ok := errors.AsType[*builder.Fault](err); ok {
		why = b.of.info.unbuildable(f).Error()
	} else if cause := context.Cause(ctx); cause != nil {
		why = cause.Error()
	} else {
		_, why, _ = said(err)
		if p := problem.Of(err); p == nil || p.Kind == problem.Internal {
			s.Log.WarnContext(ctx, "an image could not be built", "session", b.session, "error", err)
		}
	}
	if len(why) > mostReason {
		why = strings.ToValidUTF8(why[:mostReason], "") + "..."
	}
	b.log.say(builder.Said{Text: "the build has failed: " + why})
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	err = s.finish(ctx, b, func(r *record) { r.Building, r.Failed = false, why })
	if err == nil {
		_, err = s.Hub.PauseSession(ctx, b.who, b.session)
	}
	if err != nil && !problem.Is(err, problem.NotFound) { // it is gone where it was deleted
		s.Log.WarnContext(ctx, "the remains of an image that could not be built were not put away", "session", b.session, "error", err)
	}
}

// mostReason bounds why a build failed, in bytes.
const mostReason = 4000

// makeBuilding makes the session of a sandbox whose image has to be built first, and has it be built.
func (s *Server) makeBuilding(ctx context.Context, who auth.Principal, r record, of unbuilt, wanted hub.NewSession) (b sandbox, done <-chan struct{}, err error) {
	r.Building = true
	if wanted.Metadata, err = r.entries(kindSandbox, nil); err != nil {
		return b, nil, err
	}
	network := wanted.Network
	if network == nil {
		network = &hub.Network{}
	}
	wanted.Idle, wanted.Life = r.hubTimes(r.at(r.Seen, r.Seen), r.Seen)
	if wanted.Network, err = s.Hub.WidestNetwork(ctx, who); err != nil {
		return b, nil, err
	}
	wanted.Image = of.fetched()
	row, err := s.Hub.CreateSession(ctx, who, wanted)
	if err != nil {
		return b, nil, err
	}
	if b, err = s.begin(ctx, who, row); err != nil {
		return b, nil, err
	}
	return b, s.build(ctx, building{who: who, session: row.ID, kind: kindSandbox, of: of, network: network, code: s.token(row.ID)}), nil
}

// makeBuiltSnapshot is makeBuilding for a snapshot.
func (s *Server) makeBuiltSnapshot(ctx context.Context, who auth.Principal, r record, of unbuilt, n hub.NewSession) (hub.Session, error) {
	var err error
	r.Building = true
	if n.Metadata, err = r.entries(kindSnapshot, nil); err != nil {
		return hub.Session{}, err
	}
	if n.Network, err = s.Hub.WidestNetwork(ctx, who); err != nil {
		return hub.Session{}, err
	}
	n.Idle, n.Life = longestBuild, longestBuild+failedLife
	n.Image = of.fetched()
	row, err := s.Hub.CreateSession(ctx, who, n)
	if err != nil {
		return hub.Session{}, err
	}
	if _, _, err = s.Hub.AddLink(ctx, who, hub.NewLink{Session: row.ID, Purpose: hub.LinkMachine, Code: s.token(row.ID)}); err != nil {
		s.discard(ctx, who, row.ID)
		return hub.Session{}, err
	}
	s.build(ctx, building{who: who, session: row.ID, kind: kindSnapshot, of: of, network: &hub.Network{}, code: s.token(row.ID)})
	return row, nil
}

// ready returns the sandbox that a request's path names, unless it is not built.
func (s *Server) ready(c *call) (sandbox, error) {
	b, err := s.of(c)
	if err != nil {
		return b, err
	}
	switch s.lifeOf(b).state {
	case buildingState:
		return b, invalid("the image of the sandbox is being built; wait until its state is started")
	case buildFailed:
		return b, invalid("the image of the sandbox could not be built: " + s.failure(b.id, b.record))
	}
	return b, nil
}

// failure is why a session is not built, and will not be; "": it is, or will be.
func (s *Server) failure(session string, r record) string {
	if r.Building && !s.logs.runs(session) {
		return "the server was stopped while it was built"
	}
	return r.Failed
}
