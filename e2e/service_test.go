package e2e_test

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"cove/internal/llm/model/modeltest"
	"cove/internal/testkit/testneeds"
)

// serviceCase is a way in which a model service fails.
type serviceCase struct {
	name     string
	turns    []modeltest.Turn
	env      []string
	code     int    // exit code
	says     string // of the complaint, or of the notice when the question is answered after all
	requests int
}

// slow is a turn whose call would leave a file; it ends so late in its stream that the part that arrives would do.
func slow(f modeltest.Fault) modeltest.Turn {
	return modeltest.Turn{
		Text: []string{"I'll write."}, Fault: f,
		Calls: []modeltest.Call{{Code: "open('ran.txt', 'w').write('x')\n#" + strings.Repeat(" padding", 200), Fragment: 40}},
	}
}

// twice is for what is asked again once, because it broke off in the middle.
func twice(turn modeltest.Turn) []modeltest.Turn { return []modeltest.Turn{turn, turn} }

func serviceCases(provider string) []serviceCase {
	limited := modeltest.Error(429, "rate_limit_error", "slow down", "Retry-After", "0")
	down := modeltest.Error(500, "api_error", "something broke", "Retry-After", "0")
	unknown := modeltest.Error(404, "not_found_error", "model: scripted")
	if provider == "openai" {
		unknown = modeltest.Error(404, "model_not_found", "The model `scripted` does not exist")
	}
	done := modeltest.Say("Done.")
	return []serviceCase{
		{"nothing fails", []modeltest.Turn{slow(modeltest.Fault{}), done}, nil, 0, "ran.txt", 2},
		{"429 once", []modeltest.Turn{limited, done}, nil, 0, "is limiting the rate of requests (429): slow down", 2},
		{"500 once", []modeltest.Turn{down, done}, nil, 0, "failed to answer (500): something broke", 2},
		{"length in the middle of a call", []modeltest.Turn{slow(modeltest.Fault{CutCall: true}), done}, nil, 0, "cut off before it was complete; it was not run", 2},
		{"truncated once", []modeltest.Turn{slow(modeltest.Fault{TruncateAfter: 5000}), done}, nil, 0, "nothing of it was run. Asking again", 2},
		{"429 for ever", []modeltest.Turn{limited, limited, limited, limited}, nil, 125, "is limiting the rate of requests (429): slow down (tried 4 times)", 4},
		{"429 for an hour", []modeltest.Turn{modeltest.Error(429, "rate_limit_error", "slow down", "Retry-After", "3600")}, nil, 125, "asks to wait 1h0m0s", 1},
		{"wrong key", []modeltest.Turn{modeltest.Error(401, "authentication_error", "invalid key "+secret)}, nil, 125, "refused the key (401)", 1},
		{"unknown model", []modeltest.Turn{unknown}, nil, 125, `has no model named "scripted"`, 1},
		{"silence before the headers", []modeltest.Turn{{Fault: modeltest.Fault{HangBeforeHeaders: true}}}, []string{"COVE_MODEL_FIRST_TOKEN_TIMEOUT=1s"}, 125, "said nothing for 1s", 1},
		{"silence before the first token", []modeltest.Turn{{Fault: modeltest.Fault{HangBeforeFirst: true}}}, []string{"COVE_MODEL_FIRST_TOKEN_TIMEOUT=1s"}, 125, "said nothing for 1s", 1},
		{"silence in the middle", twice(slow(modeltest.Fault{StallAfter: 20})), []string{"COVE_MODEL_STALL_TIMEOUT=1s"}, 125, "stopped in the middle of its answer", 2},
		{"truncated in the middle of a call", twice(slow(modeltest.Fault{TruncateAfter: 5000})), nil, 125, "broke off before its end", 2},
		{"ended in the middle of a call", twice(slow(modeltest.Fault{CutAfter: 20})), nil, 125, "broke off before its end", 2},
		{"a chunk that is not JSON", twice(slow(modeltest.Fault{MalformedAfter: 20})), nil, 125, "not a valid answer of a model", 2},
		{"an error in the middle", twice(slow(modeltest.Fault{ErrorAfter: 20})), nil, 125, "is overloaded", 2},
		{"a web page", []modeltest.Turn{modeltest.HTMLPage()}, nil, 125, "answered with a web page", 1},
	}
}

// TestAskFailingService shows each failure of a model service to a user.
func TestAskFailingService(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	for _, provider := range []string{"openai", "anthropic"} {
		for _, test := range serviceCases(provider) {
			t.Run(provider+"/"+test.name, func(t *testing.T) {
				t.Parallel()
				args := []string{"-o", "out", "Write."}
				if test.code != 0 {
					args = append(args, "--quiet")
				}
				c, server := asking(t, provider+"/scripted", test.turns, args...)
				c.setenv(test.env...)
				r := c.run()
				r.ended(t, test.code)
				if test.code == 0 {
					r.told(t, test.says)
				} else {
					r.complained(t, test.says)
					r.told(t, "\n  ") // what to do
				}
				if want := map[int]string{0: "Done.\n"}[test.code]; r.stdout != want {
					t.Errorf("standard output is %q, want %q", r.stdout, want)
				}
				if n := len(server.Requests()); n != test.requests {
					t.Errorf("%d requests, want %d", n, test.requests)
				}
				if ran := exists(c.path("out/ran.txt")); ran != (test.name == "nothing fails") {
					t.Errorf("the code was run: %v", ran)
				}
				if strings.Contains(r.stderr+r.stdout, secret) {
					t.Errorf("the key is shown: %s", r.stderr)
				}
			})
		}
	}
}

// TestAskUnreachable asks where nothing listens, as JSON: a failure is the last line.
func TestAskUnreachable(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	eachProvider(t, func(t *testing.T, provider string) {
		c, _ := asking(t, provider+"/scripted", nil, "--json", "--quiet", "Hello?")
		c.setenv("OPENAI_BASE_URL=http://"+address+"/v1", "ANTHROPIC_BASE_URL=http://"+address)
		r := c.run()
		r.ended(t, 125)
		r.complained(t, "nothing is listening at "+address)
		lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
		if last := lines[len(lines)-1]; !strings.HasPrefix(last, `{"type":"failure",`) || !strings.Contains(last, `"code":"model_unreachable"`) {
			t.Errorf("the last line is %s", last)
		}
		documented(t, r.stdout)
	})
}

// TestAskStepLimit gives a model that never stops two steps: it must answer, and the exit code says that it was stopped.
func TestAskStepLimit(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	eachProvider(t, func(t *testing.T, provider string) {
		c, server := asking(t, provider+"/scripted", nil, "--max-steps", "2", "Count.")
		server.Decide(func(n int, r modeltest.Request) modeltest.Turn {
			if strings.Contains(r.Text(), "You have reached the limit of 2 code executions") {
				return modeltest.Say("I counted to 2 and was stopped.")
			}
			return modeltest.Run(fmt.Sprintf("print(%d)", n+1))
		})
		r := c.run()
		r.ended(t, 1)
		r.told(t, "the limit of 2 code executions")
		if r.stdout != "I counted to 2 and was stopped.\n" {
			t.Errorf("the answer is %q", r.stdout)
		}
	})
	t.Run("and the model is gone", func(t *testing.T) {
		t.Parallel()
		c, server := asking(t, "openai/scripted", nil, "--max-steps", "1", "--quiet", "Count.")
		server.Decide(func(n int, _ modeltest.Request) modeltest.Turn {
			if n < 2 {
				return modeltest.Run(fmt.Sprintf("print('counted to', %d)", n))
			}
			return modeltest.Error(401, "authentication_error", "expired")
		})
		r := c.run()
		r.ended(t, 1)
		if !strings.Contains(r.stdout, "I reached the limit of 1 code executions before I could finish") || !strings.Contains(r.stdout, "counted to 0") {
			t.Errorf("the answer is %q", r.stdout)
		}
	})
}
