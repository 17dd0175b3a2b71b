package turns

import (
	"cmp"
	"context"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/http/bodybudget"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/python/kernel"
	"cove/internal/server/auth"
	"cove/internal/server/hub/live"
	"cove/internal/server/hub/record"
	"cove/internal/server/stream"
)

// StartTurn begins a turn, which goes on whether or not a client follows. Needs auth.ConversationsWrite, auth.SessionsExecute unless NoPython, and
// auth.FilesRead with Files. Problems: turn_running when the conversation has an unfinished turn, turn_invalid, quota_tokens, quota_cpu, draining, and those of
// the model, of a session that has to be made, and of loop.Check.
func (r *Runner) StartTurn(ctx context.Context, who auth.Principal, n record.NewTurn) (record.Turn, error) {
	var t record.Turn
	id, again, err := "", false, mayStart(who, n)
	if err == nil {
		var request string
		if request, err = n.Fingerprint(); err == nil {
			id, again, err = r.work.RunOnce(ctx, who, "turn.start", n.Once, request, func() (string, error) {
				t, err = r.startTurn(ctx, who, n)
				return t.ID, err
			})
		}
	}
	if again && err == nil {
		return r.findTurn(ctx, who.Project, id)
	}
	r.work.WriteAudit(ctx, who, "turn.start", cmp.Or(t.ID, n.Conversation), t.Model, err)
	return t, err
}

func mayStart(who auth.Principal, n record.NewTurn) error {
	needs := []auth.Action{auth.ConversationsWrite}
	if !n.NoPython {
		needs = append(needs, auth.SessionsExecute)
	}
	if len(n.Files) > 0 {
		needs = append(needs, auth.FilesRead)
	}
	for _, a := range needs {
		if err := who.Require(a); err != nil {
			return err
		}
	}
	return nil
}

// mostFiles bounds the files that a turn brings.
const mostFiles = 100

// plan is a turn that is about to begin, with all that it needs.
type plan struct {
	who     auth.Principal
	turn    record.Turn
	model   model.Model
	spec    loop.Turn
	files   []string
	names   map[string]string // see NewTurn.Names
	notices []string
	made    bool   // the conversation was made for this turn
	session string // that was made for it, or ""
	events  *stream.Writer
	work    context.Context
	end     func()
	over    func(error)                  // ends the turn's span
	hear    func(record.TurnEvent) error // see RunTurn; nil: nobody does
	asks    bool                         // each program waits for the user's word
	alone   bool                         // see NewTurn.Unattended
	looks   bool                         // each program is looked at, see NewTurn.Check
	unheard bool                         // see NewTurn.Unnoticed
	lost    *kernel.Rollback             // what the session has lost, where the first code is to tell it
	decide  func(ctx context.Context, step int) (loop.Decision, error)
	offer   *live.Offer   // what code may call; nil: nothing
	resumed *resumption   // nil: no code goes on
	tries   *record.Tries // nil: one
	forks   []record.Turn // the tries whose sessions are removed when the turn's end is recorded
	used    model.Usage   // of the tries and the vote, as the cost
	cost    model.Cost
	queued  *record.Question // that this turn is; nil: it comes from a client
	// untitled says that the title of the conversation, which is of the page, is the prompt's first words.
	untitled bool
}

func (r *Runner) startTurn(ctx context.Context, who auth.Principal, n record.NewTurn) (record.Turn, error) {
	p, err := r.planTurn(ctx, who, n)
	if err != nil {
		return record.Turn{}, err
	}
	started := p.turn
	running := r.beginTurn(p)
	r.work.RunInBackground(func(context.Context) { _, _, _ = r.runTurn(p, running) })
	return started, nil
}

// planTurn makes and records all that a turn needs. runTurn releases it at the turn's end.
func (r *Runner) planTurn(ctx context.Context, who auth.Principal, n record.NewTurn) (_ *plan, err error) {
	p := &plan{who: who, files: n.Files, names: n.Names, looks: n.Check, alone: n.Unattended, unheard: n.Unnoticed, decide: n.Decide, queued: n.Queued, tries: n.Tries}
	if err := n.Tries.Validate(n); err != nil {
		return nil, err
	}
	if p.resumed, err = r.planResumption(ctx, who, &n); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil && p.resumed != nil {
			p.resumed.unclaim()
		}
	}()
	if err := r.planModel(ctx, p, n); err != nil {
		return nil, err
	}
	work, ended, err := r.live.BeginWork(ctx)
	if err != nil {
		return nil, err
	}
	release := bodybudget.Hold(ctx) // the client's input, and the conversation so far, is in memory until the turn ends
	end := func() {
		ended()
		release()
	}
	p.work, p.end = work, end
	conversation, parent, err := r.planConversation(ctx, p, n)
	if err != nil {
		end()
		return nil, err
	}
	if !r.reserveTurn(ctx, p, conversation.ID) {
		end()
		return nil, ErrTurnRunning()
	}
	p.events = r.live.Streams.Open(p.turn.ID) // a client that finds the turn as soon as it is recorded can follow it
	if err := r.prepareTurn(ctx, p, n, conversation, parent); err != nil {
		p.events.Close()
		r.table.free(conversation.ID)
		r.work.RunInBackground(func(ctx context.Context) { r.undoTurn(ctx, p) })
		end()
		return nil, err
	}
	return p, nil
}

// reserveTurn says whether a conversation is free for a turn. The end of another one may be in the store, where its client has seen it, and this process about to note it.
func (r *Runner) reserveTurn(ctx context.Context, p *plan, conversation string) bool {
	running, ok := r.table.reserve(conversation, p.turn.ID)
	if ok || running == nil {
		return ok
	}
	if t, err := r.work.Store.Turn(ctx, p.who.Project, running.id); err != nil || !t.State.Final() {
		return false
	}
	select {
	case <-running.ended:
	case <-ctx.Done():
		return false
	}
	_, ok = r.table.reserve(conversation, p.turn.ID)
	return ok
}

// prepareTurn makes what the turn needs, and records the turn. No other turn can begin in its conversation meanwhile.
func (r *Runner) prepareTurn(ctx context.Context, p *plan, n record.NewTurn, c record.Conversation, parent record.Turn) error {
	if !p.made {
		size, err := r.chargeRecall(ctx, p.who.Project, c.ID, "")
		if err == nil && size > largestConversation {
			err = problem.New(problem.ConversationTooLarge, "the conversation is too large for another turn").
				WithHint("begin a new conversation, and send pictures and data as files")
		}
		if err != nil {
			return err
		}
	}
	if n.Parent == "" && !n.First && len(n.History) == 0 && !p.made {
		var err error
		if parent, err = r.lastTurn(ctx, c); err != nil {
			return err
		}
		p.turn.Parent = parent.ID
	}
	if n.Queued != nil && (n.Tries == nil || n.Tries.Again == "") {
		if parent.State == record.TurnWaiting {
			return ErrTurnRunning() // its results come as the next turn
		}
		after, _, err := r.sessionAfter(ctx, c, parent)
		if err != nil {
			return err
		}
		if n.Session = parent.Session; n.Session == after || parent.UndoneTo() != nil {
			n.Session = "" // a new one where that was deleted
		}
	}
	if p.turn.Parent != "" {
		before, err := r.work.Store.TurnHistory(ctx, p.who.Project, p.turn.Parent)
		if err != nil {
			return err
		}
		p.spec.History = append(p.spec.History, before...)
	}
	if err := r.planSession(ctx, p, n, c, parent); err != nil {
		return err
	}
	if p.resumed == nil {
		if err := r.checkResults(c, p.spec.History, n.Input); err != nil {
			return err
		}
		r.live.StopWaitingCode(c.ID, "the conversation went on without the results that the code waited for")
	}
	return r.recordTurn(ctx, p, c)
}

// planModel opens the model, and checks all that can be checked before anything is made.
func (r *Runner) planModel(ctx context.Context, p *plan, n record.NewTurn) error {
	if len(n.History) > 0 && n.Parent != "" {
		return problem.New(problem.TurnInvalid, "a turn goes on from another one or from a history, not from both")
	}
	if n.First && n.Parent != "" {
		return problem.New(problem.TurnInvalid, "a first turn goes on from no other one").WithHint("leave first or parent out")
	}
	if err := r.meter.MayAsk(ctx, p.who.Project, p.who.Key); err != nil {
		return err
	}
	if !n.NoPython {
		if err := r.meter.MayRun(ctx, p.who.Project, p.who.Key); err != nil {
			return err
		}
	}
	if len(n.Files) > mostFiles {
		return problem.New(problem.TurnInvalid, "a turn brings at most 100 files").WithHint("put further files into the session first")
	}
	var files []record.TurnFile
	for _, id := range n.Files {
		f, err := r.library.FindFile(ctx, p.who, id)
		if err != nil {
			return err
		}
		files = append(files, record.TurnFile{ID: f.ID, Name: f.Name, Size: f.Size})
	}
	instructions, err := r.turnInstructions(ctx, p.who, n)
	if err != nil {
		return err
	}
	m, err := r.openModel(ctx, n.Model)
	if err != nil {
		return err
	}
	p.model = m
	p.spec = loop.Turn{
		History: withoutCallsOfCode(n.History), Input: n.Input, Instructions: instructions, Python: !n.NoPython, Tools: n.Tools, Choice: n.Choice, Parallel: n.Parallel,
		Context: r.about(m.Name()).Context, OfferedGlobals: n.CodeGlobals,
		Kernels: n.Kernels, Look: n.Look, MaxCalls: n.MaxCalls, MaxTokens: n.MaxTokens, Temperature: n.Temperature, TopP: n.TopP, Format: n.Format, Effort: n.Effort, Stop: n.Stop, Extra: n.Extra,
	}
	if p.resumed != nil {
		p.spec.Suspended = p.resumed.suspended
	}
	if err := r.planTools(ctx, p, n); err != nil {
		return err
	}
	if err := loop.Check(m, p.spec); err != nil {
		return err
	}
	prompt := cmp.Or(n.Prompt, wordsOf(n.Input))
	p.turn = record.Turn{
		ID: ident.New(ident.Turn), Project: p.who.Project, User: p.who.User, Key: p.who.Key, Parent: n.Parent, State: record.TurnRunning, Model: m.Name(),
		Prompt: prompt, Created: r.work.Now(), Foreign: n.Foreign, Hidden: n.Hidden, Owner: r.work.OwnerID(), Files: files,
	}
	if n.Queued != nil {
		p.turn.Taken = record.Taken{ID: n.Queued.ID, Changed: n.Queued.Changed}
	}
	return r.planTries(ctx, p, n)
}

// planConversation finds the conversation and the turn to go on from, or makes up a conversation.
func (r *Runner) planConversation(ctx context.Context, p *plan, n record.NewTurn) (record.Conversation, record.Turn, error) {
	var parent record.Turn
	if n.Parent != "" {
		var err error
		if parent, err = r.findTurn(ctx, p.who.Project, n.Parent); err != nil {
			return record.Conversation{}, record.Turn{}, err
		}
		switch {
		case n.Conversation != "" && n.Conversation != parent.Conversation:
			if _, err := r.work.Store.Conversation(ctx, p.who.Project, n.Conversation); err != nil {
				return record.Conversation{}, record.Turn{}, err
			}
			return record.Conversation{}, record.Turn{}, problem.New(problem.TurnInvalid, "the parent turn belongs to another conversation")
		case !parent.State.Final():
			return record.Conversation{}, record.Turn{}, ErrTurnRunning()
		case parent.Hidden:
			return record.Conversation{}, record.Turn{}, problem.New(problem.TurnNotFound, "the parent turn was not stored").
				WithHint("store the turns that later turns go on from")
		}
		n.Conversation = parent.Conversation
	}
	if n.Conversation == "" {
		p.made = true
		c := record.Conversation{
			ID: ident.New(ident.Conversation), Project: p.who.Project, User: p.who.User, Created: p.turn.Created, Used: p.turn.Created, Source: n.Source,
			Approval: n.Approval,
		}
		if p.asks = c.Approval == record.ApprovalAlways; p.asks && p.tries != nil {
			return record.Conversation{}, record.Turn{}, record.ErrTriesAsk()
		}
		if !n.Hidden {
			c.Title = TitleOf(p.turn.Prompt)
			p.untitled = c.Source == sourceWeb
		}
		p.turn.Conversation = c.ID
		return c, record.Turn{}, c.Check()
	}
	c, err := r.work.Store.Conversation(ctx, p.who.Project, n.Conversation)
	if err != nil {
		return record.Conversation{}, record.Turn{}, err
	}
	if n.Approval != record.ApprovalNever && n.Approval != c.Approval {
		return record.Conversation{}, record.Turn{}, problem.New(problem.TurnInvalid, "the conversation runs code without approval").
			WithHint("change the conversation first, or begin another one")
	}
	if p.turn.Conversation, p.asks = c.ID, c.Approval == record.ApprovalAlways; p.asks && p.tries != nil {
		return record.Conversation{}, record.Turn{}, record.ErrTriesAsk()
	}
	if p.asks && n.Heard && !n.NoPython {
		return record.Conversation{}, record.Turn{}, problem.New(problem.TurnInvalid, "the conversation's code waits for approval, which takes a server").
			WithHint("go on in it through the server that it belongs to, or change its approval there")
	}
	return c, parent, nil
}

// lastTurn returns the newest turn of a conversation from which another turn can go on, if there is one.
func (r *Runner) lastTurn(ctx context.Context, c record.Conversation) (record.Turn, error) {
	page := record.Page{Limit: 10}
	for {
		turns, err := r.work.Store.Turns(ctx, c.Project, c.ID, page)
		if err != nil {
			return record.Turn{}, err
		}
		for _, t := range turns.Items {
			if !t.Hidden && !t.IsTry() {
				return t, nil
			}
		}
		if page.After = turns.Next; page.After == "" {
			return record.Turn{}, nil
		}
	}
}

func sessionThere() error {
	return problem.New(problem.TurnInvalid, "the session is there already, with the network and the root that it was made with").WithHint("leave network and root out, or begin another conversation")
}

// planSession finds the session whose Python is used, or makes one.
func (r *Runner) planSession(ctx context.Context, p *plan, n record.NewTurn, c record.Conversation, parent record.Turn) error {
	if n.NoPython && n.Session == "" && len(n.Files) == 0 {
		return nil
	}
	id, marked := n.Session, record.Turn{}
	if id == "" {
		var err error
		if id, marked, err = r.sessionAfter(ctx, c, parent); err != nil {
			return err
		}
	}
	if id != "" {
		row, err := r.live.FindSession(ctx, p.who, id)
		switch {
		case err == nil && (n.Network != nil || n.Root):
			return sessionThere()
		case err == nil:
			if _, err := r.work.CheckHere(ctx, row); err != nil {
				return err
			}
			p.turn.Session = id
			if row.State == record.SessionLost && row.Rollback == nil {
				p.notices = append(p.notices, "The session was lost ("+cmp.Or(row.Reason, "its sandbox died")+"); it goes on from its last saved state.")
			}
			p.spec.Fresh = parent.Session != "" && parent.Session != id
			p.spec.Used = row.Executions > 0
			return nil
		case n.Session != "" || problem.Of(err).Kind != problem.NotFound:
			return err
		}
		if marked.ID != "" {
			return r.replaceUndone(ctx, p, n, marked)
		}
		p.notices = append(p.notices, "The session of this conversation was deleted; the turn has a new one.")
		p.spec.Fresh = true
	}
	who := p.who
	who.Scopes = nil // a caller with the right to the turn may make what the turn needs
	row, err := r.live.CreateSession(live.AsWork(ctx), who, live.NewSession{Network: n.Network, Root: n.Root})
	if err != nil {
		return err
	}
	p.turn.Session, p.session = row.ID, row.ID
	if p.made || c.Session == "" {
		return nil // AddTurn binds the session to the conversation
	}
	_, err = r.work.Store.UpdateConversation(ctx, c.Project, c.ID, func(row *record.Conversation) error {
		if row.Session == c.Session {
			row.Session = p.turn.Session
		}
		return nil
	})
	return err
}

// recordTurn writes the turn, and its conversation if that is new.
func (r *Runner) recordTurn(ctx context.Context, p *plan, c record.Conversation) error {
	if p.made {
		if err := r.work.Store.AddConversation(ctx, c); err != nil {
			return err
		}
	} else if c.Title == "" && !p.turn.Hidden {
		if _, err := r.work.Store.UpdateConversation(ctx, c.Project, c.ID, func(row *record.Conversation) error {
			p.untitled = row.Title == "" && row.Source == sourceWeb
			row.Title = cmp.Or(row.Title, TitleOf(p.turn.Prompt))
			return nil
		}); err != nil {
			return err
		}
	}
	return r.work.Store.AddTurn(ctx, p.turn.AsStored())
}

// undoTurn removes what was made for a turn that could not begin, including records that the store has despite its error.
func (r *Runner) undoTurn(ctx context.Context, p *plan) {
	undo := func(what string, remove func(ctx context.Context) error) {
		err := r.work.WriteUntilStored(ctx, remove)
		if err != nil && problem.Of(err).Kind != problem.NotFound {
			r.work.Log.WarnContext(ctx, "the remains of a turn that could not begin were not removed", "what", what, "error", err)
		}
	}
	if p.session != "" {
		undo(p.session, func(ctx context.Context) error { return r.live.DeleteSessionRow(ctx, p.turn.Project, p.session) })
	}
	if p.made {
		undo(p.turn.Conversation, func(ctx context.Context) error {
			return r.work.Store.DeleteConversation(ctx, p.turn.Project, p.turn.Conversation)
		})
		return
	}
	undo(p.turn.ID, func(ctx context.Context) error {
		if p.queued != nil {
			return r.work.Store.UndoTurn(ctx, p.turn, *p.queued)
		}
		return r.work.Store.DeleteTurn(ctx, p.turn.Project, p.turn.ID)
	})
}
