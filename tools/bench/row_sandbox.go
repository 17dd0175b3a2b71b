package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Sandboxing is a Subject that does what clients of E2B ask of a server: a sandbox of one's own, and code in it.
type Sandboxing interface {
	// Refill returns when what is prepared ahead of need is there. It is not timed.
	Refill(ctx context.Context) error
	// Sandbox makes one.
	Sandbox(ctx context.Context) (Live, error)
}

var _, _, _ Sandboxing = (*coveServer)(nil), (*dockerKept)(nil), (*gateway)(nil)

func sandboxRow() Row {
	const warm, perRound = 2, 20
	return Row{
		ID: "sandbox", Title: "a sandbox as E2B's clients use it", Rounds: 15, Quick: 3,
		Measures: []Measure{
			{ID: "sandbox-first", Title: "E2B: from create() to the first run_code's result", Unit: "ms",
				Detail: "1+1. cove: E2B's own requests; docker: a new container with a Python that stays; the gateway: a new kernel. What the server can prepare ahead is there."},
			{ID: "sandbox-run", Title: "E2B: one more run_code", Unit: "ms", Detail: fmt.Sprintf("1+1, %d in each sandbox, after %d that do not count.", perRound, warm)},
		},
		Able: as[Sandboxing]("it is nobody's way to have sandboxes for clients"),
		Round: func(ctx context.Context, s Subject, rec Recorder) (err error) {
			p := s.(Sandboxing)
			if err := p.Refill(ctx); err != nil {
				return fmt.Errorf("prepare: %w", err)
			}
			defer quiet(ctx, p)
			begun := time.Now()
			l, err := p.Sandbox(ctx)
			if err != nil {
				return err
			}
			defer free(ctx, l, &err)
			d, err := timed(ctx, begun, l, sum())
			if err != nil {
				return err
			}
			rec.took(0, d)
			for i := range warm + perRound {
				d, err := timed(ctx, time.Now(), l, sum())
				if err != nil {
					return err
				}
				if i >= warm {
					rec.took(1, d)
				}
			}
			return nil
		},
	}
}

// Sandbox implements Sandboxing.
func (s *dockerKept) Sandbox(ctx context.Context) (Live, error) { return s.Open(ctx) }

// Refill implements Sandboxing: nothing is prepared.
func (s *dockerKept) Refill(context.Context) error { return nil }

// Sandbox implements Sandboxing.
func (s *gateway) Sandbox(ctx context.Context) (Live, error) { return s.Cold(ctx) }

// Sandbox implements Sandboxing, with the requests of E2B's libraries.
func (s *coveServer) Sandbox(ctx context.Context) (Live, error) {
	var made struct {
		ID    string `json:"sandboxID"`
		Token string `json:"envdAccessToken"`
	}
	if err := s.api.call(ctx, http.MethodPost, "/sandboxes", `{"templateID":"code-interpreter-v1","timeout":300}`, http.StatusCreated, &made); err != nil {
		return nil, err
	}
	inside := remote{host: s.api.host, client: s.api.client, header: http.Header{"E2b-Sandbox-Id": {made.ID}, "E2b-Sandbox-Port": {"49999"}, "X-Access-Token": {made.Token}}}
	return &sandboxed{outside: s.api, inside: inside, id: made.ID}, nil
}

// sandboxed is a sandbox of cove's, by E2B's interface.
type sandboxed struct {
	outside, inside remote
	id              string
}

// Run implements Live: run_code.
func (b *sandboxed) Run(ctx context.Context, t Task) (out Output, err error) {
	body, err := json.Marshal(map[string]string{"code": t.Cell(), "language": "python"})
	if err != nil {
		return out, err
	}
	answer, err := b.inside.send(ctx, http.MethodPost, "/execute", string(body), "application/json")
	if err != nil {
		return out, err
	}
	defer answer.Body.Close() //nolint:errcheck // it has been read
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
		return out, fmt.Errorf("execute: %s: %s", answer.Status, lastWords(string(text)))
	}
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, maxServedEvent)
	for lines.Scan() {
		var e struct{ Type, Text, Name, Value string }
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return out, fmt.Errorf("read an event: %w", err)
		}
		switch e.Type {
		case "stdout", "stderr":
			out.Bytes += int64(len(e.Text))
		case "result":
			out.Text = e.Text
		case "error":
			err = fmt.Errorf("%s: %s", e.Name, e.Value)
		case "end_of_execution":
			return out, err
		}
	}
	return out, errors.Join(err, lines.Err(), errors.New("the answer does not say that the execution has ended"))
}

// Close implements Live: kill().
func (b *sandboxed) Close(ctx context.Context) error {
	return b.outside.call(ctx, http.MethodDelete, "/sandboxes/"+b.id, "", http.StatusNoContent, nil)
}
