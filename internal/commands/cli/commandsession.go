package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"time"

	"cove/internal/commands/terminal"
	"cove/internal/core/config"
	"cove/internal/core/ident"
	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/python/kernel"
	"cove/internal/server/hub"
	"cove/internal/sessions/ondisk"
)

const (
	// closeTimeout bounds how long an ended command waits for its sandbox to go; what stays is swept by the next command.
	closeTimeout = 10 * time.Second
	// saveTimeout bounds the saving of a session, hurriedSave what is left of that after the second Ctrl-C.
	saveTimeout = 5 * time.Minute
	hurriedSave = 30 * time.Second
)

// commandSession is the session that a command works in, with the user's files in it, and the folder that receives what comes out.
type commandSession struct {
	hub.Live
	out   *outFolder
	warn  io.Writer // for notices; discards them with --quiet
	err   io.Writer
	live  *terminal.Live
	hub   *localHub             // records what runs; nil: nothing is recorded
	named *ondisk.LeasedSession // the same session when it is saved at the end, under the user's name or that of kept; nil: it is not
	own   bool                  // the user gave the name: when the session cannot be saved, the command fails
	kept  *keptSession          // saves the session for --continue; nil: nothing does
	ran   int                   // executions for questions
}

// prepare checks everything that can be checked before a sandbox is started.
func (p *Program) prepare(ctx context.Context, files fileFlags, network networkFlags) ([]input, *outFolder, error) {
	paths, err := p.downloads(ctx, files.File, network)
	if err != nil {
		return nil, nil, err
	}
	inputs, skipped, err := collect(paths, workspaceLimit())
	if err != nil {
		return nil, nil, err
	}
	p.tellSkipped(skipped)
	out, err := newOutFolder(files.Out, p.Config.Folders.Data, inputs, files.Force)
	return inputs, out, err
}

// tellSkipped says what was left out of folders.
func (p *Program) tellSkipped(skipped leftOut) {
	for _, link := range skipped.links {
		fmt.Fprintln(p.Err, "cove: "+lang.Text(oneLine(link)+" is a link inside a folder and was left out"))
	}
	if n := len(skipped.secrets); n > 0 {
		text := oneLine(strings.Join(skipped.secrets[:min(n, shownSecrets)], ", "))
		if n > shownSecrets {
			text += fmt.Sprintf(" and %d more", n-shownSecrets)
		}
		fmt.Fprintln(p.Err, "cove: "+lang.Text("left out, because secrets are in such files: "+text+"; -f with the path of one brings it"))
	}
}

// shownSecrets bounds the files that were left out and are told of by name.
const shownSecrets = 5

// opening says what session a command wants.
type opening struct {
	cfg     config.Config
	flags   sandboxFlags
	network networkFlags
	session sessionFlags
	command string       // shown to others who want the session at the same time
	hub     *localHub    // records what runs; nil: nothing is recorded
	kept    *keptSession // of the conversation; nil: there is no conversation, or its session is not kept
}

// open starts the session and puts the files in.
func (p *Program) open(ctx context.Context, o opening, inputs []input, out *outFolder) (*commandSession, error) {
	if err := errors.Join(possible(o.cfg), o.network.checkNetwork(p.Getenv)); err != nil {
		return nil, err // before anything starts
	}
	live := p.signs(o.flags.Quiet)
	live.Await(lang.Text("starting the sandbox"))
	defer live.Over()
	progress := p.Err
	if f, ok := p.Err.(*terminal.File); ok {
		progress = f.Telling()
	}
	if o.flags.Quiet {
		progress = io.Discard
	}
	if !o.cfg.Isolated() {
		fmt.Fprintln(p.Err, "cove: "+lang.Text("engine "+o.cfg.Sandbox.Engine+": there is no isolation, the code can do whatever you can do"))
	}
	out.live = live
	s := &commandSession{out: out, warn: p.Err, err: p.Err, live: live, hub: o.hub, own: o.session.Session != ""}
	if o.flags.Quiet {
		s.warn = io.Discard
	}
	if !s.own {
		s.kept = o.kept
	}
	err := s.start(ctx, p, o, lang.Lines(progress))
	if err == nil {
		err = put(ctx, s.Live, inputs, live)
	}
	if err == nil && s.hub != nil {
		err = s.hub.attach(ctx, s.attachment(o), s.Live)
	}
	switch {
	case err == nil:
		return s, nil
	case s.Live == nil: // it did not come to life, so there is nothing to end
		out.close()
		return nil, err
	}
	return nil, errors.Join(err, s.discard())
}

// start brings the session to life: the one with the user's name, or that of the conversation, or a new one.
func (s *commandSession) start(ctx context.Context, p *Program, o opening, progress io.Writer) (err error) {
	switch {
	case s.own:
		s.named, err = p.openNamed(ctx, o.session.Session, o, progress)
	case s.kept != nil && s.kept.there:
		s.named, err = p.openNamed(ctx, s.kept.id, o, progress)
		if err != nil && !problem.Is(err, problem.Canceled) && !problem.Has(err, problem.SessionInUse) {
			fmt.Fprintln(s.err, "cove: "+lang.Text("the conversation goes on without its variables and files, which cannot be restored: "+oneLine(spoken(err))))
			s.kept.id, s.kept.there, err = ident.New(ident.Session), false, nil
		}
	}
	if err != nil {
		return err
	}
	if s.named == nil {
		s.Live, err = p.Open(ctx, o.cfg, progress)
	} else {
		s.Live, err = hub.LiveOf(s.named)
		s.tell()
	}
	if err == nil {
		err = o.network.connect(ctx, s.Live, p.Getenv, s.err)
	}
	return err
}

// attachment is what the hub is told of the session.
func (s *commandSession) attachment(o opening) hub.Attachment {
	a := hub.Attachment{Name: o.session.Session, Packages: o.cfg.Packages.Set, Memory: int64(o.cfg.Sandbox.Memory), CPUs: o.cfg.Sandbox.CPUs}
	switch {
	case s.own:
		a.ID = s.named.ID()
	case s.kept != nil:
		a.ID = s.kept.id
	default:
		a.ID = ident.New(ident.Session)
	}
	return a
}

// tell passes on what a session with a name has to say.
func (s *commandSession) tell() {
	if s.named == nil {
		return
	}
	for _, text := range s.named.Notices() {
		fmt.Fprintln(s.warn, "cove: "+lang.Text(oneLine(text)))
	}
}

// discard ends a session in which nothing has happened yet that is worth keeping.
func (s *commandSession) discard() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	s.out.close()
	if s.hub != nil {
		_ = s.hub.detach(ctx, func() (hub.SessionState, string) { return hub.SessionPaused, "" })
	}
	if s.named != nil {
		return s.named.Discard(ctx)
	}
	_ = s.Close(ctx) // the next command sweeps what could not be removed
	return nil
}

// settle ends the session when the command's work is done, even when that was cut short. When a session with a name could not be saved, that is added to
// what the command ends with; when that of a conversation could not, it is said. Once hard has ended, settle hurries.
func (s *commandSession) settle(hard context.Context, code *int, err *error) {
	defer s.out.close()
	ctx, cancel := s.ending(hard)
	defer cancel()
	s.live.Await(lang.Text("saving the session"))
	if s.named == nil && s.kept == nil {
		s.live.Await(lang.Text("ending the sandbox"))
	}
	defer s.live.Over()
	closed := s.end(ctx, hard)
	s.tell()
	switch {
	case closed == nil || s.named == nil: // the next command sweeps what could not be removed of one that is not saved
	case !s.own:
		s.tellUnkept(closed)
	case *err == nil && *code != 0 && problem.Has(closed, problem.SessionLost):
		fmt.Fprintln(s.err, "cove: "+lang.Text(message(closed))) // the exit code says why it was lost
	case *err == nil:
		*err = closed
	case problem.Of(*err).Error() != problem.Of(closed).Error():
		*err = errors.Join(*err, closed)
	}
}

// end ends the use of the session and closes it, which saves one that is kept.
func (s *commandSession) end(ctx, hard context.Context) (closed error) {
	over := func() (hub.SessionState, string) {
		if s.named == nil && s.kept != nil && s.ran > 0 {
			var err error = problem.New(problem.GivenUp, "the command was stopped before they were saved")
			if hard.Err() == nil {
				s.named, err = s.kept.adopt(ctx, s.Live, s.ran)
			}
			if err != nil {
				s.tellUnkept(err)
			}
		}
		if s.named == nil {
			closed = s.Close(ctx)
			return hub.SessionDeleted, ""
		}
		closed = s.named.Close(ctx)
		return closedAs(closed)
	}
	if s.hub == nil {
		over()
		return closed
	}
	if err := s.hub.detach(ctx, over); err != nil && problem.Of(err).Kind != problem.NotFound {
		fmt.Fprintln(s.warn, "cove: "+lang.Text("the history does not say how the session ended: "+oneLine(spoken(err))))
	}
	if s.kept != nil {
		s.kept.tidy()
	}
	return closed
}

// tellUnkept says that the next command cannot go on with the session of the conversation as it is now, also with --quiet. The command has not failed.
func (s *commandSession) tellUnkept(err error) {
	fmt.Fprintln(s.err, "cove: "+lang.Text("the variables and files are not kept for --continue: "+oneLine(spoken(err))))
}

// ending is the context for ending the session.
func (s *commandSession) ending(hard context.Context) (context.Context, context.CancelFunc) {
	if s.named == nil && s.kept == nil {
		return context.WithTimeout(context.Background(), closeTimeout)
	}
	ctx, cancel := context.WithTimeout(context.Background(), saveTimeout)
	stop := context.AfterFunc(hard, func() {
		timer := time.AfterFunc(hurriedSave, cancel)
		context.AfterFunc(ctx, func() { timer.Stop() })
	})
	return ctx, func() { stop(); cancel() }
}

// unsaved says that err is about a session that was not saved, which nobody may miss.
func unsaved(err error) bool {
	for _, one := range flatten(err) {
		if problem.Has(one, problem.SessionUnsaved) || problem.Has(one, problem.SessionLost) {
			return true
		}
	}
	return false
}

// killed closes the session as soon as hard ends, which makes a running execution end too. A session with a name waits
// for the execution, which was asked to stop before, and is saved.
func (s *commandSession) killed(hard context.Context) (stop func() bool) {
	said := make(chan struct{})
	before := context.AfterFunc(hard, func() {
		atMost := closeTimeout
		if s.own {
			atMost = hurriedSave
			notef(s.warn, "saving session %s", s.named.Name())
		}
		close(said)
		ctx, cancel := context.WithTimeout(context.Background(), atMost)
		defer cancel()
		_ = s.Close(ctx) // settle hears of it again
	})
	return func() bool {
		if before() {
			return true
		}
		<-said
		return false
	}
}

// Execute runs code in the session, and records that where the command does.
func (s *commandSession) Execute(ctx context.Context, req kernel.Request) iter.Seq2[kernel.Event, error] {
	if s.hub == nil {
		return s.Live.Execute(ctx, req)
	}
	return s.hub.execute(ctx, req)
}

// direct runs code in the session without a record.
func (s *commandSession) direct() runner { return unrecorded{s} }

type unrecorded struct{ *commandSession }

func (u unrecorded) Execute(ctx context.Context, req kernel.Request) iter.Seq2[kernel.Event, error] {
	return u.Live.Execute(ctx, req)
}

// plotly is the text of plotly.js, or "".
func (p *Program) plotly(cfg config.Config) func() string {
	return func() string {
		if p.PlotlyScript == nil {
			return ""
		}
		text, err := os.ReadFile(p.PlotlyScript(cfg))
		if err != nil {
			return ""
		}
		return string(text)
	}
}
