package api

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/http/sse"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// change is hub.Change as an event.
type change struct {
	Type         string         `json:"type"` // changed
	Kind         hub.ChangeKind `json:"kind"`
	ID           string         `json:"id,omitempty"`
	Conversation string         `json:"conversation,omitempty"`
	Session      string         `json:"session,omitempty"`
	State        string         `json:"state,omitempty"`
}

type followAll struct {
	Follow []string `query:"follow,explode" maxItems:"32" doc:"Turns and executions to follow as well, each ID or ID:N, N being the id of its last event that you have"`
}

func (s *server) addChanges() {
	addRaw(s, operation{id: "events.follow", method: http.MethodGet, path: "/events", tag: "conversations", action: auth.ConversationsRead, summary: "Follow what changes",
		about: "Server-sent events of everything in one stream, for a client with few connections, as a browser is. `changed` says that a conversation, a turn, a session or an execution that is no turn's step was made, changed or deleted (`kind`, `id`, `state`; kind `all`: read anew what you show); first come the turns that run. " +
			"`followed` brings an event of a turn or an execution that you name (`of`, `id`, `event`), until its last one. A turn whose code waits for approval has the state `approval` here. The stream does not end by itself; connect again with the ids that you have.",
		errors: []problem.Code{problem.InvalidRequest},
		example: `# what changes, and the events of a turn after its second one
curl -N -m 2 -H "Authorization: Bearer $KEY" "$COVE/events?follow=$TURN:2" || true`},
		func(w http.ResponseWriter, r *http.Request, who auth.Principal, in *followAll) error {
			var sources []opener
			for _, text := range in.Follow {
				of, err := s.openNamed(who, text)
				if err != nil {
					return err
				}
				sources = append(sources, of)
			}
			return s.stream(w, r, sse.Event{}, s.openAll(who, sources))
		})
}

// openNamed returns how to follow what ID or ID:N names. That it cannot be followed ends nothing else.
func (s *server) openNamed(who auth.Principal, text string) (opener, error) {
	id, number, counted := strings.Cut(text, ":")
	var from int64
	var err error
	if counted {
		from, err = strconv.ParseInt(number, 10, 64)
	}
	open := s.openTurn
	switch {
	case err != nil || from < 0:
		return nil, problem.New(problem.InvalidRequest, "what is to be followed is named ID or ID:N, N being an event's id (query.follow)")
	case ident.Valid(ident.Turn, id):
	case ident.Valid(ident.Execution, id):
		open = s.openExecution
	default:
		return nil, problem.New(problem.InvalidRequest, "only turns and executions can be followed (query.follow)").WithHint("name them as follow=trn_... or follow=exe_...")
	}
	return func(ctx context.Context) (iter.Seq2[sse.Event, error], error) {
		events, err := open(who, id, from)(ctx)
		return func(yield func(sse.Event, error) bool) {
			if err != nil {
				yield(followed(id, failure(err)), nil)
				return
			}
			for m, err := range events {
				switch {
				case err != nil && ctx.Err() != nil:
					return // the whole stream says why it ends
				case err != nil:
					yield(followed(id, failure(err)), nil)
					return
				case !yield(followed(id, m), nil):
					return
				}
			}
		}, nil
	}, nil
}

// followed is an event of what a stream follows among others. The numbers of such streams have nothing to do with each other, so it has none itself.
func followed(of string, m sse.Event) sse.Event {
	return sse.Event{Name: "followed", Data: fmt.Appendf(nil, `{"type":"followed","of":%q,"id":%d,"event":%s}`, of, m.ID, m.Data)}
}

// openAll follows what changes, and the sources.
func (s *server) openAll(who auth.Principal, sources []opener) opener {
	return func(ctx context.Context) (events iter.Seq2[sse.Event, error], err error) {
		ctx, leave := context.WithCancel(ctx)
		defer func() {
			if err != nil {
				leave()
			}
		}()
		changes, err := s.o.Hub.Changes(ctx, who)
		if err != nil {
			return nil, err
		}
		all := []iter.Seq2[sse.Event, error]{func(yield func(sse.Event, error) bool) {
			for c, err := range changes {
				if !yield(changed(c), err) {
					return
				}
			}
		}}
		for _, open := range sources {
			events, err := open(ctx)
			if err != nil {
				return nil, err
			}
			all = append(all, events)
		}
		return together(all, leave), nil
	}
}

func changed(c hub.Change) sse.Event {
	body, err := json.Marshal(change{Type: "changed", Kind: c.Kind, ID: c.ID, Conversation: c.Conversation, Session: c.Session, State: c.State})
	if err != nil {
		return failure(err)
	}
	return sse.Event{Name: "changed", Data: body}
}

// together yields the events of several streams as they come, until one of them has an error or all have ended. leave makes all of them end.
func together(all []iter.Seq2[sse.Event, error], leave func()) iter.Seq2[sse.Event, error] {
	type item struct {
		m   sse.Event
		err error
	}
	return func(yield func(sse.Event, error) bool) {
		items, left := make(chan item), make(chan struct{})
		var readers sync.WaitGroup
		for _, events := range all {
			readers.Go(func() {
				for m, err := range events {
					select {
					case items <- item{m, err}:
					case <-left:
						return
					}
				}
			})
		}
		over := make(chan struct{})
		go func() {
			readers.Wait()
			close(over)
		}()
		defer func() {
			close(left)
			leave()
			<-over
		}()
		for {
			select {
			case i := <-items:
				if !yield(i.m, i.err) || i.err != nil {
					return
				}
			case <-over:
				return
			}
		}
	}
}
