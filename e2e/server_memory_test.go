package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cove/internal/llm/model/modeltest"
	"cove/internal/server/auth"
	"cove/internal/testkit/testneeds"
)

// littleGarbage has the server collect garbage often: what counts is what it holds, not what a busy machine has not collected yet.
const littleGarbage = "GOGC=25"

// memory returns a line of /proc/PID/status, in MiB: VmRSS is what a process has in memory, VmHWM the most that it had.
func (s *server) memory(line string) int {
	s.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		s.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), line+":")
	kib, err := strconv.Atoi(strings.Fields(rest + " 0")[0])
	if err != nil || kib == 0 {
		s.t.Fatalf("the server's memory is not known (%v): %s", err, s.stderr.String())
	}
	return kib >> 10
}

// repeated is a JSON text of about so many MiB: head, one after the other for as long as it takes, and tail.
func repeated(head, one, tail string, mib int) func() io.Reader {
	n := (mib << 20) / len(one)
	piece := strings.Repeat(one, 1<<16/len(one)+1)
	pieces := n*len(one)/len(piece) + 1
	return func() io.Reader {
		readers := []io.Reader{strings.NewReader(head)}
		for range pieces {
			readers = append(readers, strings.NewReader(piece))
		}
		return io.MultiReader(append(readers, strings.NewReader(tail))...)
	}
}

// send makes a request with a body that is made while it is sent.
func (s *server) send(ctx context.Context, path string, body io.Reader) (reply, error) {
	req, err := http.NewRequestWithContext(ctx, "POST", s.base+path, body)
	if err != nil {
		return reply{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+s.key)
	response, err := http.DefaultClient.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return reply{response.StatusCode, response.Header, text}, err
}

// atOnce sends a body n times at the same moment and returns the answers.
func (s *server) atOnce(n int, path string, body func() io.Reader) []reply {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	answers := make([]reply, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			var err error
			if answers[i], err = s.send(ctx, path, body()); err != nil {
				s.t.Errorf("%s: %v", path, err)
			}
		})
	}
	all.Wait()
	return answers
}

// shrinks waits until the server has given memory back.
func (s *server) shrinks(below int) {
	s.t.Helper()
	deadline := time.Now().Add(patience)
	for s.memory("VmRSS") > below {
		if time.Now().After(deadline) {
			s.t.Errorf("the server keeps %d MiB, and had %d at most", s.memory("VmRSS"), s.memory("VmHWM"))
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// TestScaleMemoryOfRequests sends bodies that are small on the wire and very large once they are decoded, and large ones that are fine, many at
// once. The server refuses the former while they arrive and takes the latter one after the other; what it took it gives back.
func TestScaleMemoryOfRequests(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	service := modeltest.NewServer()
	t.Cleanup(service.Close)
	service.Decide(func(int, modeltest.Request) modeltest.Turn { return modeltest.Say("Seen.") })
	key := auth.NewText()
	s := startServer(t, "", key, "COVE_MODEL=openai/gpt-4o", "OPENAI_BASE_URL="+service.OpenAIURL(), "OPENAI_API_KEY="+secret, littleGarbage)
	var container struct{ ID string }
	s.must("POST", "/v1/containers", map[string]any{"name": "c"}, &container)
	session := s.session()
	base := s.memory("VmRSS")
	hostile := map[string]func() io.Reader{
		"/v1/responses":                               repeated(`{"model":"x","input":[{}`, ",{}", `]}`, 28),
		"/v1/chat/completions":                        repeated(`{"model":"x","messages":[[]`, ",[]", `]}`, 28),
		"/v1/conversations":                           repeated(`{"metadata":{"a":0`, `,"a":0`, `}}`, 28),
		"/v1/containers/" + container.ID + "/files":   repeated(`{"file_id":`, "[", ``, 28),
		"/api/v1/sessions/" + session + "/executions": repeated(`{"code":"1","env":{"a":[0`, ",0", `]}}`, 3),
	}
	for path, body := range hostile {
		for _, r := range s.atOnce(8, path, body) {
			if r.status != http.StatusRequestEntityTooLarge || !strings.Contains(string(r.body), "request_too_complex") {
				t.Errorf("%s: %d %.300s", path, r.status, r.body)
			}
		}
	}
	if peak := s.memory("VmHWM"); peak > base+200 {
		t.Errorf("refused requests took the server from %d to %d MiB", base, peak)
	}
	picture := repeated(`{"model":"openai/gpt-4o","input":[{"role":"user","content":[{"type":"input_text","text":"What is it?"},{"type":"input_image","image_url":"data:image/png;base64,`+
		pngHead, "AAAA", `"}]}]}`, 24)
	served := 0
	for _, r := range s.atOnce(8, "/v1/responses", picture) {
		switch {
		case r.status == http.StatusOK:
			served++
		case (r.status == http.StatusTooManyRequests || r.status == http.StatusServiceUnavailable) && r.header.Get("Retry-After") != "":
		default:
			t.Errorf("a picture: %d %.300s", r.status, r.body)
		}
	}
	if served == 0 {
		t.Error("no picture was taken")
	}
	// The room for requests is an eighth of the machine's memory, 1 GiB at most, and what it holds is estimated on the high side.
	peak := s.memory("VmHWM")
	if peak > base+1300 {
		t.Errorf("eight pictures took the server from %d to %d MiB", base, peak)
	}
	t.Logf("%d MiB at first, %d at most, %d of 8 pictures served", base, peak, served)
	s.shrinks(base + 400) // SQLite keeps some of it
	s.stop()
}

// TestScaleMemoryOfModels has a model say what no answer has: the server passes on what one may have, and gives the memory back.
func TestScaleMemoryOfModels(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	service := modeltest.NewServer()
	t.Cleanup(service.Close)
	turns := []modeltest.Turn{
		{Text: []string{"a", strings.Repeat("x", 30<<20)}},
		{Text: slices.Repeat([]string{strings.Repeat("word ", 1000)}, 8), Fault: modeltest.Fault{RepeatAfter: 5}},
		{Calls: []modeltest.Call{{Name: "f", Arguments: `{"a":"` + strings.Repeat("x", 30<<20) + `"}`, Fragment: 1 << 30}}},
	}
	service.Decide(func(n int, _ modeltest.Request) modeltest.Turn { return turns[n%len(turns)] })
	key := auth.NewText()
	s := startServer(t, "", key, "COVE_MODEL=openai/gpt-4o", "OPENAI_BASE_URL="+service.OpenAIURL(), "OPENAI_API_KEY="+secret, littleGarbage)
	base := s.memory("VmRSS")
	for path, ask := range map[string]string{
		"/v1/responses":        `{"model":"openai/gpt-4o","input":"Say it."}`,
		"/v1/chat/completions": `{"model":"openai/gpt-4o","messages":[{"role":"user","content":"Say it."}]}`,
	} {
		for _, r := range s.atOnce(2*len(turns), path, func() io.Reader { return strings.NewReader(ask) }) {
			if r.status != http.StatusBadGateway || !strings.Contains(string(r.body), "model_answer_too_long") || r.header.Get("X-Should-Retry") != "false" {
				t.Errorf("%s: %d %v %.300s", path, r.status, r.header, r.body)
			}
		}
	}
	if n := len(service.Requests()); n != 4*len(turns) {
		t.Errorf("the model was asked %d times", n)
	}
	if peak := s.memory("VmHWM"); peak > base+400 {
		t.Errorf("long answers took the server from %d to %d MiB", base, peak)
	}
	t.Logf("%d MiB at first, %d at most", base, s.memory("VmHWM"))
	s.shrinks(base + 150)
	s.stop()
}

// pngHead is the beginning of a PNG in base64.
const pngHead = "iVBORw0KGgoAAAAN"

// TestScaleMemoryOfConversations has a conversation grow to what a turn cannot go on from, and reads it many times at once.
func TestScaleMemoryOfConversations(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	service := modeltest.NewServer()
	t.Cleanup(service.Close)
	service.Decide(func(int, modeltest.Request) modeltest.Turn { return modeltest.Say("Seen.") })
	key := auth.NewText()
	s := startServer(t, "", key, "COVE_MODEL=openai/gpt-4o", "OPENAI_BASE_URL="+service.OpenAIURL(), "OPENAI_API_KEY="+secret, littleGarbage)
	previous, code := "", ""
	for range 10 {
		ask := map[string]any{"model": "openai/gpt-4o", "input": strings.Repeat("words ", 1<<20)}
		if previous != "" {
			ask["previous_response_id"] = previous
		}
		text, err := json.Marshal(ask)
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.send(t.Context(), "/v1/responses", bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		var answer struct {
			ID    string
			Error struct{ Code string }
		}
		r.into(t, &answer)
		if r.status != http.StatusOK {
			code = answer.Error.Code
			break
		}
		previous = answer.ID
	}
	if code != "conversation_too_large" {
		t.Fatalf("a conversation grows without an end: %q", code)
	}
	before := s.memory("VmHWM")
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			r, err := s.patiently(t.Context(), "GET", "/v1/responses/"+previous, nil)
			if err != nil || r.status != http.StatusOK {
				t.Errorf("%v %d %.200s", err, r.status, r.body)
			}
		})
	}
	all.Wait()
	if peak := s.memory("VmHWM"); peak > before+1300 {
		t.Errorf("reading a response took the server from %d to %d MiB", before, peak)
	}
	s.stop()
}
