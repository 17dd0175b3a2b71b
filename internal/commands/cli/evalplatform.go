package cli

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"cove/internal/core/config"
	"cove/internal/core/ident"
	"cove/internal/core/lang"
	"cove/internal/llm/eval"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// evalPlatform opens the sessions of an evaluation, each with a sandbox of its own, in one hub whose database is in the folder of the run.
type evalPlatform struct {
	p       *Program
	cfg     config.Config
	records *localHub
	turn    hub.NewTurn // what all turns have in common
	quiet   bool
}

// open opens the database in the folder of the run.
func (e *evaluation) open(ctx context.Context, m model.Model) (*evalPlatform, error) {
	cfg := e.cfg
	database, err := filepath.Abs(filepath.Join(e.Folder, eval.DatabaseFile))
	if err != nil {
		return nil, err
	}
	cfg.Store.Database, cfg.Store.History = database, true
	if m != nil {
		m = clocked{m}
	}
	b := &evalPlatform{p: e.p, cfg: cfg, records: e.p.openHub(ctx, cfg, m, RecordsOptions{Command: "cove eval"}), quiet: e.Quiet}
	b.turn.Temperature = e.temperature
	if m != nil && e.Seed != nil && m.Capabilities().Extra {
		b.turn.Extra = map[string]json.RawMessage{"seed": json.RawMessage(strconv.FormatInt(*e.Seed, 10))}
	}
	if !cfg.Isolated() {
		e.say("engine " + cfg.Sandbox.Engine + ": there is no isolation, the code can do whatever you can do")
	}
	if _, err := b.records.wait(ctx); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func (b *evalPlatform) close() { b.records.close() }

// Prepare implements eval.Platform: the first session makes an environment and a template where they are missing.
func (b *evalPlatform) Prepare(ctx context.Context) error {
	progress := b.p.Err
	if b.quiet {
		progress = io.Discard
	}
	live, err := b.p.Open(ctx, b.cfg, lang.Lines(progress))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	_ = live.Close(ctx) // what could not be removed is swept by the next command
	return nil
}

// Open implements eval.Platform.
func (b *evalPlatform) Open(ctx context.Context, files []eval.File) (eval.Session, error) {
	live, err := b.p.Open(ctx, b.cfg, io.Discard)
	if err != nil {
		return nil, err
	}
	s := &evalSession{Live: live, platform: b, hub: &localHub{p: b.p, models: b.records.models, records: b.records.records}}
	var inputs []input
	for _, f := range files {
		info, err := os.Stat(f.Host)
		if err != nil {
			s.Close()
			return nil, unreadable(f.Host, err)
		}
		inputs = append(inputs, input{host: f.Host, name: f.Path, info: info})
	}
	if err := put(ctx, live, inputs, nil); err != nil {
		s.Close()
		return nil, err
	}
	a := hub.Attachment{ID: ident.New(ident.Session), Packages: b.cfg.Packages.Set, Memory: int64(b.cfg.Sandbox.Memory), CPUs: b.cfg.Sandbox.CPUs}
	if err := s.hub.attach(ctx, a, live); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// evalSession is the session of a task or of a series.
type evalSession struct {
	hub.Live
	platform     *evalPlatform
	hub          *localHub
	conversation string
	parent       string
}

var _ eval.Session = (*evalSession)(nil)

// Ask implements eval.Session.
func (s *evalSession) Ask(ctx context.Context, prompt string, hear func(loop.Event) error) (eval.Asked, error) {
	n := s.platform.turn
	n.Conversation, n.Parent, n.Session, n.Source = s.conversation, s.parent, s.hub.session, "cli"
	n.Input = []model.Message{{Role: model.RoleUser, Content: []model.Content{model.Text{Text: prompt}}}}
	var clock atomic.Int64
	turn, err := s.hub.records.Hub.RunTurn(context.WithValue(ctx, clockKey{}, &clock), auth.Local(), n, hear)
	if turn.ID != "" {
		s.conversation, s.parent = turn.Conversation, turn.ID
	}
	return eval.Asked{Conversation: turn.Conversation, Usage: turn.Usage, Cost: turn.Cost, Model: time.Duration(clock.Load())}, err
}

// Execute implements eval.Session.
func (s *evalSession) Execute(ctx context.Context, code string, hear func(kernel.Event) error) error {
	for e, err := range s.hub.execute(ctx, kernel.Request{Code: code, Timeout: time.Duration(s.platform.cfg.Sandbox.Timeout)}) {
		if err == nil {
			err = hear(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Unrecorded implements eval.Session.
func (s *evalSession) Unrecorded(ctx context.Context, code string) iter.Seq2[kernel.Event, error] {
	return s.Live.Execute(ctx, kernel.Request{Code: code, Timeout: time.Duration(s.platform.cfg.Sandbox.Timeout)})
}

// Close implements eval.Session.
func (s *evalSession) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = s.hub.detach(ctx, func() (hub.SessionState, string) { // what could not be removed is swept by the next command
		_ = s.Live.Close(ctx)
		return hub.SessionDeleted, ""
	})
}

// clockKey marks contexts with the *atomic.Int64 that adds up the nanoseconds spent in requests to a model.
type clockKey struct{}

// clocked is a model whose requests are timed for the turn that makes them.
type clocked struct{ model.Model }

// Stream implements model.Model.
func (c clocked) Stream(ctx context.Context, req model.Request) iter.Seq2[model.Part, error] {
	return func(yield func(model.Part, error) bool) {
		began := time.Now()
		if clock, ok := ctx.Value(clockKey{}).(*atomic.Int64); ok {
			defer func() { clock.Add(int64(time.Since(began))) }()
		}
		c.Model.Stream(ctx, req)(yield)
	}
}
