package hub_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/llm/loop"
	"cove/internal/llm/model"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/server/store"
	"cove/internal/server/store/pgtest"
	"cove/internal/testkit/testneeds"
)

// crowd are those who put questions: what they may, and whether they are there.
type crowd struct {
	mu    sync.Mutex
	known map[string]auth.Principal // by key
}

func (c *crowd) Present(_ context.Context, _, _, key string) (auth.Principal, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	who, ok := c.known[key]
	if !ok {
		return auth.Principal{}, problem.New(problem.AskerGone, "the key was revoked").WithHint("change it")
	}
	return who, nil
}

func (c *crowd) let(who auth.Principal) auth.Principal {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known[who.Key] = who
	return who
}

func (c *crowd) remove(who auth.Principal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, who.Key)
}

// newQueue is a hub that asks what waits, and somebody who may.
func newQueue(t *testing.T, lines ...line) (*life, *voice, *crowd, auth.Principal) {
	t.Helper()
	v, c := &voice{t: t, lines: lines}, &crowd{known: map[string]auth.Principal{}}
	l := newLife(t, func(o *hub.Options) { o.Models, o.Asker = v, c.Present })
	return l, v, c, c.let(someone(auth.LocalProject))
}

func (l *life) queue(who auth.Principal, conversation, text string) hub.Question {
	l.t.Helper()
	q, err := l.PutQuestion(l.t.Context(), who, hub.NewTurn{Conversation: conversation, Input: input(text), Source: "web"})
	if err != nil {
		l.t.Fatal(err)
	}
	return q
}

// answers waits until a conversation has so many turns that have ended and none that runs, and returns what they asked and how they ended.
func (l *life) answers(who auth.Principal, conversation string, n int) string {
	l.t.Helper()
	var out []string
	synced(l.t, func() bool {
		all, err := l.Turns(l.t.Context(), who, conversation, hub.Page{Limit: 100, Oldest: true})
		if err != nil {
			l.t.Fatal(err)
		}
		out = nil
		for _, turn := range all.Items {
			if !turn.State.Final() {
				return false
			}
			out = append(out, turn.Prompt+" "+string(turn.State))
		}
		return len(out) == n
	})
	return strings.Join(out, ", ")
}

// held waits until the first question of a queue is held, and returns why.
func (l *life) held(who auth.Principal, conversation string) (q hub.Question) {
	l.t.Helper()
	synced(l.t, func() bool {
		queue, err := l.Questions(l.t.Context(), who, conversation)
		if err != nil {
			l.t.Fatal(err)
		}
		if len(queue) > 0 {
			q = queue[0]
		}
		return q.Held != nil
	})
	return q
}

func inQueue(l *life, who auth.Principal, conversation string) string {
	l.t.Helper()
	queue, err := l.Questions(l.t.Context(), who, conversation)
	if err != nil {
		l.t.Fatal(err)
	}
	var out []string
	for _, q := range queue {
		out = append(out, q.Turn.Prompt)
	}
	return strings.Join(out, ", ")
}

func TestAQueueIsAskedInItsOrder(t *testing.T) {
	t.Parallel()
	l, v, _, who := newQueue(t, calls(python("c1", "say on\nwait go")), words("One."), words("Two."), words("Three."))
	turn := l.begin(who, hub.NewTurn{Input: input("first")})
	second := l.queue(who, turn.Conversation, "second")
	dropped, last := l.queue(who, turn.Conversation, "dropped"), l.queue(who, turn.Conversation, "last")
	if got := inQueue(l, who, turn.Conversation); got != "second, dropped, last" {
		t.Fatalf("there wait %s", got)
	}
	other := "third"
	if _, err := l.ChangeQuestion(t.Context(), who, turn.Conversation, last.ID, hub.QuestionChange{Prompt: &other}); err != nil {
		t.Fatal(err)
	}
	if err := l.DeleteQuestion(t.Context(), who, turn.Conversation, dropped.ID); err != nil {
		t.Fatal(err)
	}
	fails(t, l.DeleteQuestion(t.Context(), who, turn.Conversation, dropped.ID), "question_not_found")
	l.toys.open("go")
	if got := l.answers(who, turn.Conversation, 3); got != "first completed, second completed, third completed" {
		t.Errorf("asked were %s", got)
	}
	if got := v.asked(3); !strings.Contains(got, "second|Two.|third") {
		t.Errorf("the last one goes on from %s", got)
	}
	all, err := l.Turns(t.Context(), who, turn.Conversation, hub.Page{Oldest: true})
	if err != nil || all.Items[2].Session != turn.Session || all.Items[2].Parent != all.Items[1].ID || all.Items[1].User != who.User || all.Items[1].Key != who.Key {
		t.Errorf("%+v, %v", all.Items, err)
	}
	_, err = l.ChangeQuestion(t.Context(), who, turn.Conversation, second.ID, hub.QuestionChange{Prompt: &other})
	fails(t, err, "question_not_found")
	if got := inQueue(l, who, turn.Conversation); got != "" {
		t.Errorf("there still wait %s", got)
	}
}

// TestAQueueGoesOnWhereNothingRuns: what is put then is asked at once; also after a turn that failed, and after one that was stopped.
func TestAQueueGoesOnWhereNothingRuns(t *testing.T) {
	t.Parallel()
	l, _, _, who := newQueue(t, words("One."), line{err: problem.New(problem.ModelAuth, "no")}, line{hang: true}, words("Four."))
	first := l.ask(who, hub.NewTurn{Input: input("one")})
	l.queue(who, first.Conversation, "two")
	if got := l.answers(who, first.Conversation, 2); got != "one completed, two failed" {
		t.Errorf("asked were %s", got)
	}
	hangs := l.begin(who, hub.NewTurn{Conversation: first.Conversation, Input: input("three")})
	l.queue(who, first.Conversation, "four")
	if _, err := l.CancelTurn(t.Context(), who, hangs.ID); err != nil {
		t.Fatal(err)
	}
	if got := l.answers(who, first.Conversation, 4); got != "one completed, two failed, three canceled, four completed" {
		t.Errorf("asked were %s", got)
	}
}

// TestAQueueWaitsForItsPerson: while code waits for a word, nothing is asked.
func TestAQueueWaitsForItsPerson(t *testing.T) {
	t.Parallel()
	l, _, _, who := newQueue(t, calls(python("c1", "say a")), words("One."), words("Two."))
	turn := l.asking(who, hub.NewTurn{})
	l.queue(who, turn.Conversation, "two")
	l.AskDue(t.Context())
	if got := inQueue(l, who, turn.Conversation); got != "two" {
		t.Errorf("there wait %s", got)
	}
	if _, err := l.ApproveTurn(t.Context(), who, turn.ID, hub.Word{Step: 1, Run: true}); err != nil {
		t.Fatal(err)
	}
	if got := l.answers(who, turn.Conversation, 2); got != "go completed, two completed" {
		t.Errorf("asked were %s", got)
	}
}

func TestWhoMayUseAQueue(t *testing.T) {
	t.Parallel()
	l, _, people, who := newQueue(t, calls(python("c1", "say on\nwait go")), words("One."))
	turn := l.begin(who, hub.NewTurn{Input: input("one")})
	q := l.queue(who, turn.Conversation, "two")
	viewer := someone(who.Project)
	viewer.Role = auth.Viewer
	if got := inQueue(l, viewer, turn.Conversation); got != "two" {
		t.Errorf("a viewer sees %s", got)
	}
	ctx, n := t.Context(), hub.NewTurn{Conversation: turn.Conversation, Input: input("three")}
	for name, call := range map[string]func(auth.Principal) error{
		"put": func(p auth.Principal) error { _, err := l.PutQuestion(ctx, p, n); return err },
		"change": func(p auth.Principal) error {
			_, err := l.ChangeQuestion(ctx, p, turn.Conversation, q.ID, hub.QuestionChange{})
			return err
		},
		"delete": func(p auth.Principal) error { return l.DeleteQuestion(ctx, p, turn.Conversation, q.ID) },
	} {
		t.Log(name)
		fails(t, call(viewer), "forbidden")
		fails(t, call(someone("prj_x")), "conversation_not_found")
	}
	_, err := l.Questions(ctx, someone("prj_x"), turn.Conversation)
	fails(t, err, "conversation_not_found")
	for _, bad := range []hub.NewTurn{{Parent: turn.ID, Input: input("x")}, {Session: turn.Session, Input: input("x")}, {Input: nil}, {Input: input("x"), Root: true}, {Input: input("x"), Tools: []model.Tool{{Name: "f"}}}} {
		bad.Conversation = turn.Conversation
		_, err := l.PutQuestion(ctx, who, bad)
		fails(t, err, "turn_invalid")
	}
	_, err = l.PutQuestion(ctx, who, hub.NewTurn{Conversation: turn.Conversation, Input: input("x"), Model: "none"})
	fails(t, err, "model_unknown")
	_, err = l.PutQuestion(ctx, who, hub.NewTurn{Conversation: turn.Conversation, Input: input("x"), Files: []string{"fil_none"}})
	fails(t, err, "file_not_found")
	_, err = l.PutQuestion(ctx, who, hub.NewTurn{Conversation: turn.Conversation, Input: input(strings.Repeat("x", 1<<20))})
	fails(t, err, "question_too_large")
	for range 49 {
		l.queue(who, turn.Conversation, "more")
	}
	_, err = l.PutQuestion(ctx, who, n)
	fails(t, err, "too_many_questions")
	people.remove(who) // nobody asks all of these
	l.toys.open("go")
	l.held(who, turn.Conversation)
}

// TestAQuestionIsPutOnce: a repeated request puts nothing, also when the question was asked meanwhile.
func TestAQuestionIsPutOnce(t *testing.T) {
	t.Parallel()
	l, _, _, who := newQueue(t, calls(python("c1", "say on\nwait go")), words("One."), words("Two."))
	turn := l.begin(who, hub.NewTurn{Input: input("one")})
	n := hub.NewTurn{Conversation: turn.Conversation, Input: input("two"), Prompt: "two", Once: "once"}
	var ids []string
	for range 2 {
		q, err := l.PutQuestion(t.Context(), who, n)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, q.ID)
	}
	if got := inQueue(l, who, turn.Conversation); got != "two" || ids[0] != ids[1] {
		t.Errorf("there wait %s, %v", got, ids)
	}
	l.toys.open("go")
	l.answers(who, turn.Conversation, 2)
	if q, err := l.PutQuestion(t.Context(), who, n); err != nil || q.ID != ids[0] || q.Turn.Prompt != "two" {
		t.Errorf("put again: %+v, %v", q, err)
	}
	if got := l.answers(who, turn.Conversation, 2); got != "one completed, two completed" {
		t.Errorf("asked were %s", got)
	}
	n.Input = input("three")
	_, err := l.PutQuestion(t.Context(), who, n)
	fails(t, err, "idempotency_mismatch")
}

// TestAQuestionIsAskedWithTheRightsOfNow: what its asker may not do any more holds it, with the reason, until somebody changes it or that passes.
func TestAQuestionIsAskedWithTheRightsOfNow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before func(l *life, people *crowd, who auth.Principal)
		code   string
	}{
		"revoked": {func(_ *life, people *crowd, who auth.Principal) { people.remove(who) }, "asker_gone"},
		"viewer":  {func(_ *life, people *crowd, who auth.Principal) { who.Role = auth.Viewer; people.let(who) }, "forbidden"},
		"scopes": {func(_ *life, people *crowd, who auth.Principal) {
			who.Scopes = []auth.Action{auth.ConversationsRead, auth.ConversationsWrite}
			people.let(who)
		}, "forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, _, people, who := newQueue(t, calls(python("c1", "say on\nwait go")), words("One."), words("Two."), words("Three."))
			turn := l.begin(who, hub.NewTurn{Input: input("one")})
			q := l.queue(who, turn.Conversation, "two")
			l.queue(who, turn.Conversation, "three")
			c.before(l, people, who)
			l.toys.open("go")
			held := l.held(who, turn.Conversation)
			if held.ID != q.ID || held.Held.Code != c.code || held.Held.Message == "" || held.Held.Hint == "" || !held.Again.IsZero() {
				t.Fatalf("%+v", held)
			}
			if got := l.answers(who, turn.Conversation, 1); got != "one completed" {
				t.Errorf("asked were %s", got)
			}
			l.AskDue(t.Context()) // a person has to act
			if got := inQueue(l, who, turn.Conversation); got != "two, three" {
				t.Errorf("there wait %s", got)
			}
			other := people.let(someone(who.Project))
			people.let(who)
			changed, err := l.ChangeQuestion(t.Context(), other, turn.Conversation, q.ID, hub.QuestionChange{})
			if err != nil || changed.User != other.User || changed.Held != nil {
				t.Fatalf("%+v, %v", changed, err)
			}
			if got := l.answers(who, turn.Conversation, 3); got != "one completed, two completed, three completed" {
				t.Errorf("asked were %s", got)
			}
			all, err := l.Turns(t.Context(), who, turn.Conversation, hub.Page{Oldest: true})
			if err != nil || all.Items[1].User != other.User || all.Items[2].User != who.User {
				t.Errorf("who asked: %+v, %v", all.Items, err)
			}
		})
	}
}

// TestAQuotaHoldsAQuestion until there is something left of it.
func TestAQuotaHoldsAQuestion(t *testing.T) {
	t.Parallel()
	v, people := &voice{t: t, lines: []line{calls(python("c1", "say on\nwait go")), words("One."), words("Two.")}}, &crowd{known: map[string]auth.Principal{}}
	var mu sync.Mutex
	quota, later := int64(1), time.Duration(0)
	l := newLife(t, func(o *hub.Options) {
		o.Models, o.Asker = v, people.Present
		o.Now = func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return time.Now().Add(later)
		}
		o.Quotas = func(context.Context, string, string) (*hub.Quota, *hub.Quota, error) {
			mu.Lock()
			defer mu.Unlock()
			return &hub.Quota{Tokens: quota}, nil, nil
		}
	})
	who := people.let(someone(auth.LocalProject))
	turn := l.begin(who, hub.NewTurn{Input: input("one")})
	l.queue(who, turn.Conversation, "two")
	l.toys.open("go")
	held := l.held(who, turn.Conversation)
	if held.Held.Code != "quota_tokens" || held.Again.IsZero() {
		t.Fatalf("%+v", held)
	}
	mu.Lock()
	quota, later = 1000, 2*time.Minute
	mu.Unlock()
	l.AskDue(t.Context())
	if got := l.answers(who, turn.Conversation, 2); got != "one completed, two completed" {
		t.Errorf("asked were %s", got)
	}
}

// TestAQueueOutlivesItsServer: what waits is asked by the next one; what was being asked is lost, said so, and not asked again.
func TestAQueueOutlivesItsServer(t *testing.T) {
	t.Parallel()
	people := &crowd{known: map[string]auth.Principal{}}
	who := people.let(someone(auth.LocalProject))
	serve := func(v *voice) func(*hub.Options) {
		return func(o *hub.Options) { o.Models, o.Asker = v, people.Present }
	}
	a, b := twoLives(t, serve(&voice{t: t, lines: []line{words("One."), {hang: true}}}))
	first := a.ask(who, hub.NewTurn{Input: input("one"), NoPython: true})
	put := func(text string) {
		t.Helper()
		if _, err := a.PutQuestion(t.Context(), who, hub.NewTurn{Conversation: first.Conversation, Input: input(text), NoPython: true}); err != nil {
			t.Fatal(err)
		}
	}
	put("two")
	synced(t, func() bool { return inQueue(a, who, first.Conversation) == "" })
	put("three")
	b.AskDue(t.Context()) // another server, whose it is not
	if got := inQueue(b, who, first.Conversation); got != "three" {
		t.Fatalf("there wait %s", got)
	}
	a.die()
	next := lifeIn(t, t.TempDir(), openStore(t, a.shared), serve(&voice{t: t, lines: []line{words("Three.")}}))
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() { next.AskDue(t.Context()) })
	}
	all.Wait()
	if got := next.answers(who, first.Conversation, 3); got != "one completed, two lost, three completed" {
		t.Errorf("asked were %s", got)
	}
}

// TestOneOfSeveralServersAsks: each looks at the same moment, and a question is asked once.
func TestOneOfSeveralServersAsks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	severalAsk(t, func() *store.Store { return openStore(t, dir) })
}

// TestOneOfSeveralServersOnPostgreSQLAsks is the same where writers do not wait for each other.
func TestOneOfSeveralServersOnPostgreSQLAsks(t *testing.T) {
	t.Parallel()
	database := pgtest.Database(t)
	severalAsk(t, func() *store.Store {
		s, err := store.Open(t.Context(), store.Options{Database: database})
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}

func severalAsk(t *testing.T, open func() *store.Store) {
	t.Helper()
	people := &crowd{known: map[string]auth.Principal{}}
	who := people.let(someone(auth.LocalProject))
	const questions = 10
	v, want := &voice{t: t, lines: []line{words("One.")}}, "one completed"
	for n := range questions {
		v.lines = append(v.lines, words("So."))
		want += fmt.Sprintf(", %d completed", n)
	}
	silent := lifeIn(t, t.TempDir(), open(), func(o *hub.Options) { o.Models = v }) // which puts, and asks nothing
	var all sync.WaitGroup
	var servers []*life
	for range 3 {
		servers = append(servers, lifeIn(t, t.TempDir(), open(), func(o *hub.Options) { o.Models, o.Asker = v, people.Present }))
	}
	first := silent.ask(who, hub.NewTurn{Input: input("one"), NoPython: true})
	for n := range questions {
		if _, err := silent.PutQuestion(t.Context(), who, hub.NewTurn{Conversation: first.Conversation, Input: input(fmt.Sprint(n)), NoPython: true}); err != nil {
			t.Fatal(err)
		}
	}
	done, stop := context.WithCancel(t.Context())
	for _, l := range servers {
		all.Go(func() {
			for done.Err() == nil {
				l.AskDue(t.Context())
			}
		})
	}
	if got := servers[0].answers(who, first.Conversation, questions+1); got != want {
		t.Errorf("asked were %s", got)
	}
	stop()
	all.Wait()
}

// TestChangesOfAQueueAreTold to those who follow the project.
func TestChangesOfAQueueAreTold(t *testing.T) {
	t.Parallel()
	l, _, _, who := newQueue(t, calls(python("c1", "say on\nwait go")), words("One."), words("Two."))
	turn := l.begin(who, hub.NewTurn{Input: input("one")})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	changes, err := l.Changes(ctx, who)
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan hub.Change, 1000)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for c, err := range changes {
			if err != nil {
				return
			}
			told <- c
		}
	}()
	<-told // the turn that runs: it follows
	awaits := func(what string) {
		t.Helper()
		for c := range told {
			if c.Kind == hub.ChangedConversation && c.ID == turn.Conversation {
				return
			}
		}
		t.Fatal(what)
	}
	q := l.queue(who, turn.Conversation, "two")
	awaits("put")
	if err := l.DeleteQuestion(t.Context(), who, turn.Conversation, q.ID); err != nil {
		t.Fatal(err)
	}
	awaits("deleted")
	l.queue(who, turn.Conversation, "two")
	awaits("put again")
	l.toys.open("go")
	awaits("asked")
	l.answers(who, turn.Conversation, 2)
	stop()
	<-done
}

// TestADeletedConversationHasNoQueue, and nothing of it is asked meanwhile.
func TestADeletedConversationHasNoQueue(t *testing.T) {
	t.Parallel()
	l, _, _, who := newQueue(t, line{hang: true})
	turn := l.begin(who, hub.NewTurn{Input: input("one")})
	f, err := l.FollowTurn(t.Context(), who, turn.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 10 {
		l.queue(who, turn.Conversation, fmt.Sprint(n))
	}
	if err := l.DeleteConversation(t.Context(), who, turn.Conversation); err != nil {
		t.Fatal(err)
	}
	for n, err := range f {
		if _, ok := n.Event.(loop.Answer); err == nil && ok {
			t.Error("it was answered")
		}
	}
	l.AskDue(t.Context())
}

// TestNoQuestionIsLostOrAskedTwice loses the answers of commits while turns take their questions out of the queue: one that could not begin is back in its place.
func TestNoQuestionIsLostOrAskedTwice(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	way := pgtest.Over(t, pgtest.Database(t))
	s, err := store.Open(t.Context(), store.Options{Database: way.Address})
	if err != nil {
		t.Fatal(err)
	}
	const questions = 20
	people, v := &crowd{known: map[string]auth.Principal{}}, &voice{t: t, lines: []line{words("One.")}}
	for range 2 * questions {
		v.lines = append(v.lines, words("So."))
	}
	l := lifeIn(t, t.TempDir(), s, func(o *hub.Options) { o.Models, o.Asker = v, people.Present })
	who := someone(auth.LocalProject)
	first := l.ask(who, hub.NewTurn{Input: input("one"), NoPython: true})
	for n := range questions { // nobody may ask them yet
		if _, err := l.PutQuestion(t.Context(), who, hub.NewTurn{Conversation: first.Conversation, Input: input(fmt.Sprint(n)), NoPython: true}); err != nil {
			t.Fatal(err)
		}
	}
	l.held(who, first.Conversation)
	people.let(who)
	way.LoseEvery(3)
	empty := "?"
	if _, err := l.ChangeQuestion(t.Context(), who, first.Conversation, l.held(who, first.Conversation).ID, hub.QuestionChange{Prompt: &empty}); err != nil {
		t.Log(err) // it may have been changed all the same
	}
	seen := map[string]int{}
	synced(t, func() bool {
		l.AskDue(t.Context())
		turns, err := l.Turns(t.Context(), who, first.Conversation, hub.Page{Oldest: true, Limit: 100})
		if err != nil {
			return false
		}
		clear(seen)
		for _, turn := range turns.Items {
			if !turn.State.Final() {
				return false
			}
			seen[turn.Prompt]++
		}
		queue, err := l.Questions(t.Context(), who, first.Conversation)
		if err == nil && len(queue) > 0 && queue[0].Held != nil {
			_, _ = l.ChangeQuestion(t.Context(), who, first.Conversation, queue[0].ID, hub.QuestionChange{})
		}
		return err == nil && len(queue) == 0 && len(turns.Items) > questions
	})
	way.LoseEvery(0)
	for n := range questions {
		if asked := seen[fmt.Sprint(n)]; asked != 1 && n > 0 || n == 0 && asked+seen[empty] != 1 {
			t.Errorf("question %d was asked %d times: %v", n, asked, seen)
		}
	}
	t.Logf("%d answers were lost", way.Lost.Load())
}
