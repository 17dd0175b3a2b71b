package openai_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"cove/internal/core/ident"
	"cove/internal/server/hub"
)

// ranItem is an execution as clients send it back.
func ranItem(container string) string {
	return fmt.Sprintf(`{"type":"code_interpreter_call","id":%q,"status":"completed","code":"x = 1","container_id":%q,"outputs":[]}`, ident.New("ci"), container)
}

func replayed(items ...string) string {
	return `{"model":"m","store":false,"tools":[{"type":"code_interpreter","container":{"type":"auto"}}],"input":[{"role":"user","content":"Q"},` +
		strings.Join(items, ",") + `,{"role":"user","content":"And now?"}]}`
}

// container makes a session and returns its container's id.
func (f *fakeHub) container(change func(*hub.Session)) (session, container string) {
	s := &hub.Session{ID: ident.New(ident.Session), Created: start, Used: start, State: hub.SessionActive}
	if change != nil {
		change(s)
	}
	f.sessions[s.ID] = s
	f.trees[s.ID] = &fakeTree{files: map[string][]byte{}}
	return s.ID, "cntr_" + ident.Body(s.ID)
}

// TestReplayedContainer is the second turn of a client that keeps the conversation itself.
func TestReplayedContainer(t *testing.T) {
	t.Parallel()
	f := newFake(worked()...)
	s := serve(t, f)
	old, oldC := f.container(nil)
	newer, newerC := f.container(nil)
	lost, lostC := f.container(func(s *hub.Session) { s.State = hub.SessionLost })
	_, goneC := f.container(func(s *hub.Session) { s.State = hub.SessionDeleted })
	_, expiredC := f.container(func(s *hub.Session) {
		s.Metadata, s.Used = map[string]string{"openai.expires_after": "20"}, start.Add(-21*time.Minute)
	})
	foreignC := "cntr_" + ident.Body(ident.New(ident.Session))
	for name, c := range map[string]struct {
		containers []string
		want       string
	}{
		"the newest":            {[]string{oldC, newerC}, newer},
		"the newest that lives": {[]string{oldC, newerC, lostC, goneC, expiredC, foreignC}, newer},
		"an older one":          {[]string{oldC, goneC}, old},
		"a lost one at last":    {[]string{lostC, expiredC}, lost},
		"none that can be used": {[]string{goneC, expiredC, foreignC, "cntr_../x", "sess_1"}, ""},
	} {
		var items []string
		for _, container := range c.containers {
			items = append(items, ranItem(container))
		}
		before := len(f.asked)
		if status, body, _ := ask(t, s, http.MethodPost, "/v1/responses", replayed(items...)); status != 200 {
			t.Fatalf("%s: %d %v", name, status, body)
		}
		if got := f.asked[before].Session; got != c.want {
			t.Errorf("%s: the turn runs in %q, want %q", name, got, c.want)
		}
	}
}

// TestReplayedReferences has the container found through a reference to an item, and through an item without one.
func TestReplayedReferences(t *testing.T) {
	t.Parallel()
	f := newFake(worked()...)
	s := serve(t, f)
	_, first, _ := ask(t, s, http.MethodPost, "/v1/responses", `{"model":"m","tools":[{"type":"code_interpreter","container":{"type":"auto"}}],"input":"Q"}`)
	id, container := at(first, "output", 2, "id").(string), at(first, "output", 2, "container_id").(string)
	for _, item := range []string{
		fmt.Sprintf(`{"type":"item_reference","id":%q}`, id),
		fmt.Sprintf(`{"type":"code_interpreter_call","id":%q,"code":"x","status":"completed"}`, id),
	} {
		_, next, _ := ask(t, s, http.MethodPost, "/v1/responses", replayed(item))
		if got := at(next, "output", 2, "container_id"); got != container {
			t.Errorf("%s: %v, want %s", item, got, container)
		}
	}
}

// TestReplayedIntoConversation has the items come with the conversation.
func TestReplayedIntoConversation(t *testing.T) {
	t.Parallel()
	f := newFake(worked()...)
	s := serve(t, f)
	session, container := f.container(nil)
	_, talk, _ := ask(t, s, http.MethodPost, "/v1/conversations", `{"items":[{"role":"user","content":"Q"},`+ranItem(container)+`]}`)
	body := fmt.Sprintf(`{"model":"m","conversation":%q,"tools":[{"type":"code_interpreter","container":{"type":"auto"}}],"input":"And now?"}`, talk["id"])
	if status, answer, _ := ask(t, s, http.MethodPost, "/v1/responses", body); status != 200 || f.asked[0].Session != session {
		t.Errorf("%d %v: %q, want %q", status, answer, f.asked[0].Session, session)
	}
}

// TestReplayedFiles has files that came with the earlier turns stay as the code left them, and new ones put there.
func TestReplayedFiles(t *testing.T) {
	t.Parallel()
	f := newFake(worked()...)
	s := serve(t, f)
	_, container := f.container(nil)
	file := func(text string) string {
		return fmt.Sprintf(`{"role":"user","content":[{"type":"input_file","filename":"data.csv","file_data":%q}]}`, base64.StdEncoding.EncodeToString([]byte(text)))
	}
	body := replayed(file("old"), ranItem(container), file("new"))
	if status, answer, _ := ask(t, s, http.MethodPost, "/v1/responses", body); status != 200 {
		t.Fatalf("%d %v", status, answer)
	}
	n := f.asked[0]
	if len(n.Files) != 1 || string(f.files[n.Files[0]].data) != "new" || n.Names[n.Files[0]] != "data (2).csv" {
		t.Errorf("%v %v", n.Files, n.Names)
	}
}

// TestFilesOfOneName are two files that a client calls the same.
func TestFilesOfOneName(t *testing.T) {
	t.Parallel()
	f := newFake(worked()...)
	s := serve(t, f)
	part := func(name, text string) string {
		return fmt.Sprintf(`{"type":"input_file","filename":%q,"file_data":%q}`, name, base64.StdEncoding.EncodeToString([]byte(text)))
	}
	send := func(more string, parts ...string) map[string]any {
		body := `{"model":"m","tools":[{"type":"code_interpreter","container":{"type":"auto"}}],"input":[{"role":"user","content":[` +
			strings.Join(parts, ",") + `,{"type":"input_text","text":"Compare them."}]}]` + more + `}`
		status, answer, _ := ask(t, s, http.MethodPost, "/v1/responses", body)
		if status != 200 {
			t.Fatalf("%d %v", status, answer)
		}
		return answer
	}
	// saved is what the workspace gets: contents by name.
	saved := func(n hub.NewTurn) map[string]string {
		out := map[string]string{}
		for _, id := range n.Files {
			name := f.files[id].Name
			if other, ok := n.Names[id]; ok {
				name = other
			}
			out[name] += string(f.files[id].data)
		}
		return out
	}
	first := send("", part("data.csv", "a"), part("data.csv", "b"), part("data (2).csv", "c"), part("data.csv", "a"), part("README", "r"), part("README", "s"))
	want := map[string]string{"data.csv": "aa", "data (2).csv": "b", "data (2) (2).csv": "c", "README": "r", "README (2)": "s"}
	if got := saved(f.asked[0]); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	told, _ := json.Marshal(f.asked[0].Input)
	for _, name := range []string{`data (2).csv`, `data (2) (2).csv`, `README (2)`} {
		if !strings.Contains(string(told), `\"`+name+`\" in the workspace`) {
			t.Errorf("the model is not told of %s: %s", name, told)
		}
	}
	// A later turn knows the names of those before it.
	send(fmt.Sprintf(`,"previous_response_id":%q`, first["id"]), part("data.csv", "d"))
	if got := slices.Sorted(maps.Keys(saved(f.asked[1]))); !slices.Equal(got, []string{"data (3).csv"}) {
		t.Errorf("%v", got)
	}
}
