package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"time"

	"cove/internal/config"
	"cove/internal/hub"
	"cove/internal/ident"
	"cove/internal/kernel"
	"cove/internal/named"
	"cove/internal/problem"
)

const (
	// closeTimeout bounds how long an ended command waits for its sandbox to go; what stays is swept by the next command.
	closeTimeout = 10 * time.Second
	// saveTimeout bounds the saving of a session, hurriedSave what is left of that after the second Ctrl-C.
	saveTimeout = 5 * time.Minute
	hurriedSave = 30 * time.Second
)

// fileFlags are the flags of every command that works with files.
type fileFlags struct {
	File []string `short:"f" sep:"none" placeholder:"PATH" help:"Put this file or folder into the workspace. Repeatable."`
	Out  string   `short:"o" default:"${out}" placeholder:"DIR" help:"Folder for figures and for files that the code makes or changes; made when needed, files of the same name from earlier runs are replaced (default: ${out})."`
}

// sandboxFlags are the flags of every command that starts a sandbox. A nil or empty one was not given.
type sandboxFlags struct {
	Timeout   config.Duration `default:"${timeout}" placeholder:"TIME" help:"Wall clock of one execution; 0 means none (default: ${timeout})."`
	Memory    *config.Size    `placeholder:"SIZE" help:"Memory of the sandbox (default: ${memory})."`
	CPUs      *float64        `name:"cpus" placeholder:"N" help:"Processor cores of the sandbox (default: ${cpus})."`
	MaxOutput config.Size     `default:"${max_output}" placeholder:"SIZE" help:"Bytes of output that one execution may deliver (default: ${max_output})."`
	Packages  string          `placeholder:"SET" help:"Python environment: standard or minimal (default: ${packages})."`
	Engine    string          `default:"${engine}" placeholder:"NAME" help:"gvisor, or local, which isolates nothing (default: ${engine})."`
	Quiet     bool            `short:"q" help:"Say nothing but what the code or the answer says."`
}

// config is the settings with the command line's on top.
func (f sandboxFlags) config(p *Program) (config.Config, error) {
	if p.ConfigErr != nil {
		return config.Config{}, p.ConfigErr
	}
	c := p.Config
	c.Sandbox.Timeout, c.Sandbox.MaxOutput, c.Sandbox.Engine = f.Timeout, f.MaxOutput, f.Engine
	if f.Memory != nil {
		c.Sandbox.Memory = *f.Memory
	}
	if f.CPUs != nil {
		c.Sandbox.CPUs = *f.CPUs
	}
	if f.Packages != "" {
		c.Packages.Set = f.Packages
	}
	return c, c.Validate()
}

// bench is a session with the user's files in it, and the folder that receives what comes out.
type bench struct {
	hub.Live
	out   *outFolder
	named *named.LeasedSession // the same session when it is kept under a name, or nil
	warn  io.Writer            // where notices go
	err   io.Writer

	hub  *localHub                                               // where what runs is recorded; nil: nowhere
	own  bool                                                    // the user gave the name: that the session is not saved is a failure
	keep func(ctx context.Context) (*named.LeasedSession, error) // gives it a name, so that the conversation can go on with it; nil: it is not kept
	ran  int                                                     // executions of questions
	tidy func()                                                  // removes what is kept of older conversations
}

// prepare checks everything that can be checked before a sandbox is started.
func (p *Program) prepare(files fileFlags) ([]input, *outFolder, error) {
	inputs, skipped, err := collect(files.File, workspaceLimit())
	if err != nil {
		return nil, nil, err
	}
	for _, link := range skipped {
		fmt.Fprintln(p.Err, "cove: "+oneLine(link)+" is a link inside a folder and was left out")
	}
	out, err := newOutFolder(files.Out, inputs)
	return inputs, out, err
}

// opening says what session a command wants.
type opening struct {
	cfg     config.Config
	flags   sandboxFlags
	session sessionFlags
	command string    // what others are told who want the session meanwhile
	hub     *localHub // where what runs is recorded; nil: nowhere
	kept    string    // the id of a conversation's session, under which it is kept; "": it is not
	goesOn  bool      // there is one
}

// open starts the session and puts the files in.
func (p *Program) open(ctx context.Context, o opening, inputs []input, out *outFolder) (*bench, error) {
	progress := p.Err
	if o.flags.Quiet {
		progress = io.Discard
	}
	if !o.cfg.Isolated() {
		fmt.Fprintln(p.Err, "cove: engine "+o.cfg.Sandbox.Engine+": there is no isolation, the code can do whatever you can do")
	}
	b := &bench{out: out, warn: progress, err: p.Err, hub: o.hub, own: o.session.Session != "", tidy: func() {}}
	err := b.start(ctx, p, &o, progress)
	if err == nil {
		err = put(ctx, b.Live, inputs)
	}
	if err == nil && b.hub != nil {
		err = b.hub.attach(ctx, b.attachment(o), b.Live)
	}
	if err != nil && b.Live != nil {
		return nil, errors.Join(err, b.discard())
	}
	return b, err
}

// start brings the session to life: the one with the name, or that of the conversation, or a new one.
func (b *bench) start(ctx context.Context, p *Program, o *opening, progress io.Writer) (err error) {
	name := o.session.Session
	if o.goesOn && name == "" {
		name = o.kept
	}
	if name != "" {
		b.named, err = p.openNamed(ctx, name, *o, progress)
		if err != nil && !b.own && problem.Of(err).Kind != problem.Canceled && !problem.Has(err, problem.SessionInUse) {
			fmt.Fprintln(b.err, "cove: variables and files begin anew, because those of the conversation cannot be brought back: "+oneLine(message(err)))
			name, o.kept = "", ident.New(ident.Session)
		} else if err != nil {
			return err
		}
	}
	if name != "" {
		b.Live, err = hub.LiveOf(b.named)
		b.tell()
	} else {
		b.Live, err = p.Open(ctx, o.cfg, progress)
	}
	b.keeping(p, *o)
	return err
}

// keeping has a conversation's session kept where that can be and is wanted.
func (b *bench) keeping(p *Program, o opening) {
	if o.kept == "" || b.own || !o.cfg.Saves() || !o.cfg.Store.History || o.cfg.Session.Conversations == 0 || p.Prepare == nil {
		return
	}
	store := p.store(o.cfg)
	b.tidy = func() { tidyKept(store, o.kept, o.cfg.Session.Conversations) }
	b.keep = func(ctx context.Context) (*named.LeasedSession, error) {
		return store.Adopt(ctx, o.kept, p.namedOptions(o.kept, o, io.Discard), b.Live, b.ran)
	}
}

// attachment is what the hub is told of the session.
func (b *bench) attachment(o opening) hub.Attachment {
	a := hub.Attachment{ID: o.kept, Name: o.session.Session, Packages: o.cfg.Packages.Set, Memory: int64(o.cfg.Sandbox.Memory), CPUs: o.cfg.Sandbox.CPUs}
	if b.own {
		a.ID = b.named.ID()
	}
	return a
}

// tell passes on what a session with a name has to say.
func (b *bench) tell() {
	if b.named == nil {
		return
	}
	for _, text := range b.named.Notices() {
		fmt.Fprintln(b.warn, "cove: "+oneLine(text))
	}
}

// discard ends a session in which nothing has happened yet that is worth keeping.
func (b *bench) discard() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	b.out.close()
	if b.hub != nil {
		_ = b.hub.detach(ctx, func() (hub.SessionState, string) { return hub.SessionPaused, "" })
	}
	if b.named != nil {
		return b.named.Discard(ctx)
	}
	_ = b.Close(ctx) // the next command sweeps what could not be removed
	return nil
}

// settle ends the session when the command's work is done, even when that was cut short, and adds to what the command ends
// with when a session with a name could not be saved. Once hard has ended it hurries.
func (b *bench) settle(hard context.Context, code *int, err *error) {
	defer b.out.close()
	ctx, cancel := b.ending(hard)
	defer cancel()
	closed := b.end(ctx, hard)
	b.tell()
	if !b.own || closed == nil {
		return // of a session without a name, the next command sweeps what could not be removed
	}
	switch {
	case *err == nil && *code != 0 && problem.Has(closed, problem.SessionLost):
		fmt.Fprintln(b.err, "cove: "+message(closed)) // the exit code says why it was lost
	case *err == nil:
		*err = closed
	case problem.Of(*err).Error() != problem.Of(closed).Error():
		*err = errors.Join(*err, closed)
	}
}

// end gives the session back and closes it, which saves one that is kept.
func (b *bench) end(ctx, hard context.Context) (closed error) {
	over := func() (hub.SessionState, string) {
		if b.named != nil {
			closed = b.Close(ctx)
			return unfinished(closed)
		}
		if b.keep != nil && b.ran > 0 && hard.Err() == nil && b.keepNow(ctx) {
			return hub.SessionPaused, ""
		}
		closed = b.Close(ctx)
		return hub.SessionDeleted, ""
	}
	if b.hub == nil {
		over()
		return closed
	}
	if err := b.hub.detach(ctx, over); err != nil && problem.Of(err).Kind != problem.NotFound {
		fmt.Fprintln(b.warn, "cove: the history does not say how the session ended: "+oneLine(message(err)))
	}
	b.tidy()
	return closed
}

// keepNow saves a session for those who go on with its conversation. That it cannot be is no failure of the command.
func (b *bench) keepNow(ctx context.Context) bool {
	s, err := b.keep(ctx)
	if err == nil {
		b.named = s
		err = s.Close(ctx)
	}
	if err != nil {
		fmt.Fprintln(b.warn, "cove: the variables and files are not kept for --continue: "+oneLine(message(err)))
	}
	return err == nil
}

// ending is the context for ending the session.
func (b *bench) ending(hard context.Context) (context.Context, context.CancelFunc) {
	if b.named == nil && b.keep == nil {
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
		if code := problem.Of(one).Code; code == "session_unsaved" || code == "session_lost" {
			return true
		}
	}
	return false
}

// killed closes the session as soon as hard ends, which makes a running execution end too. A session with a name waits
// for the execution, which was asked to stop before, and is saved.
func (b *bench) killed(hard context.Context) (stop func() bool) {
	said := make(chan struct{})
	before := context.AfterFunc(hard, func() {
		atMost := closeTimeout
		if b.own {
			atMost = hurriedSave
			fmt.Fprintf(b.warn, "cove: saving session %s\n", b.named.Name())
		}
		close(said)
		ctx, cancel := context.WithTimeout(context.Background(), atMost)
		defer cancel()
		_ = b.Close(ctx) // settle hears of it again
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
func (b *bench) Execute(ctx context.Context, req kernel.Request) iter.Seq2[kernel.Event, error] {
	if b.hub == nil {
		return b.Live.Execute(ctx, req)
	}
	return b.hub.execute(ctx, req)
}

// tidyKept removes the sessions of conversations that were not used for longest, all but so many. now is the one that is used.
func tidyKept(store named.Store, now string, most int) {
	all, err := store.List() // the one used last first
	if err != nil {
		return
	}
	n := 0
	for _, s := range all {
		if !ident.Valid(ident.Session, s.Name) {
			continue
		}
		if n++; s.Name == now || s.State == named.Running {
			continue
		}
		if n > most || s.Head.Snapshot == "" {
			ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
			_ = store.Remove(ctx, s.Name, "cove ask") // the next command tries again
			cancel()
		}
	}
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
