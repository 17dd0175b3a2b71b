package e2b

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"cove/internal/core/problem"
	"cove/internal/http/bodybudget"
	"cove/internal/server/auth"
	"cove/internal/server/builder"
	"cove/internal/server/hub"
)

// mostStepsText bounds the JSON of a build's steps, in bytes.
const mostStepsText = 8 << 20

// buildRequest is what to build, as E2B's clients say it.
type buildRequest struct {
	Image    string          `json:"fromImage"`
	Template string          `json:"fromTemplate"`
	Registry json.RawMessage `json:"fromImageRegistry"`
	Steps    []struct {
		Type  string   `json:"type"`
		Args  []string `json:"args"`
		Hash  string   `json:"filesHash"`
		Force bool     `json:"force"`
	} `json:"steps"`
	Start string `json:"startCmd"`
	Ready string `json:"readyCmd"`
	Force bool   `json:"force"`
}

// recipe is a request in the words of package builder.
func (in buildRequest) recipe(may builder.May) (builder.Recipe, error) {
	out := builder.Recipe{Image: in.Image, Start: in.Start, Ready: in.Ready, Force: in.Force}
	if len(in.Registry) > 0 && string(in.Registry) != "null" && string(in.Registry) != "{}" {
		return out, &builder.Fault{Message: "cove takes no credentials of a registry: images are fetched with those that the server's operator has for them"}
	}
	arg := func(args []string, i int) string {
		if i < len(args) {
			return args[i]
		}
		return ""
	}
	for i, said := range in.Steps {
		s := builder.Step{Kind: builder.Kind(strings.ToUpper(said.Type)), Force: said.Force}
		switch s.Kind {
		case builder.Run:
			s.Command, s.User = arg(said.Args, 0), arg(said.Args, 1)
		case builder.Env, builder.Arg:
			s.Pairs = said.Args
		case builder.Workdir:
			s.Dir = arg(said.Args, 0)
		case builder.User:
			s.User = arg(said.Args, 0)
		case builder.Copy:
			if !archiveHash().MatchString(said.Hash) {
				return out, &builder.Fault{Step: i + 1, Message: "COPY: there is no hash of its files"}
			}
			s.Sources, s.To, s.Owner, s.Mode, s.Archive = []string{arg(said.Args, 0)}, arg(said.Args, 1), arg(said.Args, 2), arg(said.Args, 3), said.Hash
		}
		out.Steps = append(out.Steps, s)
	}
	if err := out.Begin(may); err != nil {
		return out, &builder.Fault{Message: err.Error()}
	}
	return out, out.Check()
}

// startBuild takes the steps of a build, and has it run. What cove cannot build is refused at once, by the step.
func (s *server) startBuild(c *call) error {
	m := s.builds.find(c.who, c.PathValue("id"), c.PathValue("build"))
	if m == nil {
		return &fault{http.StatusNotFound, fmt.Sprintf("build '%.100s' not found", c.PathValue("build"))}
	}
	text, err := c.text(mostStepsText)
	if err != nil {
		return err
	}
	var in buildRequest
	if err := json.Unmarshal(text, &in); err != nil {
		return invalid("the request is not the JSON that E2B's API takes: " + bodybudget.WhyNotJSON(err))
	}
	recipe, err := in.recipe(s.Hub.MayBeginFrom)
	if f, ok := errors.AsType[*builder.Fault](err); ok {
		return invalid("step " + (&making{steps: len(in.Steps)}).stepName(f.Step) + ": " + f.Message)
	}
	if err != nil {
		return err
	}
	from, err := s.beginning(c.Context(), c.who, in.Template)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(context.WithoutCancel(c.Context()))
	if err := s.builds.begin(m, c.who, len(recipe.Steps), stop); err != nil {
		stop(nil)
		return err
	}
	go func() {
		defer stop(nil)
		ctx, cancel := context.WithTimeoutCause(ctx, longestBuild, fmt.Errorf("the build took longer than %s", longestBuild))
		defer cancel()
		s.ended(ctx, m, s.build(ctx, m, recipe, from))
	}()
	c.w.WriteHeader(http.StatusAccepted)
	return nil
}

// beginning is what a build begins with.
type beginning struct {
	name    string // for the state
	session string // to fork; "": a new one
	setting builder.Setting
}

func (s *server) beginning(ctx context.Context, who auth.Principal, said string) (beginning, error) {
	if slices.Contains(standingTemplates, said) {
		return beginning{name: fmt.Sprintf("cove, root %v", s.Root)}, nil
	}
	row, r := hub.Session{}, record{}
	if id, ok := snapshotSession(said); ok {
		var err error
		row, err = s.Hub.Session(ctx, who, id)
		if r, ok = recordOf(row, kindSnapshot); err != nil || !ok {
			return beginning{}, noTemplate(said)
		}
	} else {
		t, err := s.templateOf(ctx, who, said)
		if err != nil {
			return beginning{}, err
		}
		row, r = t.row, t.record
	}
	return beginning{name: row.ID, session: row.ID, setting: builder.Setting{Env: r.Env, Dir: r.Dir, User: r.User}}, nil
}

// build makes a session into what a recipe says, and the session into a template.
func (s *server) build(ctx context.Context, m *making, recipe builder.Recipe, from beginning) error {
	s.sweepBuilds(ctx, m.who)
	for again := false; ; again = true {
		if again {
			recipe.Force = true // what was to stand for the first steps could not be restored
		}
		whole, err := s.buildOnce(ctx, m, recipe, from)
		if err != nil || whole || again {
			return err
		}
	}
}

// buildOnce is a build that begins with what has been built so far, where something has; whole is false where that could not be restored.
func (s *server) buildOnce(ctx context.Context, m *making, recipe builder.Recipe, from beginning) (whole bool, err error) {
	done, of, err := s.standing(ctx, m, recipe, from)
	if err != nil {
		return false, err
	}
	session, err := s.buildSession(ctx, m, cmp.Or(of, from.session), recipe)
	if err != nil {
		return false, err
	}
	setting, err := builder.Build(ctx, builder.Options{
		Hub: s.Hub, Who: m.who, Session: session, Root: s.Root, Recipe: recipe, From: from.setting, Done: done, Log: m.say,
		Archive: func(ctx context.Context, name string) (io.ReadCloser, error) { return s.openArchive(ctx, m.who, name) },
		Allowed: func(ctx context.Context) error { // the key may have been withdrawn
			_, _, err := s.Hub.LinkOf(ctx, s.token(session))
			return err
		},
	})
	row := hub.Session{}
	if err == nil {
		row, err = s.Hub.Session(ctx, m.who, session)
	}
	if err == nil && row.Rollback != nil && of == "" {
		err = problem.New(problem.SnapshotUnfit, "the session of the build was lost, or what it begins with cannot be restored any more").WithHint("build again, what it begins with first")
	}
	if err == nil && row.Rollback != nil {
		m.say(builder.Said{At: time.Now().UTC(), Level: builder.Warn, Text: "what was built before cannot be restored: all steps are done anew"})
		s.discard(ctx, m.who, session)
		return false, nil
	}
	if err == nil {
		_, err = s.Hub.PauseSession(ctx, m.who, session)
	}
	if err == nil {
		err = s.becomeTemplate(ctx, m, row, setting, recipe, from)
	}
	if err != nil {
		s.discard(ctx, m.who, session)
	}
	return true, err
}

// standing looks for a template that is what the first steps make: done says how many they are, and one more with the start command.
func (s *server) standing(ctx context.Context, m *making, recipe builder.Recipe, from beginning) (done int, session string, err error) {
	all, err := s.templates(ctx, m.who, "")
	if err != nil {
		return 0, "", err
	}
	states := recipe.States(from.name)
	for i, state := range slices.Backward(states) {
		last := i == len(states)-1
		for _, t := range all {
			// One in which a start command runs stands for the same command alone.
			if b := t.record.Built; i > 0 && state != "" && b.State == state && (last || !b.Start) {
				return i, t.row.ID, nil
			}
		}
	}
	return 0, "", nil
}

// buildSession makes the session of a build: a new one, or a fork.
func (s *server) buildSession(ctx context.Context, m *making, of string, recipe builder.Recipe) (string, error) {
	r := record{Template: m.template, Name: m.name, Started: m.began}
	all, err := r.entries(kindBuild, nil)
	if err != nil {
		return "", err
	}
	n := hub.NewSession{Metadata: all, Root: s.Root, Memory: m.memory, CPUs: m.cpus, Idle: longestBuild}
	if n.Network, err = s.Hub.WidestNetwork(ctx, m.who); err != nil {
		return "", err
	}
	row := hub.Session{}
	if of != "" {
		row, err = s.Hub.ForkSession(ctx, m.who, of, forked(n))
	} else {
		if recipe.Fetched {
			m.say(builder.Said{At: time.Now().UTC(), Level: builder.Info, Text: "fetching the image " + recipe.Image + " where it is not there yet"})
			n.Image = recipe.Image
		}
		row, err = s.Hub.CreateSession(ctx, m.who, n)
	}
	if err != nil {
		return "", err
	}
	_, _, err = s.Hub.AddLink(ctx, m.who, hub.NewLink{Session: row.ID, Purpose: hub.LinkMachine, Code: s.token(row.ID)})
	if err != nil {
		s.discard(ctx, m.who, row.ID)
	}
	return row.ID, err
}

// becomeTemplate records that a session is a template, and takes the build's tags from those before.
func (s *server) becomeTemplate(ctx context.Context, m *making, row hub.Session, setting builder.Setting, recipe builder.Recipe, from beginning) error {
	r := record{
		Template: m.template, Name: m.name, Started: m.began, Env: setting.Env, User: setting.User, Dir: setting.Dir,
		Built: &built{Template: m.template, Build: m.id, State: recipe.Final(from.name), Start: recipe.Start != "", At: time.Now().UTC()},
	}
	all, err := r.entries(kindTemplate, row.Metadata)
	if err != nil {
		return err
	}
	if _, err = s.Hub.ChangeSession(ctx, m.who, row.ID, hub.SessionChange{Metadata: all}); err != nil {
		return err
	}
	return s.retag(ctx, m.who, template{row, r}, m.tags)
}

// ended records how a build went.
func (s *server) ended(ctx context.Context, m *making, err error) {
	now := time.Now().UTC()
	if err == nil {
		m.say(builder.Said{At: now, Level: builder.Info, Step: m.steps + 1, Text: fmt.Sprintf("the template %s is ready", m.name)})
		m.end(statusReady, nil)
		return
	}
	why := &reason{Log: []logged{}}
	if f, ok := errors.AsType[*builder.Fault](err); ok {
		why.Message, why.Step = f.Message, m.stepName(f.Step)
	} else if cause := context.Cause(ctx); cause != nil {
		why.Message = cause.Error()
	} else {
		s.Log.WarnContext(ctx, "a template could not be built", "template", m.template, "error", err)
		_, why.Message = said(err)
	}
	if len(why.Message) > longestFailed {
		why.Message = strings.ToValidUTF8(why.Message[:longestFailed], "") + "…"
	}
	m.say(builder.Said{At: now, Level: builder.Bad, Step: m.steps + 1, Text: "the build has failed: " + why.Message})
	m.end(statusError, why)
}

// sweepBuilds deletes sessions of builds that a server began which was stopped before their end.
func (s *server) sweepBuilds(ctx context.Context, who auth.Principal) {
	for row, err := range s.each(ctx, who, kindBuild, true) {
		if err != nil || time.Since(row.Created) < 2*longestBuild {
			return
		}
		s.discard(ctx, who, row.ID)
	}
}
