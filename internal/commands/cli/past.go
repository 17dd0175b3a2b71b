package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"cove/internal/core/config"
	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/http/api"
	"cove/internal/llm/loop"
	"cove/internal/python/notebook"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/server/transcript"
)

// maxEvents is how many events of one turn are shown.
const maxEvents = 200_000

// past is what was done before, on this machine or on a server.
type past interface {
	records
	recordings
	// Search yields the places that have all words of query, the newest first.
	Search(ctx context.Context, query string) iter.Seq2[hub.Found, error]
	// Delete removes a conversation with its turns and executions.
	Delete(ctx context.Context, conversation string) error
	close() error
}

// records are what there is to be found.
type records interface {
	// Conversations yields them, the one used last first.
	Conversations(ctx context.Context) iter.Seq2[hub.Conversation, error]
	Conversation(ctx context.Context, id string) (hub.Conversation, error)
	Turn(ctx context.Context, id string) (hub.Turn, error)
	// Turns returns all turns of a conversation, the oldest first.
	Turns(ctx context.Context, conversation string) ([]hub.Turn, error)
	// NewestTurn returns the turn of a conversation that was made last, which may be a try, and false where there is none.
	NewestTurn(ctx context.Context, conversation string) (hub.Turn, bool, error)
	Execution(ctx context.Context, id string) (hub.Execution, error)
	// Rated yields the answers that people have rated, the newest first.
	Rated(ctx context.Context) iter.Seq2[api.RatedTurn, error]
}

// recordings are what was emitted.
type recordings interface {
	// TurnEvents returns what a turn emitted; of one that runs it may be nothing yet.
	TurnEvents(ctx context.Context, t hub.Turn) ([]loop.Event, error)
	// ExecutionEvents returns what an execution emitted, as TurnEvents does.
	ExecutionEvents(ctx context.Context, x hub.Execution) ([]hub.Event, error)
}

// past opens the history that the settings and the flags name.
func (p *Program) past(ctx context.Context, f serverFlags) (past, error) {
	if p.ConfigErr != nil {
		return nil, p.ConfigErr
	}
	base, key, err := f.remote(p.Config)
	if err != nil {
		return nil, err
	}
	if base != "" {
		return p.remotePast(base, key)
	}
	return p.localPast(ctx, p.Config)
}

func (p *Program) localPast(ctx context.Context, c config.Config) (past, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	records, err := p.Records(ctx, c, RecordsOptions{Command: "cove history", Reads: true})
	if err != nil {
		return nil, err
	}
	return localPast{records}, nil
}

// localPast is the history of this machine.
type localPast struct{ *Records }

func (l localPast) close() error { return l.Close() }

// Delete implements past.
func (l localPast) Delete(ctx context.Context, conversation string) error {
	return l.Hub.DeleteConversation(ctx, auth.Local(), conversation)
}

// Conversations implements past.
func (l localPast) Conversations(ctx context.Context) iter.Seq2[hub.Conversation, error] {
	return paging(false, func(p hub.Page) (hub.Listing[hub.Conversation], error) {
		return l.Hub.Conversations(ctx, auth.Local(), hub.ConversationFilter{}, p)
	})
}

func (l localPast) Conversation(ctx context.Context, id string) (hub.Conversation, error) {
	return l.Hub.Conversation(ctx, auth.Local(), id)
}

func (l localPast) Turn(ctx context.Context, id string) (hub.Turn, error) {
	return l.Hub.Turn(ctx, auth.Local(), id)
}

func (l localPast) Turns(ctx context.Context, conversation string) ([]hub.Turn, error) {
	return collected(paging(true, func(p hub.Page) (hub.Listing[hub.Turn], error) {
		return l.Hub.Turns(ctx, auth.Local(), conversation, p)
	}))
}

// NewestTurn implements records.
func (l localPast) NewestTurn(ctx context.Context, conversation string) (hub.Turn, bool, error) {
	turns, err := l.Hub.Turns(ctx, auth.Local(), conversation, hub.Page{Limit: 1})
	if err != nil || len(turns.Items) == 0 {
		return hub.Turn{}, false, err
	}
	return turns.Items[0], true, nil
}

// Rated implements past.
func (l localPast) Rated(ctx context.Context) iter.Seq2[api.RatedTurn, error] {
	return mapped(paging(false, func(p hub.Page) (hub.Listing[hub.Turn], error) {
		return l.Hub.RatedTurns(ctx, auth.Local(), p)
	}), ratedOf)
}

func (l localPast) Execution(ctx context.Context, id string) (hub.Execution, error) {
	return l.Hub.Execution(ctx, auth.Local(), id)
}

func (l localPast) Search(ctx context.Context, query string) iter.Seq2[hub.Found, error] {
	return paging(false, func(p hub.Page) (hub.Listing[hub.Found], error) {
		return l.Hub.Search(ctx, auth.Local(), query, p)
	})
}

func (l localPast) TurnEvents(ctx context.Context, t hub.Turn) ([]loop.Event, error) {
	var out []loop.Event
	err := l.recorded(ctx, t.ID, func(body []byte) {
		if event := turnEventOf(body); event != nil {
			out = append(out, event)
		}
	})
	return out, err
}

func (l localPast) ExecutionEvents(ctx context.Context, x hub.Execution) ([]hub.Event, error) {
	var out []hub.Event
	err := l.recorded(ctx, x.ID, func(body []byte) {
		if o, ok := turnEventOf(body).(loop.Output); ok {
			out = append(out, o.Event)
		}
	})
	return out, err
}

func (l localPast) recorded(ctx context.Context, id string, use func(body []byte)) error {
	events, err := l.Hub.Recorded(ctx, auth.Local(), id)
	if err != nil {
		return err
	}
	n := 0
	for e, err := range events {
		if n++; err != nil || n > maxEvents {
			return err
		}
		use(e.Event)
	}
	return nil
}

// turnEventOf reads a recorded event. What this version does not know, and gaps, are left out.
func turnEventOf(body []byte) loop.Event {
	if event, err := transcript.ParseTurnEvent(body); err == nil {
		return event
	}
	if event, err := transcript.ParseEvent(body); err == nil {
		return loop.Output{Event: event}
	}
	return nil
}

// paging yields a list that comes in pages.
func paging[T any](oldest bool, page func(hub.Page) (hub.Listing[T], error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		p := hub.Page{Limit: 100, Oldest: oldest}
		for {
			l, err := page(p)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range l.Items {
				if !yield(item, nil) {
					return
				}
			}
			if p.After = l.Next; p.After == "" {
				return
			}
		}
	}
}

func collected[T any](list iter.Seq2[T, error]) ([]T, error) {
	var out []T
	for item, err := range list {
		if err != nil {
			return nil, err
		}
		out = append(out, item)
	}
	return out, nil
}

func mapped[A, B any](list iter.Seq2[A, error], to func(A) B) iter.Seq2[B, error] {
	return func(yield func(B, error) bool) {
		for item, err := range list {
			if !yield(to(item), err) {
				return
			}
		}
	}
}

// last returns the nth conversation from the newest, 1 being the newest.
func last(ctx context.Context, from records, n int) (hub.Conversation, error) {
	for c, err := range from.Conversations(ctx) {
		if err != nil {
			return hub.Conversation{}, err
		}
		if n--; n == 0 {
			return c, nil
		}
	}
	return hub.Conversation{}, problem.New(problem.ConversationNotFound, "the history has no such conversation").
		WithHint("`cove history` lists what it has")
}

// thing is what an id of the history names.
type thing struct {
	conversation hub.Conversation
	turns        []hub.Turn
	execution    *hub.Execution // when the id is an execution's
}

// find returns what an id, a number as cove history shows it, or "" for the last conversation names.
func find(ctx context.Context, from records, id string) (thing, error) {
	kind, _, _ := strings.Cut(id, "_")
	switch {
	case ident.Valid(ident.Execution, id):
		x, err := from.Execution(ctx, id)
		return thing{execution: &x}, err
	case ident.Valid(ident.Turn, id):
		t, err := from.Turn(ctx, id)
		if err != nil {
			return thing{}, err
		}
		c, err := from.Conversation(ctx, t.Conversation)
		return thing{conversation: c, turns: []hub.Turn{t}}, err
	case ident.Valid(ident.Conversation, id):
		c, err := from.Conversation(ctx, id)
		if err != nil {
			return thing{}, err
		}
		return whole(ctx, from, c)
	}
	n, err := strconv.Atoi(id)
	if id == "" || id == "last" {
		n, err = 1, nil
	}
	if err != nil || n < 1 {
		return thing{}, problem.New(problem.IDInvalid, fmt.Sprintf("%q is not in the history", kind)).
			WithHint("give an id (cnv_..., trn_... or exe_...), a number as cove history shows it, or last")
	}
	c, err := last(ctx, from, n)
	if err != nil {
		return thing{}, err
	}
	return whole(ctx, from, c)
}

func whole(ctx context.Context, from records, c hub.Conversation) (thing, error) {
	turns, err := from.Turns(ctx, c.ID)
	turns = slices.DeleteFunc(turns, hub.Turn.IsTry) // they are found by their ids
	return thing{conversation: c, turns: turns}, err
}

// branch returns the turns that end in the last one, the oldest first: what the conversation is now, without what was left behind.
func branch(turns []hub.Turn) []hub.Turn {
	if len(turns) == 0 {
		return nil
	}
	return branchTo(turns, turns[len(turns)-1].ID)
}

// branchTo returns the turns that end in that one.
func branchTo(turns []hub.Turn, id string) []hub.Turn {
	var out []hub.Turn
	for len(out) <= len(turns) {
		at := slices.IndexFunc(turns, func(t hub.Turn) bool { return t.ID == id })
		if at < 0 {
			break
		}
		out, id = append(out, turns[at]), turns[at].Parent
	}
	slices.Reverse(out)
	return out
}

// document is the thing as it is shown and exported.
func (t thing) document(ctx context.Context, from recordings) (notebook.Document, error) {
	if t.execution != nil {
		events, err := from.ExecutionEvents(ctx, *t.execution)
		cell := notebook.Cell{Code: t.execution.Code, Edited: t.execution.Edited}
		for _, e := range events {
			cell.Add(e)
		}
		return notebook.Document{Created: t.execution.Created, Turns: []notebook.Turn{{Blocks: []notebook.Block{{Cell: &cell}}}}}, err
	}
	d := notebook.Document{Title: t.conversation.Title, Created: t.conversation.Created, Files: fileNames(t.conversation)}
	outdated := hub.Outdated(t.turns)
	for i, turn := range t.turns {
		events, err := from.TurnEvents(ctx, turn)
		if err != nil {
			return d, err
		}
		read := notebook.ReadTurn(turn.Prompt, turn.Answer, events)
		read.Outdated = outdated[i]
		d.Turns = append(d.Turns, read)
	}
	return d, nil
}

// What the command line keeps in a conversation's metadata.
const (
	metaFiles   = "files"
	metaSession = "session"
	metaPython  = "python"
)

func fileNames(c hub.Conversation) []string {
	if c.Metadata[metaFiles] == "" {
		return nil
	}
	return strings.Split(c.Metadata[metaFiles], "\n")
}

// withPast has use work on the history that the flags name.
func (p *Program) withPast(ctx context.Context, f serverFlags, use func(past) error) (err error) {
	from, err := p.past(ctx, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.close()) }()
	return use(from)
}
