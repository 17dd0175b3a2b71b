package e2e_test

import (
	"encoding/base32"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"cove/internal/core/ident"
	"cove/internal/http/api"
	"cove/internal/http/compat/openai"
	"cove/internal/server/auth"
)

// operation is a route with what it takes to call it. In path and body a word in braces stands for an object, "{!word}" for one that is made for
// this call alone, and "{n}" for a number that nobody had yet.
type operation struct {
	id, method, path string
	needs            []auth.Action
	public           bool
	call
}

// call is what a route does not say of itself.
type call struct {
	body  string
	kind  string        // of the body; JSON when left out
	query string        // of the address
	fresh []string      // words of the address that stand for objects of this call alone
	also  int           // a status that is right although it is no success
	more  []auth.Action // rights that the call takes beside its route's
}

const form = "multipart/form-data; boundary=b"

// upload is a form with a file.
func upload(name, fields string) string {
	return fields + "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"" + name + "\"\r\n\r\na,b\n1,2\n\r\n--b--\r\n"
}

const purpose = "--b\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nuser_data\r\n"

// nativeCalls has a row for every operation that writes.
func nativeCalls() map[string]call {
	runs := []auth.Action{auth.SessionsExecute, auth.ConversationsRead}
	reads := []auth.Action{auth.FilesRead}
	sees := []auth.Action{auth.SessionsRead}
	return map[string]call{
		"session.create":           {body: `{"name":"s{n}","files":["{file}"]}`, more: append(reads, auth.FilesWrite)},
		"session.change":           {body: `{"name":"s{n}"}`},
		"session.pause":            {},
		"session.resume":           {},
		"session.acknowledge":      {},
		"session.fork":             {},
		"session.point":            {},
		"session.undo":             {also: 400}, // there may be nothing to undo
		"session.delete":           {fresh: []string{"session"}},
		"table.read":               {also: 404}, // without pandas there are no tables
		"table.profile":            {also: 404},
		"code.complete":            {body: `{"code":"pri","cursor":3}`},
		"code.describe":            {body: `{"code":"print","cursor":3}`},
		"code.is_complete":         {body: `{"code":"for i in x:"}`},
		"kernel.start":             {body: `{"name":"k{n}"}`, fresh: []string{"session"}},
		"kernel.restart":           {},
		"widget.move":              {body: `{"state":{"value":1}}`},
		"kernel.stop":              {fresh: []string{"kernel"}},
		"port.connect":             {also: 404}, // nothing listens
		"process.start":            {body: `{"line":"sleep 1000"}`},
		"process.input":            {body: "x", also: 400}, // it may have ended
		"process.resize":           {body: `{"columns":80,"rows":24}`, also: 400},
		"process.signal":           {body: `{"signal":"WINCH"}`, also: 400},
		"execution.create":         {body: `{"code":"1+1"}`, more: sees},
		"execution.approve":        {body: `{"run":true}`, also: 404}, // no call of it waits
		"execution.input":          {body: `{"text":"x"}`, also: 404}, // it asks for nothing
		"execution.interrupt":      {},
		"batch.run":                {body: `{"session":"{session}","items":[{"code":"1+1"}]}`, more: sees},
		"tree.move":                {body: `{"from":"{!path}","to":"moved{n}.csv"}`},
		"tree.preview":             {query: "?path={path}"},
		"tree.folder":              {body: `{"path":"folder{n}"}`},
		"tree.put":                 {body: `{"file":"{file}","path":"put{n}.csv"}`, more: reads},
		"tree.delete":              {fresh: []string{"path"}},
		"tree.upload":              {body: "a,b\n", kind: "text/csv", fresh: []string{"path"}},
		"fs.search":                {query: "?name=*.csv"},
		"fs.change":                {body: `{"path":"{path}","mode":"0640"}`},
		"fs.move":                  {body: `{"from":"{!path}","to":"fsmoved{n}.csv"}`},
		"fs.copy":                  {body: `{"from":"{path}","to":"fscopy{n}.csv"}`},
		"fs.remove":                {body: `{"path":"{!path}"}`},
		"fs.folder":                {body: `{"path":"fsfolder{n}"}`},
		"fs.link":                  {body: `{"path":"fslink{n}","target":"x"}`},
		"fs.replace":               {body: `{"paths":["{path}"],"text":"a","with":"a"}`},
		"fs.write":                 {body: "a,b\n", kind: "text/csv", query: "?path=fswritten{n}.csv"},
		"fs.read":                  {query: "?path={path}"},
		"link.create":              {body: `{"purpose":"read","path":"{path}"}`, more: reads},
		"link.delete":              {fresh: []string{"link"}},
		"link.write":               {body: "a,b\n", kind: "text/csv", also: 404}, // the link reads
		"port.get":                 {also: 404},                                  // nothing listens
		"port.post":                {body: "x", kind: "text/plain", also: 404},
		"port.put":                 {body: "x", kind: "text/plain", also: 404},
		"port.patch":               {body: "x", kind: "text/plain", also: 404},
		"port.delete":              {also: 404},
		"file.create":              {body: "a,b\n", kind: "text/csv", query: "?name=f{n}.csv"},
		"file.delete":              {fresh: []string{"file"}},
		"upload.create":            {body: `{"name":"f{n}.csv","size":4}`},
		"upload.append":            {body: "a,b\n", kind: "text/csv", also: 409}, // the first bytes have come
		"upload.delete":            {fresh: []string{"incoming"}},
		"package.install":          {body: `{"requirements":["IPython"]}`, more: sees},
		"conversation.create":      {body: `{"title":"c{n}"}`},
		"conversation.change":      {body: `{"title":"c{n}"}`},
		"conversation.fork":        {body: `{"state":"none"}`, more: []auth.Action{auth.ConversationsRead}, also: 400}, // it may be empty
		"conversation.delete":      {fresh: []string{"conversation"}},
		"question.create":          {body: `{"prompt":"greet"}`, more: runs},
		"question.change":          {body: `{"prompt":"greet {n}"}`, more: runs},
		"question.delete":          {fresh: []string{"question"}},
		"turn.create":              {body: `{"prompt":"greet","parent":"{turn}","session":"{session}"}`, more: runs},
		"turn.create_alone":        {body: `{"prompt":"greet","files":["{file}"]}`, more: append(runs, auth.FilesRead, auth.FilesWrite, auth.SessionsWrite)},
		"share.create":             {body: `{"seconds":3600}`, more: []auth.Action{auth.ConversationsRead}, also: 400}, // there may be no turn
		"conversation.export":      {also: 400},
		"share.delete":             {fresh: []string{"share"}},
		"turn.cancel":              {},
		"check.run":                {body: `{"name":"p.py","session":"{session}","path":"{path}"}`, more: reads},
		"turn.approve":             {body: `{"step":1,"run":true}`, more: []auth.Action{auth.SessionsExecute}, also: 400}, // it waits for nothing
		"turn.rate":                {body: `{"good":true}`},
		"turn.unrate":              {},
		"turn.undo":                {body: `{"from":"{turn}"}`, more: []auth.Action{auth.SessionsWrite}, also: 404}, // its session may keep no points
		"turn.redo":                {},
		"turn.rerun":               {body: `{"execution":"{execution}"}`, more: []auth.Action{auth.SessionsRead}, also: 404}, // the turn may have run no code
		"turn.unrerun":             {also: 404},
		"turn.delete":              {fresh: []string{"turn"}},
		"connection.set":           {body: `{"address":"http://127.0.0.1:9","models":["m"]}`, also: 404},
		"connection.delete":        {also: 404},
		"connection.try":           {body: `{"provider":"mars"}`, also: 400},
		"key.create":               {body: `{"name":"k{n}","project":"{project}"}`},
		"key.revoke":               {fresh: []string{"key"}},
		"key.quota":                {body: `{"tokens_per_day":1000000}`},
		"browser.sign_in":          {body: `{"key":"{keytext}"}`},
		"browser.sign_out":         {},
		"browser.revoke":           {fresh: []string{"browser"}, also: 404}, // it is the caller's own alone
		"invitation.create":        {body: `{"role":"viewer"}`},
		"invitation.delete":        {fresh: []string{"invitation"}},
		"invitation.look":          {body: `{"code":"{invitationcode}"}`},
		"invitation.accept":        {body: `{"code":"{!invitationcode}","user":"i{n}","password":"correct horse battery"}`},
		"password.set":             {body: `{"current":"correct horse battery","password":"another horse battery"}`, also: 403}, // keys set no first password
		"user.create":              {body: `{"name":"u{n}"}`},
		"user.change":              {body: `{"admin":false}`},
		"user.delete":              {fresh: []string{"user"}},
		"project.create":           {body: `{"name":"p{n}"}`},
		"project.instructions.set": {body: `{"instructions":"Be brief."}`},
		"project.quota":            {body: `{"live_sessions":1000}`},
		"member.set":               {body: `{"role":"viewer"}`},
		"member.remove":            {fresh: []string{"member"}},
		"search":                   {query: "?q=greet"},
	}
}

// openAICalls is the same for the routes below /v1, by their patterns.
func openAICalls() map[string]call {
	runs := []auth.Action{auth.SessionsExecute}
	message := `"model":"scripted","input":[{"role":"user","content":[{"type":"input_text","text":"greet"},{"type":"input_file","file_id":"{upload}"}]}]`
	return map[string]call{
		"POST /v1/responses": {body: `{` + message + `,"previous_response_id":"{response}","tools":[{"type":"code_interpreter","container":"{container}"}]}`,
			more: append(runs, auth.SessionsRead, auth.SessionsWrite, auth.FilesRead, auth.FilesWrite)},
		"GET /v1/responses":                          {also: 405}, // it is for WebSockets
		"POST /v1/responses/compact":                 {body: `{"model":"scripted","input":"greet","previous_response_id":"{response}"}`},
		"POST /v1/responses/input_tokens":            {body: `{"model":"scripted","input":"greet","previous_response_id":"{response}"}`},
		"POST /v1/uploads":                           {body: `{"filename":"u{n}.csv","bytes":3,"mime_type":"text/csv","purpose":"user_data"}`},
		"POST /v1/uploads/{id}/parts":                {body: strings.Replace(upload("p", ""), `"file"`, `"data"`, 1), kind: form, fresh: []string{"parcel"}},
		"POST /v1/uploads/{id}/complete":             {body: `{"part_ids":["part_x"]}`, fresh: []string{"parcel"}, also: 400}, // it has no such part
		"POST /v1/uploads/{id}/cancel":               {fresh: []string{"parcel"}},
		"DELETE /v1/responses/{id}":                  {fresh: []string{"response"}},
		"POST /v1/responses/{id}/cancel":             {also: 400}, // it is over
		"POST /v1/conversations":                     {body: `{"metadata":{"a":"{n}"}}`},
		"POST /v1/conversations/{id}":                {body: `{"metadata":{"a":"{n}"}}`},
		"DELETE /v1/conversations/{id}":              {fresh: []string{"thread"}},
		"POST /v1/conversations/{id}/items":          {body: `{"items":[{"role":"user","content":"greet"}]}`},
		"DELETE /v1/conversations/{id}/items/{item}": {fresh: []string{"item"}},
		"POST /v1/containers":                        {body: `{"name":"c{n}","file_ids":["{upload}"]}`, more: []auth.Action{auth.FilesRead, auth.FilesWrite}},
		"DELETE /v1/containers/{id}":                 {fresh: []string{"container"}},
		"POST /v1/containers/{id}/files":             {body: `{"file_id":"{upload}"}`, more: []auth.Action{auth.FilesRead}},
		"DELETE /v1/containers/{id}/files/{file}":    {fresh: []string{"cfile"}},
		"POST /v1/files":                             {body: upload("f.csv", purpose), kind: form},
		"DELETE /v1/files/{id}":                      {fresh: []string{"upload"}},
		"POST /v1/chat/completions":                  {body: `{"model":"scripted","messages":[{"role":"user","content":"greet"}]}`},
	}
}

// operations are all routes of the server. It says which of them write and have no row.
func operations() (all []operation, without []string) {
	calls := nativeCalls()
	for _, r := range api.Routes() {
		o := operation{id: r.ID, method: r.Method, path: strings.ReplaceAll(r.Pattern, "...}", "}"), public: r.Public, call: calls[r.ID]}
		o.path = strings.ReplaceAll(o.path, "/members/{user}", "/members/{member}")
		o.path = strings.ReplaceAll(o.path, "/uploads/{upload}", "/uploads/{incoming}")
		o.path = strings.ReplaceAll(o.path, "/{conversation}/queue", "/{busy}/queue")
		if r.Action != "" {
			o.needs = []auth.Action{r.Action}
		}
		if _, known := calls[r.ID]; !known && r.Method != "GET" {
			without = append(without, r.ID)
		}
		delete(calls, r.ID)
		all = append(all, o.finished())
	}
	others := openAICalls()
	for _, r := range openai.Routes() {
		method, path, _ := strings.Cut(r.Pattern, " ")
		o := operation{id: r.Pattern, method: method, path: translated(path), needs: r.Needs, call: others[r.Pattern]}
		if _, known := others[r.Pattern]; !known && method != "GET" {
			without = append(without, r.Pattern)
		}
		delete(others, r.Pattern)
		all = append(all, o.finished())
	}
	for id := range calls {
		without = append(without, id+", which is no route")
	}
	for id := range others {
		without = append(without, id+", which is no route")
	}
	return all, without
}

// finished is an operation whose address has its query and asks for objects of its own.
func (o operation) finished() operation {
	for _, word := range o.fresh {
		o.path = strings.ReplaceAll(o.path, "{"+word+"}", "{!"+word+"}")
	}
	o.path += o.query
	return o
}

// translated is a pattern below /v1 with words for what its id stands for.
func translated(path string) string {
	for prefix, word := range map[string]string{"responses": "response", "conversations": "thread", "containers": "container", "files": "upload", "uploads": "parcel"} {
		if strings.HasPrefix(path, "/v1/"+prefix+"/{id}") {
			path = strings.Replace(path, "{id}", "{"+word+"}", 1)
		}
	}
	return strings.NewReplacer("{file}", "{cfile}", "{id...}", "openai/scripted").Replace(path)
}

var placeholder = regexp.MustCompile(`\{(!?)([a-z]+)\}`)

// words are the objects that a call names.
func (o operation) words() (out []string) {
	for _, text := range []string{o.path, o.body} {
		for _, m := range placeholder.FindAllStringSubmatch(text, -1) {
			if m[2] != "n" && !slices.Contains(out, m[2]) {
				out = append(out, m[2])
			}
		}
	}
	return out
}

// inPath says whether the address names the object.
func (o operation) inPath(word string) bool {
	return strings.Contains(o.path, "{"+word+"}") || strings.Contains(o.path, "{!"+word+"}")
}

// owned says whether objects of that word belong to a project by an id of their own.
func owned(word string) bool {
	return !slices.Contains([]string{"provider", "kernel", "process", "port", "number", "table", "column", "path", "step", "cfile", "user", "member", "keytext", "invitationcode", "code"}, word)
}

// never is the name of an object of that word that never existed.
func never(word string) string {
	body := ident.Body(ident.New("x"))
	switch word {
	case "session":
		return "ses_" + body
	case "process":
		return "prc_" + body
	case "execution":
		return "exe_" + body
	case "conversation", "busy":
		return "cnv_" + body
	case "turn":
		return "trn_" + body
	case "question":
		return "qst_" + body
	case "file":
		return "fil_" + body
	case "project":
		return "prj_" + body
	case "parcel":
		return "upload_" + body
	case "incoming":
		return "upl_" + body
	case "user", "member":
		return "usr_" + body
	case "response":
		return "resp_" + body
	case "thread":
		return "conv_" + body
	case "container":
		return "cntr_" + body
	case "upload":
		return "file-" + body
	case "item":
		return "msg_" + body
	case "cfile":
		return containerFile("never.csv")
	case "column", "port", "number", "step":
		return "77"
	}
	return fmt.Sprintf("%s_%s", word, body) // keys, kernels and paths have this form, or none
}

func containerFile(path string) string {
	return "cfile_" + base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding).EncodeToString([]byte(path))
}
