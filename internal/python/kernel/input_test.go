package kernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cove/internal/machine/wire"
	"cove/internal/python/kernel"
)

// asker is a guest whose code asks for lines, with the numbers that are given, and ends when it has as many answers, or is interrupted.
func asker(numbers []int, prompt string, ends bool) (hostile, *[]string) {
	var of string
	got := new([]string)
	message := wire.FromProcess{Kind: wire.FromMessage}
	reply := func(say func(wire.FromProcess, string), more string) {
		say(message, `{"type":"reply","id":"`+of+`"`+more+`}`)
	}
	return hostile{ready: ready,
		say: func(say func(wire.FromProcess, string), id string) {
			of = id
			for _, n := range numbers {
				say(message, fmt.Sprintf(`{"type":"input_request","id":%q,"number":%d,"prompt":%q}`, id, n, prompt))
			}
		},
		hear: func(say func(wire.FromProcess, string), h wire.ToKernel, body []byte) {
			switch h.Kind {
			case wire.ToSignal:
				reply(say, `,"status":"error","interrupted":true`)
			case wire.ToMessage:
				var a struct {
					Type, Value string
					Number      int
					EOF         bool
				}
				if _ = json.Unmarshal(body, &a); a.Type != "input_reply" {
					return
				}
				if *got = append(*got, fmt.Sprint(a.Number, " ", a.Value, " ", a.EOF)); ends && len(*got) == len(numbers) {
					reply(say, `,"status":"ok"`)
				}
			}
		},
	}, got
}

// emitted runs a request and returns all events.
func emitted(t *testing.T, k *kernel.Kernel, req kernel.Request) (events []kernel.Event, done kernel.Done) {
	t.Helper()
	for ev, err := range k.Execute(t.Context(), req) {
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := ev.(kernel.Done); ok {
			done = d
			continue
		}
		events = append(events, ev)
	}
	return events, done
}

// TestInputTime has the time of an execution stand still while somebody thinks, and go on then.
func TestInputTime(t *testing.T) {
	var asked atomic.Int64
	think := func() (string, error) {
		time.Sleep(time.Duration(asked.Add(1)) * time.Hour) // one thinks on when another has answered
		return "Ada", nil
	}
	alone := kernel.Request{Timeout: time.Minute, Input: func(string, bool) (string, error) { return think() }}
	told := kernel.Request{Timeout: time.Minute, Inputs: &kernel.Inputs{Asking: func(int) {}, Answer: func(context.Context, int) (string, error) { return think() }}}
	for name, req := range map[string]kernel.Request{"a function answers": alone, "somebody who hears answers": told} {
		for _, ends := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ends), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					g, got := asker([]int{7, 8}, "Name: ", ends)
					k, err := start(t, g)
					if err != nil {
						t.Fatal(err)
					}
					_, done := emitted(t, k, req)
					if want := map[bool]kernel.Outcome{true: kernel.OutcomeOK, false: kernel.OutcomeTimeout}[ends]; done.Outcome != want {
						t.Errorf("ended as %+v", done)
					}
					if fmt.Sprint(*got) != "[7 Ada false 8 Ada false]" && fmt.Sprint(*got) != "[8 Ada false 7 Ada false]" {
						t.Errorf("the code got %q", *got)
					}
				})
			})
		}
	}
}

// TestInputIsTold has events tell of requests and answers, within bounds.
func TestInputIsTold(t *testing.T) {
	said := map[int]string{1: "Ada", 2: ""}
	var asking []int
	inputs := &kernel.Inputs{Asking: func(n int) { asking = append(asking, n) }, Answer: func(_ context.Context, n int) (string, error) {
		if text, ok := said[n]; ok {
			return text, nil
		}
		return "", io.EOF
	}}
	g, _ := asker([]int{3}, strings.Repeat("é", 5<<20), true)
	k, err := start(t, g)
	if err != nil {
		t.Fatal(err)
	}
	events, done := emitted(t, k, kernel.Request{Inputs: inputs})
	if done.Outcome != kernel.OutcomeOK || len(events) != 2 || fmt.Sprint(asking) != "[1]" {
		t.Fatalf("%v, ended as %+v", events, done)
	}
	if r := events[0].(kernel.InputRequest); r.Number != 1 || len(r.Prompt) > 4<<10 || !strings.HasSuffix(r.Prompt, "é…") {
		t.Errorf("a prompt of 10 MiB is told in %d bytes", len(r.Prompt))
	}
	if events[1] != (kernel.InputReply{Number: 1, Text: "Ada"}) {
		t.Errorf("the answer is told as %+v", events[1])
	}

	// Requests without end have an end for those who hear of them.
	n, message := 0, wire.FromProcess{Kind: wire.FromMessage}
	var of string
	ask := func(say func(wire.FromProcess, string)) {
		say(message, fmt.Sprintf(`{"type":"input_request","id":%q,"number":1}`, of))
	}
	k, err = start(t, hostile{ready: ready,
		say: func(say func(wire.FromProcess, string), id string) { of = id; ask(say) },
		hear: func(say func(wire.FromProcess, string), h wire.ToKernel, _ []byte) {
			if n++; h.Kind == wire.ToMessage && n < 10_500 {
				ask(say)
			} else if h.Kind == wire.ToMessage {
				say(message, `{"type":"reply","id":"`+of+`","status":"ok"}`)
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	events, done = emitted(t, k, kernel.Request{Inputs: &kernel.Inputs{Asking: func(int) {}, Answer: func(context.Context, int) (string, error) { return "", io.EOF }}})
	if done.Outcome != kernel.OutcomeOK || len(events) != 20_000 {
		t.Errorf("10500 requests are told in %d events, ended as %+v", len(events), done)
	}
}

// TestInputOfThreads has threads of real code ask at one time: each gets its own answer, a password is in no event, and an answer that comes late is for nobody.
func TestInputOfThreads(t *testing.T) {
	t.Parallel()
	_, _, k := begin(t)
	answers := map[int]string{}
	req := func(code string) kernel.Request {
		return kernel.Request{Code: code, Inputs: &kernel.Inputs{Asking: func(int) {}, Answer: func(ctx context.Context, n int) (string, error) {
			if answers[n] == "" {
				<-ctx.Done()
				return "", errors.New("the code has ended")
			}
			return answers[n], nil
		}}}
	}
	answers = map[int]string{1: "1", 2: "2", 3: "3", 4: "4", 5: "5", 6: "6", 7: "secret"}
	printed := ""
	asked := map[int]string{}
	hear := func(events []kernel.Event) (replies []kernel.InputReply) {
		printed, asked = "", map[int]string{}
		for _, ev := range events {
			switch e := ev.(type) {
			case kernel.Stream:
				printed += string(e.Data)
			case kernel.Error:
				printed += strings.Join(e.Traceback, "\n")
			case kernel.InputRequest:
				asked[e.Number] = e.Prompt
			case kernel.InputReply:
				replies = append(replies, e)
			}
		}
		return replies
	}
	events, done := emitted(t, k, req(`
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(6) as pool:
    got = list(pool.map(lambda n: input(f"thread {n}"), range(6)))
import getpass
print(*got, getpass.getpass())`))
	replies := hear(events)
	var want []string
	for n := range 6 {
		for number, prompt := range asked {
			if prompt == fmt.Sprint("thread ", n) {
				want = append(want, answers[number])
			}
		}
	}
	if done.Outcome != kernel.OutcomeOK || printed != strings.Join(want, " ")+" secret\n" || len(replies) != 7 || replies[6] != (kernel.InputReply{Number: 7, Secret: true}) {
		t.Errorf("threads got %q, want %q; %+v %+v", printed, want, replies, done)
	}

	// More threads than may ask at one time: the code is ended.
	answers = nil
	events, done = emitted(t, k, req("import threading\nfor n in range(10_000): threading.Thread(target=input, daemon=True).start()\ninput()"))
	if hear(events); done.Outcome != kernel.OutcomeProtocol || len(asked) != 8 {
		t.Errorf("10,000 threads asked %d times: %+v", len(asked), done)
	}
}

// TestInputAfterAnInterrupt asks again after a request that an interrupt ended.
func TestInputAfterAnInterrupt(t *testing.T) {
	t.Parallel()
	_, _, k := begin(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	printed := ""
	for ev, err := range k.Execute(ctx, kernel.Request{
		Code:   "try:\n    input('first ')\nexcept KeyboardInterrupt:\n    pass\ntry:\n    print(input('second '))\nexcept EOFError:\n    print('nobody')",
		Inputs: &kernel.Inputs{Asking: func(int) {}, Answer: func(ctx context.Context, _ int) (string, error) { <-ctx.Done(); return "late", ctx.Err() }},
	}) {
		switch e := ev.(type) {
		case kernel.InputRequest:
			cancel()
		case kernel.Stream:
			printed += string(e.Data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if printed != "nobody\n" {
		t.Errorf("it printed %q", printed)
	}
}
