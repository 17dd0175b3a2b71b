package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"cove/internal/llm/model/modeltest"
	"cove/internal/server/auth"
)

// caller is somebody with a key, or with none that is good.
type caller struct {
	name string
	key  string // "" sends none
	who  auth.Principal
	home *tenant // nil: the key is not good
	own  bool    // is asked for his own objects only
}

// may says whether auth's table gives the caller all of the rights.
func (c caller) may(needs []auth.Action) bool {
	return !slices.ContainsFunc(needs, func(a auth.Action) bool { return !c.who.May(a) })
}

// tenant is a project with objects in it.
type tenant struct {
	w      *world
	name   string
	id     string
	key    string // of an owner, who makes the objects
	holder string // the user whose keys are made to be revoked
	kept   map[string]string
	makers map[string]func() string
}

// world is a server with tenants and callers.
type world struct {
	*server
	t    *testing.T
	n    int
	from int // addresses that requests came from
}

// number is one that nobody had yet.
func (w *world) number() string {
	w.n++
	return fmt.Sprint(w.n)
}

// ask makes a request with a key. Each request comes from an address of its own, lest wrong keys hold the others back.
func (w *world) ask(key, method, path, kind, body string) reply {
	w.t.Helper()
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.base+path, content)
	if err != nil {
		w.t.Fatal(err)
	}
	w.from++
	req.Header.Set("X-Forwarded-For", fmt.Sprintf("10.%d.%d.%d", w.from>>16, w.from>>8&255, w.from&255))
	if body != "" {
		req.Header.Set("Content-Type", kind)
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	response, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer func() { _ = response.Body.Close() }()
	var whole io.Reader = response.Body
	if response.StatusCode == http.StatusOK && (strings.HasPrefix(path, "/api/v1/events") || strings.Contains(path, "/fs/watch")) { // without an end; this much comes at once
		whole = io.LimitReader(whole, int64(len("retry: 1000\n\n")))
	}
	text, err := io.ReadAll(whole)
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
	return reply{response.StatusCode, response.Header, text}
}

// make makes a thing and returns a field of the answer.
func (w *world) make(key, method, path, body, field string) string {
	w.t.Helper()
	r := w.ask(key, method, path, "application/json", body)
	if r.status/100 != 2 {
		w.t.Fatalf("%s %s: %d %s", method, path, r.status, r.body)
	}
	if field == "" {
		return ""
	}
	var answer map[string]any
	r.into(w.t, &answer)
	for part := range strings.SplitSeq(field, ".") {
		switch v := answer[part].(type) {
		case string:
			return v
		case map[string]any:
			answer = v
		case []any:
			answer, _ = v[0].(map[string]any)
		}
	}
	w.t.Fatalf("%s %s: no %s in %s", method, path, field, r.body)
	return ""
}

// tenant describes how the objects of a project are made.
func (w *world) tenant(name, id, key, holder string) *tenant {
	x := &tenant{w: w, name: name, id: id, key: key, holder: holder, kept: map[string]string{}}
	post := func(path, body, field string) string { return w.make(key, "POST", path, body, field) }
	file := func() string {
		name := "d" + w.number() + ".csv"
		w.make(key, "PUT", "/api/v1/sessions/"+x.object("session")+"/files/"+name, `a,b`, "")
		return name
	}
	x.makers = map[string]func() string{
		"session": func() string { return post("/api/v1/sessions", "", "id") },
		"kernel": func() string {
			return post("/api/v1/sessions/"+x.object("session")+"/kernels", `{"name":"k`+w.number()+`"}`, "name")
		},
		"port":   func() string { return "8000" },
		"widget": func() string { return "0123456789abcdef" }, // that nobody has made
		"number": func() string { return "1" },                // of an execution's calls
		"step":   func() string { return "1" },                // of a turn
		"process": func() string {
			return post("/api/v1/sessions/"+x.object("session")+"/processes", `{"line":"sleep 2","terminal":{"columns":80,"rows":24}}`, "id")
		},
		"execution": func() string {
			return post("/api/v1/sessions/"+x.object("session")+"/executions?wait=true", `{"code":"print(1)"}`, "id")
		},
		"provider":     func() string { return "mars" }, // the server's models stay as they are
		"table":        func() string { return "grid" },
		"column":       func() string { return "0" },
		"path":         file,
		"conversation": func() string { return post("/api/v1/conversations", `{}`, "id") },
		"busy": func() string { // its turn waits for a word, and its queue for that
			return post("/api/v1/turns?background=true", `{"prompt":"run something","approval":"always"}`, "conversation")
		},
		"question": func() string {
			return post("/api/v1/conversations/"+x.object("busy")+"/queue", `{"prompt":"greet"}`, "id")
		},
		"turn": func() string {
			return post("/api/v1/conversations/"+x.object("conversation")+"/turns?wait=true", `{"prompt":"greet","session":"`+x.object("session")+`"}`, "id")
		},
		"file":    func() string { return post("/api/v1/files?name=f.csv", `a,b`, "id") },
		"key":     func() string { return post("/api/v1/keys", `{"name":"k","user":"`+holder+`"}`, "key.id") },
		"keytext": func() string { return post("/api/v1/keys", `{"name":"k"}`, "text") },
		"browser": func() string { return post("/api/v1/sign-in", `{"key":"`+key+`"}`, "browser") },
		"share": func() string {
			x.object("kernel") // and the path and the process: before the turn, to whose beginning sessions are returned
			x.object("process")
			x.object("path")
			x.object("turn")
			return post("/api/v1/conversations/"+x.object("conversation")+"/shares", `{}`, "id")
		},
		"link": func() string {
			return post("/api/v1/sessions/"+x.object("session")+"/links", `{"purpose":"read","path":"`+x.object("path")+`"}`, "id")
		},
		"linkcode": func() string {
			return post("/api/v1/sessions/"+x.object("session")+"/links", `{"purpose":"read","path":"`+x.object("path")+`"}`, "code")
		},
		"code": func() string {
			x.object("kernel") // and the path and the process: before the turn, to whose beginning sessions are returned
			x.object("process")
			x.object("path")
			x.object("turn")
			return post("/api/v1/conversations/"+x.object("conversation")+"/shares", `{}`, "code")
		},
		"invitation":     func() string { return post("/api/v1/invitations", `{"role":"viewer"}`, "id") },
		"invitationcode": func() string { return post("/api/v1/invitations", `{"role":"viewer"}`, "code") },
		"project":        func() string { return id },
		"user":           func() string { return w.make(w.key, "POST", "/api/v1/users", `{"name":"u`+w.number()+`"}`, "id") },
		"member":         func() string { user, _ := w.member(x.id, auth.Viewer); return user },
		"response":       func() string { return post("/v1/responses", `{"model":"scripted","input":"greet"}`, "id") },
		"thread":         func() string { return post("/v1/conversations", `{}`, "id") },
		"item": func() string {
			return post("/v1/conversations/"+x.object("thread")+"/items", `{"items":[{"role":"user","content":"greet"}]}`, "data.id")
		},
		"container": func() string { return post("/v1/containers", `{"name":"c"}`, "id") },
		"cfile": func() string {
			path := "c" + w.number() + ".csv"
			w.make(key, "PUT", "/api/v1/sessions/ses_"+strings.TrimPrefix(x.object("container"), "cntr_")+"/files/"+path, `a,b`, "")
			return containerFile(path)
		},
		"parcel": func() string {
			return post("/v1/uploads", `{"filename":"u.csv","bytes":100,"mime_type":"text/csv","purpose":"user_data"}`, "id")
		},
		"incoming": func() string { return post("/api/v1/uploads", `{"name":"u.csv","size":100}`, "id") },
		"upload": func() string {
			return "file-" + strings.TrimPrefix(post("/api/v1/files?name=u.csv", `a,b`, "id"), "fil_")
		},
	}
	return x
}

// object is the one of that word that everybody is shown.
func (x *tenant) object(word string) string {
	if x.kept[word] == "" {
		x.kept[word] = x.makers[word]()
	}
	return x.kept[word]
}

// member makes a user who has a role in a project, and a key for him.
func (w *world) member(project string, role auth.Role) (user, key string) {
	w.t.Helper()
	user = w.make(w.key, "POST", "/api/v1/users", `{"name":"`+string(role)+w.number()+`"}`, "id")
	w.make(w.key, "PUT", "/api/v1/projects/"+project+"/members/"+user, `{"role":"`+string(role)+`"}`, "")
	return user, w.make(w.key, "POST", "/api/v1/keys", `{"name":"k","project":"`+project+`","user":"`+user+`"}`, "text")
}

// callers makes two projects beside the server's own, and everybody who may come.
func (w *world) callers() (all []caller, tenants []*tenant) {
	w.t.Helper()
	first := w.make(w.key, "POST", "/api/v1/projects", `{"name":"a"}`, "id")
	second := w.make(w.key, "POST", "/api/v1/projects", `{"name":"b"}`, "id")
	users, keys := map[auth.Role]string{}, map[auth.Role]string{}
	for _, role := range auth.Roles() {
		users[role], keys[role] = w.member(first, role)
	}
	owner, key := w.member(second, auth.Owner)
	a, b := w.tenant("a", first, keys[auth.Owner], users[auth.Member]), w.tenant("b", second, key, owner)
	root := w.tenant("the server", auth.LocalProject, w.key, auth.LocalUser)
	for _, role := range auth.Roles() {
		all = append(all, caller{name: string(role), key: keys[role], who: auth.Principal{Role: role}, home: a})
	}
	all = append(all,
		caller{name: "owner of b", key: key, who: auth.Principal{Role: auth.Owner}, home: b},
		caller{name: "admin of the server", key: w.key, who: auth.Principal{Role: auth.Owner, Admin: true}, home: root})
	for _, action := range auth.Actions() {
		only := w.make(w.key, "POST", "/api/v1/keys", `{"name":"one","scopes":["`+string(action)+`"]}`, "text")
		all = append(all, caller{name: "key for " + string(action), key: only, home: root, own: true,
			who: auth.Principal{Role: auth.Owner, Admin: true, Scopes: []auth.Action{action}}})
	}
	return append(all, w.strangers()...), []*tenant{a, b, root}
}

// strangers have no good key.
func (w *world) strangers() []caller {
	revoked := w.ask(w.key, "POST", "/api/v1/keys", "application/json", `{"name":"revoked"}`)
	var made struct {
		Text string
		Key  struct{ ID string }
	}
	revoked.into(w.t, &made)
	w.make(w.key, "DELETE", "/api/v1/keys/"+made.Key.ID, "", "")
	expired := w.make(w.key, "POST", "/api/v1/keys", `{"name":"short","life_seconds":1}`, "text")
	for deadline := time.Now().Add(patience); w.ask(expired, "GET", "/api/v1/me", "", "").status != http.StatusUnauthorized; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatal("the key does not expire")
		}
	}
	return []caller{{name: "nobody"}, {name: "wrong key", key: auth.NewText()}, {name: "no key at all", key: "Bearer"},
		{name: "revoked key", key: made.Text}, {name: "expired key", key: expired}}
}

// fill puts objects into the places of a text: those of x, but for the places that are given. Only who is let in gets objects of his own.
func (x *tenant) fill(text string, given map[string]string, let bool) string {
	return placeholder.ReplaceAllStringFunc(text, func(place string) string {
		word := strings.Trim(place, "{!}")
		if word == "n" {
			return x.w.number()
		}
		if object, ok := given[word]; ok {
			return object
		}
		if strings.Contains(place, "!") && let {
			return x.makers[word]()
		}
		return x.object(word)
	})
}

// call asks for an operation as c, with c's project's objects but for those given.
func (w *world) call(c caller, o operation, given map[string]string, let bool) reply {
	home := c.home
	kind := o.kind
	if kind == "" {
		kind = "application/json"
	}
	return w.ask(c.key, o.method, home.fill(o.path, given, let), kind, home.fill(o.body, given, let))
}

// TestRoutesAndRoles asks for every route of every surface as everybody, and for everybody's objects. What must come of it is told by the route's
// own declaration and auth's table of rights.
func TestRoutesAndRoles(t *testing.T) {
	t.Parallel()
	all, without := operations()
	if len(without) > 0 {
		t.Errorf("give these routes a row in the table of calls: %q", without)
	}
	upstream := modeltest.NewServer()
	t.Cleanup(upstream.Close)
	upstream.Decide(func(_ int, r modeltest.Request) modeltest.Turn {
		if strings.Contains(r.Text(), "run something") {
			return modeltest.Run("print(1)")
		}
		return modeltest.Say("Hello!")
	})
	s := startServer(t, "", testKey(t), "OPENAI_BASE_URL="+upstream.OpenAIURL(), "OPENAI_API_KEY=sk-test", "COVE_MODEL=openai/scripted", "COVE_POOL=1",
		"COVE_REQUESTS_PER_SECOND=0", "COVE_PROJECT_REQUESTS_PER_SECOND=0", "COVE_TRUSTED_PROXIES=127.0.0.1")
	w := &world{server: s, t: t}
	callers, tenants := w.callers()
	for _, x := range tenants {
		for _, word := range slices.Sorted(maps.Keys(x.makers)) {
			x.object(word)
		}
	}
	asked := w.from
	for _, o := range all {
		t.Run(strings.ReplaceAll(o.id, "/", "|"), func(t *testing.T) {
			w.t = t
			for _, c := range callers {
				if c.home == nil {
					c.home = tenants[0]
					w.refused(c, o)
					continue
				}
				w.checkOwn(c, o)
				if !c.own {
					w.checkOthers(c, o, tenants)
				}
			}
		})
	}
	w.t = t
	t.Logf("%d routes, %d callers, %d requests", len(all), len(callers), w.from-asked)
	w.checkKept(tenants)
	if r := w.ask(tenants[0].key, "GET", "/api/v1/audit?limit=1000", "", ""); !strings.Contains(string(r.body), `"target":"`+tenants[1].object("session")+`","outcome":"session_not_found"`) {
		t.Error("nothing in the audit log says that somebody tried another project's session")
	}
	s.stop().ended(t, 0)
}

// refused checks that who has no good key gets nothing but health.
func (w *world) refused(c caller, o operation) {
	r := w.call(c, o, nil, o.public)
	if o.public {
		if r.status != http.StatusOK && r.status != o.also {
			w.t.Errorf("%s: %d %s", c.name, r.status, r.body)
		}
		return
	}
	if r.status != http.StatusUnauthorized || r.header.Get("WWW-Authenticate") == "" {
		w.t.Errorf("%s: %d %s", c.name, r.status, r.body)
	}
}

// checkOwn asks for the caller's own objects.
func (w *world) checkOwn(c caller, o operation) {
	let := c.may(o.needs)
	r := w.call(c, o, nil, let)
	switch {
	case !let && r.status != http.StatusForbidden:
		w.t.Errorf("%s may not: %d %s", c.name, r.status, r.body)
	case !let, r.status/100 == 2, o.also != 0 && r.status == o.also:
	case r.status == http.StatusForbidden && !c.may(o.more): // the call takes more than the route
	default:
		w.t.Errorf("%s may: %d %s", c.name, r.status, r.body)
	}
}

// checkOthers puts another project's object, and one that never was, into each place of the call. Both are not found, in the same words. The other places have
// the objects that stay: what finds nothing takes nothing away.
func (w *world) checkOthers(c caller, o operation, tenants []*tenant) {
	other := tenants[0]
	if c.home == tenants[0] {
		other = tenants[1]
	}
	let := c.may(o.needs)
	for _, word := range o.words() {
		if word == "path" && (o.id == "tree.upload" || o.id == "link.create" || o.id == "fs.replace" || strings.HasPrefix(o.id, "port.")) {
			continue // what is not there is made or comes later, each file has an outcome of its own, or it is the path of another server
		}
		if word == "widget" {
			continue // the kernel finds out: the events of the execution that the answer is say that it is closed
		}
		if word == "keytext" || word == "invitationcode" || word == "linkcode" {
			continue // it says who calls, and a wrong one is nobody's
		}
		absent := never(word)
		missing := w.call(c, o, map[string]string{word: absent}, false)
		w.checkMissing(c, o, word, missing, let)
		if !owned(word) || c.who.May(auth.ServerManage) && (word == "project" || word == "key" || word == "invitation") {
			continue
		}
		hidden := w.call(c, o, map[string]string{word: other.object(word)}, false)
		w.checkMissing(c, o, word+" of another project", hidden, let)
		if a, b := plain(missing, absent), plain(hidden, other.object(word)); a != b {
			w.t.Errorf("%s is told that another project has this %s:\n%s\n%s", c.name, word, a, b)
		}
	}
}

func (w *world) checkMissing(c caller, o operation, what string, r reply, let bool) {
	want := []int{http.StatusForbidden}
	if let {
		want = []int{http.StatusNotFound}
		word, _, _ := strings.Cut(what, " ")
		if !o.inPath(word) && strings.HasPrefix(o.path, "/v1/") {
			want = append(want, http.StatusBadRequest) // OpenAI's answer to a parameter that names nothing
		}
		if !c.may(o.more) {
			want = append(want, http.StatusForbidden)
		}
	}
	if !slices.Contains(want, r.status) {
		w.t.Errorf("%s asks with a %s: %d, want %v: %s", c.name, what, r.status, want, r.body)
	}
}

// plain is an answer without what differs between two that say the same.
func plain(r reply, id string) string {
	var body map[string]any
	if json.Unmarshal(r.body, &body) == nil {
		delete(body, "request_id")
		delete(body, "instance")
		if text, err := json.Marshal(body); err == nil {
			r.body = text
		}
	}
	return fmt.Sprintf("%d %s", r.status, strings.ReplaceAll(string(r.body), id, "ID"))
}

// checkKept looks at the objects that nobody was let in to: those who were refused have not destroyed them.
func (w *world) checkKept(tenants []*tenant) {
	for _, x := range tenants {
		for word, path := range map[string]string{
			"session": "/api/v1/sessions/{session}", "execution": "/api/v1/executions/{execution}", "conversation": "/api/v1/conversations/{conversation}",
			"turn": "/api/v1/turns/{turn}", "file": "/api/v1/files/{file}/content", "project": "/api/v1/projects/{project}",
			"path": "/api/v1/sessions/{session}/files/{path}", "response": "/v1/responses/{response}", "thread": "/v1/conversations/{thread}",
			"container": "/v1/containers/{container}", "cfile": "/v1/containers/{container}/files/{cfile}", "upload": "/v1/files/{upload}",
			"item": "/v1/conversations/{thread}/items/{item}",
		} {
			if r := w.ask(x.key, "GET", x.fill(path, nil, false), "", ""); r.status != http.StatusOK {
				w.t.Errorf("the %s of %s is gone: %d %s", word, x.name, r.status, r.body)
			}
		}
	}
}
