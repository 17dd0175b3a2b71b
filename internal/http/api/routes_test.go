package api_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"html"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/http/api"
	"cove/internal/server/auth"
)

var update = flag.Bool("update", false, "write docs/openapi.json")

// request is one good request of a route, what it must answer and what must be in the answer.
type request struct {
	path, body string
	status     int
	want       string
}

var requests = map[string]request{
	"health":              {"/health", "", 200, `"status":"ok"`},
	"ready":               {"/health/ready", "", 200, `"status":"ready"`},
	"version":             {"/version", "", 200, `"version":"1.2.3"`},
	"settings":            {"/settings", "", 200, `"model":true,"upload_bytes":536870912,"json_bytes":4194304,"sharing":true,"project_quota":{},"scripts":true`},
	"settings.public":     {"/settings/public", "", 200, `"passwords":true`},
	"me":                  {"/me", "", 200, `"project_name":"lab","login":"ada@example.com"`},
	"session.create":      {"/sessions", `{"name":"n","idle_seconds":60}`, 201, `"name":"n"`},
	"session.list":        {"/sessions?state=active&limit=5&meta=a:b", "", 200, `"next":"more"`},
	"session.get":         {"/sessions/" + session, "", 200, `"idle_seconds":60`},
	"session.change":      {"/sessions/" + session, `{"life_seconds":60}`, 200, session},
	"session.pause":       {"/sessions/" + session + "/pause", "", 200, session},
	"session.resume":      {"/sessions/" + session + "/resume", "", 200, session},
	"session.acknowledge": {"/sessions/" + session + "/acknowledge", "", 200, session},
	"session.fork":        {"/sessions/" + session + "/fork", "", 201, `"forked_from":"ses_origin","forked_at":"`},
	"session.points":      {"/sessions/" + session + "/points", "", 200, `"before":[]`},
	"session.point":       {"/sessions/" + session + "/points", "", 201, `"present":false`},
	"session.undo":        {"/sessions/" + session + "/undo", `{"to":"snp_1"}`, 200, session},
	"session.delete":      {"/sessions/" + session, "", 204, ""},
	"kernel.list":         {"/sessions/" + session + "/kernels", "", 200, `"busy":true`},
	"kernel.start":        {"/sessions/" + session + "/kernels", `{"name":"b"}`, 201, `"name":"b"`},
	"kernel.restart":      {"/sessions/" + session + "/kernels/b/restart", "", 200, `"name":"b"`},
	"kernel.stop":         {"/sessions/" + session + "/kernels/b", "", 204, ""},
	"check.run":           {"/checks", `{"code":"x = 1"}`, 200, `"rule":"F821"`},
	"batch.run":           {"/batches", `{"session":"` + session + `","items":[{"code":"1+1","label":"a"},{"prompt":"What?"}]}`, 200, `{"type":"end","succeeded":2,"failed":0,"not_begun":0}`},
	"variable.list":       {"/sessions/" + session + "/kernels/main/variables", "", 200, `"shape":[2,1]`},
	"widget.list":         {"/sessions/" + session + "/kernels/main/widgets", "", 200, `"more":1`},
	"widget.move":         {"/sessions/" + session + "/kernels/main/widgets/w", `{"state":{"value":5}}`, 200, `"id":"exe_1"`},
	"code.complete":       {"/sessions/" + session + "/kernels/main/complete", `{"code":"pri","cursor":3}`, 200, `"matches":["prie"],"start":0,"end":3`},
	"code.describe":       {"/sessions/" + session + "/kernels/main/describe", `{"code":"pri","cursor":3}`, 200, `"text":"pri at 3"`},
	"code.is_complete":    {"/sessions/" + session + "/kernels/main/is-complete", `{"code":"for x in y:"}`, 200, `"status":"incomplete"`},
	"table.read":          {"/sessions/" + session + "/kernels/main/tables/df?sort=index&filter=x", "", 200, `"rows":[[-1]]`},
	"table.profile":       {"/sessions/" + session + "/kernels/main/tables/df/columns/4", "", 200, `"bars":[1,2]`},
	"port.list":           {"/sessions/" + session + "/ports", "", 200, `"port":8000`},
	"network.list":        {"/sessions/" + session + "/network", "", 200, `"refused":"evil.test may not be reached"`},
	"port.connect":        {"/sessions/" + session + "/ports/8000/connect", "", 400, "upgrade_needed"},
	"process.start":       {"/sessions/" + session + "/processes", `{"line":"cat","terminal":{"columns":9,"rows":9},"timeout_seconds":1.5}`, 201, `"command":["cat"]`},
	"process.list":        {"/sessions/" + session + "/processes", "", 200, `"state":"running"`},
	"process.get":         {"/sessions/" + session + "/processes/" + started, "", 200, `"signal":"SIGKILL","reason":"timeout"`},
	"process.input":       {"/sessions/" + session + "/processes/" + started + "/input?end=true", "more", 200, `"bytes":4`},
	"process.events":      {"/sessions/" + session + "/processes/" + started + "/events?after=2", "", 200, `"type":"exit"`},
	"process.output":      {"/sessions/" + session + "/processes/" + started + "/output?of=stdout", "", 200, "é"},
	"process.resize":      {"/sessions/" + session + "/processes/" + started + "/terminal", `{"columns":9,"rows":9}`, 204, ""},
	"process.signal":      {"/sessions/" + session + "/processes/" + started + "/signal", `{"signal":"INT"}`, 204, ""},
	"execution.create":    {"/sessions/" + session + "/executions", `{"code":"1+1","program":"a.py","args":["x"],"env":{"A":"b"},"columns":80,"restart":true,"input":true,"tool_servers":["git"]}`, 200, `"type":"done"`},
	"execution.list":      {"/executions?state=ok", "", 200, execution},
	"session.executions":  {"/sessions/" + session + "/executions", "", 200, execution},
	"execution.get":       {"/executions/" + execution, "", 200, `"last_event":3`},
	"execution.approve":   {"/executions/" + execution + "/calls/1/approve", `{"run":false,"note":"not this one"}`, 200, execution},
	"execution.input":     {"/executions/" + execution + "/inputs/1", `{"text":"Ada"}`, 200, execution},
	"execution.interrupt": {"/executions/" + execution + "/interrupt", "", 200, execution},
	"execution.events":    {"/executions/" + execution + "/events", "", 200, "event: done\n"},
	"tree.list":           {"/sessions/" + session + "/files?path=x", "", 200, `"path":"a.csv"`},
	"tree.stat":           {"/sessions/" + session + "/stat?path=a.csv", "", 200, `"size":3`},
	"tree.preview":        {"/sessions/" + session + "/preview?path=a.csv&sheet=S&offset=3&limit=9", "", 200, `"total":9,"offset":3`},
	"tree.move":           {"/sessions/" + session + "/move", `{"from":"a.csv","to":"b.csv"}`, 200, `"path":"b.csv"`},
	"tree.folder":         {"/sessions/" + session + "/folders", `{"path":"data"}`, 201, `"folder":true`},
	"tree.put":            {"/sessions/" + session + "/files", `{"file":"` + stored + `","path":"p"}`, 201, `"path":"p"`},
	"tree.delete":         {"/sessions/" + session + "/files/a.csv", "", 204, ""},
	"tree.upload":         {"/sessions/" + session + "/files/x/y.csv", "a,b", 201, `"path":"x/y.csv"`},
	"tree.download":       {"/sessions/" + session + "/files/a.csv", "", 200, "abc"},
	"tree.archive":        {"/sessions/" + session + "/archive?format=zip", "", 200, "archive as zip"},
	"fs.stat":             {"/sessions/" + session + "/fs/stat?path=/etc/hosts&link=true", "", 200, `"mode":"0644","permissions":"-rw-r--r--"`},
	"fs.list":             {"/sessions/" + session + "/fs/list?path=data&depth=3", "", 200, `"unnamed":2`},
	"fs.search":           {"/sessions/" + session + "/fs/search?path=data&name=*.csv&text=a", "", 200, `"line":3,"column":7`},
	"fs.change":           {"/sessions/" + session + "/fs/change", `{"path":"a.csv","mode":"0600","attributes":{"x":"y"},"remove_attributes":["z"]}`, 200, `"path":"a.csv"`},
	"fs.move":             {"/sessions/" + session + "/fs/move", `{"from":"a.csv","to":"b.csv","replace":true}`, 200, `"path":"b.csv"`},
	"fs.copy":             {"/sessions/" + session + "/fs/copy", `{"from":"a.csv","to":"b.csv"}`, 200, `"path":"b.csv"`},
	"fs.remove":           {"/sessions/" + session + "/fs/remove", `{"path":"a.csv","all":true}`, 204, ""},
	"fs.folder":           {"/sessions/" + session + "/fs/folder", `{"path":"new","mode":"700","new":true}`, 201, `"path":"new"`},
	"fs.link":             {"/sessions/" + session + "/fs/link", `{"path":"l","target":"a.csv"}`, 201, `"target":"a.csv"`},
	"fs.replace":          {"/sessions/" + session + "/fs/replace", `{"paths":["a.csv"],"text":"a","with":"b"}`, 200, `"times":2`},
	"fs.write":            {"/sessions/" + session + "/fs/content?path=x/y.csv&mode=640", "a,b", 201, `"path":"x/y.csv"`},
	"fs.read":             {"/sessions/" + session + "/fs/content?path=a.csv", "", 200, "abc"},
	"fs.watch":            {"/sessions/" + session + "/fs/watch?path=data&all=true", "", 200, `{"type":"move","path":"b","from":"a"}`},
	"link.create":         {"/sessions/" + session + "/links", `{"purpose":"port","port":8000,"wakes":true}`, 201, `"at":"/p/code of it/","url":"https://8000-00000000000000000000000001.ports.test/?cove-link=code of it"`},
	"link.list":           {"/sessions/" + session + "/links", "", 200, `"purpose":"read"`},
	"link.delete":         {"/sessions/" + session + "/links/" + linked, "", 204, ""},
	"link.read":           {"/linked/toread", "", 200, "abc"},
	"link.write":          {"/linked/towrite", "a,b", 201, `"path":"a.csv"`},
	"port.get":            {"/sessions/" + session + "/ports/8000/http/a?b=c", "", 502, "port_broken"},
	"port.post":           {"/sessions/" + session + "/ports/8000/http/a?b=c", "x", 502, "port_broken"},
	"port.put":            {"/sessions/" + session + "/ports/8000/http/", "x", 502, "port_broken"},
	"port.patch":          {"/sessions/" + session + "/ports/8000/http/", "x", 502, "port_broken"},
	"port.delete":         {"/sessions/" + session + "/ports/8000/http/a", "", 502, "port_broken"},
	"file.create":         {"/files?name=x.csv&purpose=p", "a,b", 201, `"purpose":"p"`},
	"file.list":           {"/files", "", 200, stored},
	"file.get":            {"/files/" + stored, "", 200, `"sha256":"aa"`},
	"file.content":        {"/files/" + stored + "/content", "", 200, "0123456789"},
	"file.delete":         {"/files/" + stored, "", 204, ""},
	"upload.create":       {"/uploads", `{"name":"x.csv","size":10}`, 201, `"size":10,"offset":0`},
	"upload.get":          {"/uploads/" + upload, "", 200, `"offset":4`},
	"upload.append":       {"/uploads/" + upload, "456789", 200, `"offset":10,"expires_at":"2026-11-21T10:00:00Z","file":{"id":"` + stored},
	"upload.delete":       {"/uploads/" + upload, "", 204, ""},
	"package.list":        {"/sessions/" + session + "/packages", "", 200, `"numpy":"2"`},
	"package.install":     {"/sessions/" + session + "/packages", `{"requirements":["polars"]}`, 200, `"type":"install"`},
	"conversation.create": {"/conversations", "", 201, conversation},
	"conversation.list":   {"/conversations", "", 200, conversation},
	"conversation.get":    {"/conversations/" + conversation, "", 200, conversation},
	"conversation.change": {"/conversations/" + conversation, `{"title":"x"}`, 200, conversation},
	"conversation.fork":   {"/conversations/" + conversation + "/fork", "", 201, `"origin":{"conversation":"` + conversation + `","turn":"` + turn},
	"conversation.delete": {"/conversations/" + conversation, "", 204, ""},
	"question.create":     {"/conversations/" + conversation + "/queue", `{"prompt":"?"}`, 201, `"prompt":"?"`},
	"question.list":       {"/conversations/" + conversation + "/queue", "", 200, `"held":{"kind":"exhausted","code":"quota_tokens","message":"used up","since":"2026-11-21T10:00:00Z"}`},
	"question.change":     {"/conversations/" + conversation + "/queue/" + queued, `{"prompt":"!"}`, 200, `"prompt":"!"`},
	"question.delete":     {"/conversations/" + conversation + "/queue/" + queued, "", 204, ""},
	"turn.list":           {"/conversations/" + conversation + "/turns", "", 200, turn},
	"turn.create":         {"/conversations/" + conversation + "/turns", `{"prompt":"?"}`, 200, `"type":"answer"`},
	"turn.create_alone":   {"/turns", `{"prompt":"?"}`, 200, `"type":"answer"`},
	"turn.get":            {"/turns/" + turn, "", 200, `"cost":{"amount":0.000068,"currency":"USD","estimated":true},"context":{"used":33,"size":4096}`},
	"turn.branch":         {"/turns/" + turn + "/branch", "", 200, turn},
	"turn.cancel":         {"/turns/" + turn + "/cancel", "", 200, `"canceled"`},
	"turn.approve":        {"/turns/" + turn + "/approve", `{"step":2,"run":true,"code":"1+1"}`, 200, `"waiting":{"step":2,"code":"1+1"`},
	"turn.rate":           {"/turns/" + turn + "/rating", `{"good":false,"reason":"wrong sum"}`, 200, `"rating":{"good":false,"reason":"wrong sum"`},
	"turn.unrate":         {"/turns/" + turn + "/rating", "", 204, ""},
	"turn.undo":           {"/turns/" + turn + "/undone", `{"from":"` + turn + `"}`, 200, `"undone":{"from":"` + turn},
	"turn.redo":           {"/turns/" + turn + "/undone", "", 204, ""},
	"turn.rerun":          {"/turns/" + turn + "/reruns/2", `{"execution":"exe_1"}`, 200, `"reruns":[{"step":2,"execution":"exe_1"`},
	"turn.unrerun":        {"/turns/" + turn + "/reruns/2", "", 204, ""},
	"rating.list":         {"/ratings", "", 200, `"reason":"wrong sum"`},
	"turn.delete":         {"/turns/" + turn, "", 204, ""},
	"turn.events":         {"/turns/" + turn + "/events", "", 200, "event: answer\n"},
	"events.follow":       {"/events?follow=" + turn + ":1", "", 200, `"of":"` + turn + `"`},
	"conversation.export": {"/conversations/" + conversation + "/export?format=python", "", 200, "# %%"},
	"share.create":        {"/conversations/" + conversation + "/shares", `{"seconds":0}`, 201, `"code":"code of it"`},
	"share.list":          {"/shares", "", 200, `"title":"t"`},
	"share.delete":        {"/shares/shr_1", "", 204, ""},
	"share.show":          {"/shared/abc", "", 200, `{"title":"<shared>"`},
	"tool_server.list": {"/tool-servers", "", 200,
		`{"items":[{"name":"git","tools":[{"name":"git.git_log","function":"git_git_log","parameters":{"type":"object"}}],"without":[{"name":"x","why":"y"}]},{"name":"lost","tools":[],"without":[],"problem":{"code":"tool_server_unreachable"`},
	"search": {"/search?q=churn", "", 200, `"snippet":"churn"`},
	"model.list": {"/models", "", 200,
		`{"id":"a/b","provider":"a","default":true,"context_tokens":4096,"vision":false,"price":{"input":1.25,"output":10,"cached_input":0,"currency":"USD"}},{"id":"a/c","provider":"a","default":false}`},
	"connection.list":          {"/connections", "", 200, `"key_end":"1234"`},
	"connection.set":           {"/connections/openai", `{"key":"sk-secret-of-somebody-9876","models":["m"]}`, 200, `"key_end":"9876"`},
	"connection.delete":        {"/connections/openai", "", 204, ""},
	"connection.try":           {"/connections/try", `{"provider":"openai","key":"k","models":["m"]}`, 200, `"answer":"Hello","seconds":1`},
	"key.create":               {"/keys", `{"name":"k","scopes":["sessions:read"]}`, 201, `"text":"cove_text"`},
	"key.list":                 {"/keys?all=true", "", 200, `"holder":"somebody"`},
	"key.revoke":               {"/keys/key_1", "", 200, `"id":"key_1"`},
	"key.quota":                {"/keys/key_1/quota", `{"tokens_per_day":5}`, 200, `"id":"key_1"`},
	"browser.sign_in":          {"/sign-in", `{"code":"abc"}`, 200, `"browser":"brw_1"`},
	"browser.sign_out":         {"/sign-out", "", 204, ""},
	"browser.list":             {"/browsers", "", 200, `"agent":"Mozilla"`},
	"browser.revoke":           {"/browsers/brw_1", "", 204, ""},
	"invitation.create":        {"/invitations", `{"role":"viewer"}`, 201, `"code":"code of it"`},
	"invitation.list":          {"/invitations", "", 200, `"role":"viewer"`},
	"invitation.delete":        {"/invitations/inv_1", "", 204, ""},
	"invitation.look":          {"/invitations/look", `{"code":"abc"}`, 200, `"project":"lab"`},
	"invitation.accept":        {"/invitations/accept", `{"code":"abc","user":"eve","password":"x"}`, 200, `"browser":"brw_1"`},
	"password.set":             {"/me/password", `{"current":"a","password":"b"}`, 204, ""},
	"user.create":              {"/users", `{"name":"ann"}`, 201, `"name":"ann"`},
	"user.list":                {"/users", "", 200, `"ann"`},
	"user.get":                 {"/users/ann@example.com", "", 200, `"ann@example.com"`},
	"user.change":              {"/users/ann", `{"admin":true}`, 200, `"admin":true`},
	"user.delete":              {"/users/ann", "", 204, ""},
	"project.create":           {"/projects", `{"name":"p"}`, 201, `"p"`},
	"project.list":             {"/projects", "", 200, `"p"`},
	"project.get":              {"/projects/p", "", 200, `"p"`},
	"project.quota":            {"/projects/p/quota", `{"live_sessions":3}`, 200, `"live_sessions":3`},
	"project.instructions":     {"/projects/p/instructions", "", 200, `"instructions":"Be brief."`},
	"project.instructions.set": {"/projects/p/instructions", `{"instructions":"Be brief."}`, 200, `"instructions":"Be brief."`},
	"member.list":              {"/projects/p/members", "", 200, `"member"`},
	"member.set":               {"/projects/p/members/ann", `{"role":"viewer"}`, 200, `"viewer"`},
	"member.remove":            {"/projects/p/members/ann", "", 204, ""},
	"usage.get":                {"/usage?project=p&to=2026-11-21", "", 200, `"day":"2026-11-15","executions":2,"wall_seconds":0,"cpu_seconds":0,"turns":0,"input_tokens":0,"output_tokens":0,"cost":0.25,"currency":"USD"`},
	"usage.projects":           {"/usage/projects?from=2026-11-15&to=2026-11-21", "", 200, `"project":"prj_1","executions":7`},
	"usage.models":             {"/usage/models?to=2026-11-21", "", 200, `"completed":3,"failed":0,"canceled":0,"repaired":1,"steps":0,"failed_steps":0,"installs":0,"failed_installs":0,"input_tokens":0,"output_tokens":0,"seconds":0,"run_seconds":0,"install_seconds":0,"within":[0,0,3,1,0,0,0,0,0,0,0],"median_seconds":4,"p95_seconds":8`},
	"audit.list":               {"/audit?limit=2", "", 200, `"next":"aud_1"`},
}

// headers are those that a good request of a route needs.
var headers = map[string][]string{"upload.append": {"Upload-Offset: 4"}}

func TestEveryRouteAnswers(t *testing.T) {
	t.Parallel()
	for _, r := range api.Routes() {
		t.Run(r.ID, func(t *testing.T) {
			t.Parallel()
			q, ok := requests[r.ID]
			if !ok {
				t.Fatal("the route is not in this test's table")
			}
			w := newWorld(t, nil)
			got := w.do(t, r.Method, api.Prefix+q.path, q.body, headers[r.ID]...)
			if got.status != q.status || !strings.Contains(got.body, q.want) {
				t.Errorf("%d %s\nwanted %d with %s", got.status, got.body, q.status, q.want)
			}
			if strings.Contains(got.body, "secret hash") {
				t.Error("the hash of a key is shown")
			}
		})
	}
	if n := len(api.Routes()); n != len(requests) {
		t.Errorf("%d routes and %d requests", n, len(requests))
	}
}

// Without a caller, without the right, and with a hub that fails, every route says so in the same form.
func TestEveryRouteRefuses(t *testing.T) {
	t.Parallel()
	for _, r := range api.Routes() {
		t.Run(r.ID, func(t *testing.T) {
			t.Parallel()
			q, w := requests[r.ID], newWorld(t, nil)
			w.known = false
			got := w.do(t, r.Method, api.Prefix+q.path, q.body, headers[r.ID]...)
			if r.Public != (got.status/100 == 2) {
				t.Errorf("without a key: %d %s", got.status, got.body)
			}
			if !r.Public {
				wantProblem(t, got, 401, "unauthenticated")
			}
			if r.Action == "" {
				return
			}
			w.known, w.who.Scopes = true, []auth.Action{"nothing"}
			got = w.do(t, r.Method, api.Prefix+q.path, q.body, headers[r.ID]...)
			wantProblem(t, got, 403, "forbidden")
			if noted := len(w.rows.kept); noted != 1 && r.Method != http.MethodGet || noted != 0 && r.Method == http.MethodGet {
				t.Errorf("%d audit rows", noted)
			}
			if w.hub.calls != 0 {
				t.Error("the hub was asked all the same")
			}
		})
	}
}

func TestHubFailuresAreProblems(t *testing.T) {
	t.Parallel()
	for _, r := range api.Routes() {
		if strings.HasPrefix(string(r.Action), "keys") || strings.HasPrefix(string(r.Action), "users") || strings.HasPrefix(string(r.Action), "server") || strings.HasPrefix(r.ID, "browser.") || strings.HasPrefix(r.ID, "invitation.") || r.ID == "password.set" ||
			slices.Contains([]string{"health", "version", "me", "settings", "settings.public", "project.list", "project.get", "project.instructions", "audit.list"}, r.ID) {
			continue // not the hub's
		}
		t.Run(r.ID, func(t *testing.T) {
			t.Parallel()
			q, w := requests[r.ID], newWorld(t, nil)
			w.hub.fail = problem.New(problem.QuotaSessions, "enough").WithHint("less")
			got := w.do(t, r.Method, api.Prefix+q.path, q.body, headers[r.ID]...)
			wantProblem(t, got, 429, "quota_sessions")
			if got.header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
		})
	}
}

func wantProblem(t *testing.T, got reply, status int, code string) {
	t.Helper()
	var p api.Problem
	if err := json.Unmarshal([]byte(got.body), &p); err != nil {
		t.Fatalf("%v: %s", err, got.body)
	}
	if got.status != status || p.Status != status || p.Code != code || got.header.Get("Content-Type") != "application/problem+json" || p.Type == "" || p.Title == "" ||
		p.Detail == "" || p.Kind == "" || p.RequestID != "req_1" {
		t.Errorf("%d %s %s, wanted %d %s", got.status, got.header.Get("Content-Type"), got.body, status, code)
	}
}

func TestEveryRouteIsDeclared(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.known = false // documents need no key
	page := w.do(t, "GET", "/api/v1/docs", "")
	text := html.UnescapeString(page.body)
	anyKey := []string{"version", "me", "settings", "project.list", "project.get", "browser.sign_out", "browser.list", "browser.revoke", "password.set"}
	for _, r := range api.Routes() {
		path := strings.Replace(r.Pattern, "...}", "}", 1)
		if !strings.Contains(text, `id="op-`+r.ID+`"`) || !strings.Contains(text, `<span class="p">`+path+`</span>`) {
			t.Errorf("%s %s is not on the page", r.ID, path)
		}
		_, below, _ := strings.Cut(text, `id="op-`+r.ID+`"`)
		section, _, _ := strings.Cut(below, "</details>")
		if !strings.Contains(section, `<pre><code class="sh">`) {
			t.Errorf("%s has no example", r.ID)
		}
		if r.Action == "" && !r.Public && !slices.Contains(anyKey, r.ID) {
			t.Errorf("%s has no action and is not public", r.ID)
		}
	}
	if page.status != 200 || strings.Contains(page.body, "<script") || strings.Contains(page.body, `src="`) {
		t.Error("the page is missing or loads something")
	}
	for _, m := range []string{"#problem-not_found", "Last-Event-ID", "Idempotency-Key"} {
		if !strings.Contains(text, strings.TrimPrefix(m, "#")) {
			t.Errorf("the page does not tell %s", m)
		}
	}
}

func TestDocumentIsCurrent(t *testing.T) {
	t.Parallel()
	name := filepath.Join("..", "..", "..", "docs", "openapi.json")
	if *update {
		if err := os.WriteFile(name, api.Document(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if string(kept) != string(api.Document()) {
		t.Error("docs/openapi.json is not what the code says; run go test ./internal/http/api -run Document -update")
	}
}

// TestDocumentTellsWhatIsSent looks for what generators of clients and linters go by.
func TestDocumentTellsWhatIsSent(t *testing.T) {
	t.Parallel()
	var doc struct {
		Info  struct{ License struct{ Name, URL string } }
		Paths map[string]map[string]struct {
			ID        string `json:"operationId"`
			Responses map[string]struct {
				Content map[string]any
				Links   map[string]struct {
					OperationID string `json:"operationId"`
					Parameters  map[string]string
				}
			}
		}
	}
	if err := json.Unmarshal(api.Document(), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Info.License.Name == "" || doc.Info.License.URL == "" {
		t.Error("the document has no licence")
	}
	if bytes.Contains(api.Document(), []byte(`"null"`)) {
		t.Error("something may be null")
	}
	seen, links := 0, 0
	for path, item := range doc.Paths {
		for method, op := range item {
			for _, response := range op.Responses {
				for name, link := range response.Links {
					links++
					if link.OperationID != name || len(link.Parameters) != 1 {
						t.Errorf("%s leads to %s by %+v", op.ID, name, link)
					}
				}
			}
			for _, status := range []string{"4XX", "default"} {
				if _, ok := op.Responses[status].Content["application/problem+json"]; !ok {
					t.Errorf("%s %s does not say what a problem (%s) looks like", method, path, status)
				}
			}
			if op.ID == "tree.download" || op.ID == "file.content" {
				seen++
				for _, status := range []string{"200", "206"} {
					if _, ok := op.Responses[status].Content["*/*"]; !ok {
						t.Errorf("%s: %s is of any type", op.ID, status)
					}
				}
			}
		}
	}
	if seen != 2 {
		t.Errorf("%d downloads", seen)
	}
	if l := doc.Paths["/sessions"]["post"].Responses["201"].Links["execution.create"]; l.Parameters["session"] != "$response.body#/id" || links < 50 {
		t.Errorf("%d links, and from a new session to its executions %+v", links, l)
	}
}

func TestDocumentsAreServed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for path, version := range map[string]string{"/openapi.json": "3.1.", "/openapi-3.0.json": "3.0."} {
		got := w.do(t, "GET", api.Prefix+path, "")
		var doc struct {
			OpenAPI string `json:"openapi"`
			Paths   map[string]map[string]any
		}
		if err := json.Unmarshal([]byte(got.body), &doc); err != nil || !strings.HasPrefix(doc.OpenAPI, version) {
			t.Errorf("%s: %v, version %q", path, err, doc.OpenAPI)
		}
		n := 0
		for p, item := range doc.Paths {
			if strings.Contains(p, "...") {
				t.Errorf("%s: the path %s is the mux's, not the document's", path, p)
			}
			n += len(item)
		}
		if n != len(api.Routes()) {
			t.Errorf("%s has %d operations, not %d", path, n, len(api.Routes()))
		}
	}
	// references lead somewhere
	var all map[string]any
	if err := json.Unmarshal(api.Document(), &all); err != nil {
		t.Fatal(err)
	}
	schemas := all["components"].(map[string]any)["schemas"].(map[string]any)
	for part := range strings.SplitSeq(string(api.Document()), `"#/components/schemas/`) {
		name, _, _ := strings.Cut(part, `"`)
		if _, ok := schemas[name]; !ok && !strings.HasPrefix(part, "{") {
			t.Errorf("the schema %q is not there", name)
		}
	}
}
