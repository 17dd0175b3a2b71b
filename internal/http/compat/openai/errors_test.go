package openai_test

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"cove/internal/core/ident"
	"cove/internal/http/compat/openai"
	"cove/internal/server/auth"
)

// TestRefusals compares what is wrong with a request with what OpenAI says of it.
func TestRefusals(t *testing.T) {
	t.Parallel()
	s := serve(t, newFake(worked()...))
	many := `{"k0":"v"`
	for n := 1; n < 17; n++ {
		many += fmt.Sprintf(`,"k%d":"v"`, n)
	}
	many += "}"
	nobody := ident.Body(ident.New(ident.Turn))
	for body, want := range map[string]string{
		`{`:                                      `400 <nil> <nil> We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library correctly. The API expects a JSON object.)`,
		`[]`:                                     `400 <nil> <nil> We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library correctly. The API expects a JSON object.)`,
		`{"input":"x"}`:                          `400 model missing_required_parameter Missing required parameter: 'model'.`,
		`{"model":"m"}`:                          `400 input missing_required_parameter Missing required parameter: 'input'.`,
		`{"model":"m","input":"x","stram":true}`: `400 stram unknown_parameter Unknown parameter: 'stram'. Did you mean 'stream'?`,
		`{"model":"m","input":"x","temperatur":1}`:                                      `400 temperatur unknown_parameter Unknown parameter: 'temperatur'. Did you mean 'temperature'?`,
		`{"model":"m","input":"x","reasonin":{}}`:                                       `400 reasonin unknown_parameter Unknown parameter: 'reasonin'. Did you mean 'reasoning'?`,
		`{"model":"m","input":"x","moderation":{"policy":{}}}`:                          `400 moderation unsupported_parameter Unsupported parameter: 'moderation' is not supported by this server.`,
		`{"model":"m","input":"x","top_logprobs":2}`:                                    `400 top_logprobs unsupported_parameter Unsupported parameter: this server does not know the probabilities of tokens. Leave out 'top_logprobs' and 'message.output_text.logprobs'.`,
		`{"model":"m","input":"x","include":["message.output_text.logprobs"]}`:          `400 include unsupported_parameter Unsupported parameter: this server does not know the probabilities of tokens. Leave out 'top_logprobs' and 'message.output_text.logprobs'.`,
		`{"model":"m","input":"x","max_tokens":1}`:                                      `400 max_tokens unknown_parameter Unknown parameter: 'max_tokens'.`,
		`{"model":7,"input":"x"}`:                                                       `400 model invalid_type Invalid type for 'model': expected a string, but got an integer instead.`,
		`{"model":"m","input":7}`:                                                       `400 input invalid_type Invalid type for 'input': expected one of a string or array of input items, but got an integer instead.`,
		`{"model":"m","input":"x","temperature":3}`:                                     `400 temperature decimal_above_max_value Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 3 instead.`,
		`{"model":"m","input":"x","temperature":"hot"}`:                                 `400 temperature invalid_type Invalid type for 'temperature': expected a decimal, but got a string instead.`,
		`{"model":"m","input":"x","max_output_tokens":1}`:                               `400 max_output_tokens integer_below_min_value Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got 1 instead.`,
		`{"model":"m","input":"x","max_tool_calls":0}`:                                  `400 max_tool_calls integer_below_min_value Invalid 'max_tool_calls': integer below minimum value. Expected a value >= 1, but got 0 instead.`,
		`{"model":"m","input":"x","truncation":"maybe"}`:                                `400 truncation invalid_value Invalid value: 'maybe'. Supported values are: 'auto' and 'disabled'.`,
		`{"model":"m","input":"x","stream":"yes"}`:                                      `400 stream invalid_type Invalid type for 'stream': expected a boolean, but got a string instead.`,
		`{"model":"m","input":"x","metadata":` + many + `}`:                             `400 metadata object_above_max_properties Invalid 'metadata': too many properties. Expected an object with at most 16 properties, but got an object with 17 properties instead.`,
		`{"model":"m","input":"x","metadata":{"a":"` + strings.Repeat("x", 513) + `"}}`: `400 metadata.a string_above_max_length Invalid 'metadata.a': string too long. Expected a string with maximum length 512, but got a string with length 513 instead.`,
		`{"model":"m","input":"x","metadata":{"a":1}}`:                                  `400 metadata.a invalid_type Invalid type for 'metadata.a': expected a string, but got an integer instead.`,
		`{"model":"m","input":"x","tools":[{"type":"web_search"}]}`:                     `400 tools[0].type invalid_value Invalid value: 'web_search'. Supported values are: 'code_interpreter', 'function', and 'programmatic_tool_calling'.`,
		`{"model":"m","input":"x","tools":[{"type":"function"}]}`:                       `400 tools[0].name missing_required_parameter Missing required parameter: 'tools[0].name'.`,
		`{"model":"m","input":"x","tools":[{"type":"code_interpreter","container":{"type":"auto","network_policy":{"type":"open"}}}]}`:      `400 tools[0].container.network_policy.type invalid_value Invalid value: 'open'. Supported values are: 'disabled' and 'allowlist'.`,
		`{"model":"m","input":"x","tools":[{"type":"code_interpreter","container":{"type":"auto","network_policy":{"type":"allowlist"}}}]}`: `400 tools[0].container.network_policy.allowed_domains missing_required_parameter Missing required parameter: 'tools[0].container.network_policy.allowed_domains'.`,
		`{"model":"m","input":"x","tools":[{"type":"code_interpreter","container":{"type":"auto","memory_limit":"2g"}}]}`:                   `400 tools[0].container.memory_limit invalid_value Invalid value: '2g'. Supported values are: '1g', '4g', '16g', and '64g'.`,
		`{"model":"m","input":"x","tools":[{"type":"code_interpreter","container":{"type":"auto","memory_limit":"64g"}}]}`:                  `400 tools[0].container.memory_limit invalid_value Invalid 'tools[0].container.memory_limit': this server gives a container at most 8192 MiB of memory, but got '64g'.`,
		`{"model":"m","input":"x","tools":[{"type":"code_interpreter","container":{"type":"auto","foo":1}}]}`:                               `400 tools[0].container.foo unknown_parameter Unknown parameter: 'tools[0].container.foo'.`,
		`{"model":"m","input":"x","tools":[{"type":"code_interpreter","container":"cntr_no"}]}`:                                             `404 <nil> <nil> Container with id 'cntr_no' not found.`,
		`{"model":"m","input":"x","tools":[{"type":"code_interpreter","container":"cntr_` + nobody + `"}]}`:                                 `404 <nil> <nil> Container with id 'cntr_` + nobody + `' not found.`,
		`{"model":"m","input":"x","tool_choice":{"type":"code_interpreter"}}`:                                                               `400 tool_choice <nil> Tool choice 'code_interpreter' not found in 'tools' parameter.`,
		`{"model":"m","input":"x","tool_choice":"sometimes"}`:                                                                               `400 tool_choice invalid_value Invalid value: 'sometimes'. Supported values are: 'none', 'auto', and 'required'.`,
		`{"model":"m","input":"x","include":["everything"]}`:                                                                                `400 include invalid_value Invalid value: 'everything'. Supported values are: 'code_interpreter_call.outputs', 'file_search_call.results', 'web_search_call.results', 'web_search_call.action.sources', 'message.input_image.image_url', 'computer_call_output.output.image_url', 'reasoning.encrypted_content', and 'message.output_text.logprobs'.`,
		`{"model":"m","input":"x","background":true,"store":false}`:                                                                         `400 background invalid_value Background mode requires 'store' to be true.`,
		`{"model":"m","input":"x","previous_response_id":"resp_no"}`:                                                                        `400 previous_response_id previous_response_not_found Previous response with id 'resp_no' not found.`,
		`{"model":"m","input":"x","previous_response_id":"resp_` + nobody + `","conversation":"conv_` + nobody + `"}`:                       `400 previous_response_id mutually_exclusive_parameters Mutually exclusive parameters. Ensure you are only providing one of: 'previous_response_id' or 'conversation'.`,
		`{"model":"m","input":"x","conversation":"conv_` + nobody + `"}`:                                                                    `404 <nil> <nil> Conversation with id 'conv_` + nobody + `' not found.`,
		`{"model":"m","input":[{"role":"user","content":[{"type":"input_image","image_url":"http://169.254.169.254/x"}]}]}`:                 `400 input[0].content[0].image_url unsupported_parameter This server does not fetch addresses. Send the image as a data: URL, or upload it and send its 'file_id'.`,
		`{"model":"m","input":[{"role":"user","content":[{"type":"input_file","file_url":"http://x/"}]}]}`:                                  `400 input[0].content[0].file_url unsupported_parameter This server does not fetch addresses. Upload the file and send its 'file_id', or send 'file_data'.`,
		`{"model":"m","input":[{"role":"user","content":[{"type":"input_file","file_id":"file-no"}]}]}`:                                     `400 input[0].content[0].file_id <nil> No such File object: file-no`,
		`{"model":"m","input":[{"role":"pirate","content":"arr"}]}`:                                                                         `400 input[0].role invalid_value Invalid value: 'pirate'. Supported values are: 'assistant', 'system', 'developer', and 'user'.`,
		`{"model":"m","input":[{"type":"song"}]}`:                                                                                           `400 input[0].type invalid_value Invalid value: 'song'. Supported values are: 'message', 'code_interpreter_call', 'function_call', 'function_call_output', 'program', 'program_output', 'reasoning', 'item_reference', and 'compaction'.`,
		`{"model":"m","input":[{"type":"item_reference","id":"msg_no"}]}`:                                                                   `404 <nil> <nil> Item with id 'msg_no' not found.`,
		`{"model":"m","input":[{"role":"user","content":"x"},{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}]}`:         `400 input <nil> No tool output found for function call c1.`,
		`{"model":"m","input":[{"id":5,"role":"user","content":"x"}]}`:                                                                      `400 input[0].id invalid_type Invalid type for 'input[0].id': expected a string, but got an integer instead.`,
		`{"model":"m","input":"x","tool_choice":"required"}`:                                                                                `400 tool_choice <nil> Tool choice 'required' must be specified with 'tools' parameter.`,
		`{"model":"m","input":"x","tools":[{"type":"function","name":"python"},{"type":"code_interpreter","container":{"type":"auto"}}]}`:   `400 tools invalid_value Invalid value: 'python' is the name of the code interpreter's own tool. Choose another one.`,
		`{"model":"m","input":"x","tools":[{"type":"function","name":"f"},{"type":"function","name":"f"}]}`:                                 `400 tools invalid_value Invalid 'tools': there are two functions with the name 'f'.`,
		`{"model":"m","input":"x","text":{"format":{"type":"json_schema","name":"n"}}}`:                                                     `400 text.format.schema missing_required_parameter Missing required parameter: 'text.format.schema'.`,
		`{"model":"m","input":"x","text":{"format":{"type":"json_schema","schema":{}}}}`:                                                    `400 text.format.name missing_required_parameter Missing required parameter: 'text.format.name'.`,
		`{"model":"m","input":"x","text":{"format":{"type":"json_schema","name":"n","schema":1}}}`:                                          `400 text.format.schema invalid_type Invalid type for 'text.format.schema': expected an object, but got an integer instead.`,
		`{"model":"m","input":"x","text":{"verbosity":"loud"}}`:                                                                             `400 text.verbosity invalid_value Invalid value: 'loud'. Supported values are: 'low', 'medium', and 'high'.`,
		`{"model":"m","input":[]}`: `400 input <nil> The input has nothing for the model to answer: add a message of the user.`,
	} {
		status, answer, _ := ask(t, s, "POST", "/v1/responses", body)
		got := fmt.Sprintf("%d %v %v %v", status, at(answer, "error", "param"), at(answer, "error", "code"), at(answer, "error", "message"))
		if got != want || at(answer, "error", "type") != "invalid_request_error" {
			t.Errorf("%s\n got  %s\n want %s", body, got, want)
		}
	}
}

func TestNotFound(t *testing.T) {
	t.Parallel()
	s := serve(t, newFake())
	body := ident.Body(ident.New(ident.Turn))
	for request, want := range map[string]string{
		"GET /v1/responses/resp_" + body:             "404 Response with id 'resp_" + body + "' not found.",
		"GET /v1/responses/../x":                     "404 Invalid URL (GET /v1/x)",
		"DELETE /v1/responses/trn_" + body:           "404 Response with id 'trn_" + body + "' not found.",
		"GET /v1/containers/cntr_" + body:            "404 Container with id 'cntr_" + body + "' not found.",
		"GET /v1/containers/cntr_" + body + "/files": "404 Container with id 'cntr_" + body + "' not found.",
		"GET /v1/files/file-" + body:                 "404 No such File object: file-" + body,
		"GET /v1/models/none":                        "404 The model 'none' does not exist or you do not have access to it.",
		"POST /v1/batches":                           "404 This server does not have OpenAI's Batch API: `cove batch` asks many questions (POST /v1/batches).",
		"POST /v1/embeddings":                        "404 This server does not have OpenAI's embeddings (POST /v1/embeddings).",
		"GET /v1/vector_stores/vs_1/files":           "404 This server does not have OpenAI's vector stores (GET /v1/vector_stores/vs_1/files).",
		"GET /v1/nothing":                            "404 Invalid URL (GET /v1/nothing)",
		"PUT /v1/responses":                          "405 Not allowed to PUT on /v1/responses. (HINT: Perhaps you meant to use a different HTTP method?)",
		"POST /v1/responses/input_tokens":            "400 Missing required parameter: 'input'.",
		"POST /v1/responses/compact":                 "400 Missing required parameter: 'model'.",
		"GET /v1/responses/compact":                  "404 Response with id 'compact' not found.",
		"GET /v1/responses":                          "405 Not allowed to GET on /v1/responses. (HINT: Perhaps you meant to use a different HTTP method?)",
		"GET /v1/files?limit=0":                      "400 Invalid 'limit': integer below minimum value. Expected a value >= 1, but got 0 instead.",
		"GET /v1/containers?order=up":                "400 Invalid value: 'up'. Supported values are: 'asc' and 'desc'.",
	} {
		method, path, _ := strings.Cut(request, " ")
		status, answer, _ := ask(t, s, method, path, "")
		if got := fmt.Sprintf("%d %v", status, at(answer, "error", "message")); got != want {
			t.Errorf("%s\n got  %s\n want %s", request, got, want)
		}
	}
}

// TestEveryRouteWantsACaller also sees that no route is missing in the table.
func TestEveryRouteWantsACaller(t *testing.T) {
	t.Parallel()
	handler := openai.New(openai.Options{Hub: newFake()})
	if len(openai.Routes()) < 29 {
		t.Errorf("only %d routes", len(openai.Routes()))
	}
	for _, r := range openai.Routes() {
		method, path, _ := strings.Cut(r.Pattern, " ")
		path = strings.NewReplacer("{id...}", "x", "{id}", "x", "{item}", "x", "{file}", "x").Replace(path)
		req, _ := http.NewRequestWithContext(t.Context(), method, path, nil)
		w := &recorder{header: http.Header{}}
		handler.ServeHTTP(w, req)
		if w.status != 401 || !strings.Contains(w.body.String(), `"code":"invalid_api_key"`) || len(r.Needs) == 0 {
			t.Errorf("%s: %d %s", r.Pattern, w.status, w.body.String())
		}
	}
}

type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }

// TestForgedContainerFiles asks for paths that no client should have.
func TestForgedContainerFiles(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := serve(t, f)
	_, box, _ := ask(t, s, "POST", "/v1/containers", `{"name":"box"}`)
	id := at(box, "id").(string)
	for _, file := range []string{"../etc/passwd", "/etc/passwd", "a/../../x", "..", ".", "a//b", "", "\xff\xfe"} {
		status, _, _ := ask(t, s, "GET", "/v1/containers/"+id+"/files/"+openai.FileIDOf(file)+"/content", "")
		if status != 404 {
			t.Errorf("%q: %d", file, status)
		}
	}
	if status, _, _ := ask(t, s, "GET", "/v1/containers/"+id+"/files/cfile_ZZZ", ""); status != 404 {
		t.Errorf("nonsense: %d", status)
	}
}

func TestUploadLimits(t *testing.T) {
	t.Parallel()
	s := serve(t, newFake(), func(o *openai.Options) { o.MaxFile = 10; o.MaxBody = 1000 })
	send := func(purpose, name string, size int) (int, any) {
		var b bytes.Buffer
		w := multipart.NewWriter(&b)
		part, _ := w.CreateFormFile("file", name)
		_, _ = part.Write(bytes.Repeat([]byte("x"), size))
		_ = w.WriteField("purpose", purpose) // after the file, as the Node SDK sends it
		_ = w.Close()
		req, _ := http.NewRequestWithContext(t.Context(), "POST", s.URL+"/v1/files", &b)
		req.Header.Set("Authorization", "Bearer owner")
		req.Header.Set("Content-Type", w.FormDataContentType())
		res, err := s.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res.StatusCode, nil
	}
	for _, c := range []struct {
		purpose, name string
		size, want    int
	}{{"user_data", "a.txt", 5, 200}, {"wrong", "a.txt", 5, 400}, {"user_data", "../../a", 5, 200}, {"user_data", "big", 3 << 20, 413}} {
		if got, _ := send(c.purpose, c.name, c.size); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
	if status, _, _ := ask(t, s, "POST", "/v1/responses", `{"model":"m","input":"`+strings.Repeat("x", 2000)+`"}`); status != 413 {
		t.Errorf("a large body: %d", status)
	}
	if status, _, _ := ask(t, s, "POST", "/v1/files", `{}`); status != 400 {
		t.Errorf("no form: %d", status)
	}
}

// TestRightsAreAskedFirst has callers without rights refused before anything is read of what they send.
func TestRightsAreAskedFirst(t *testing.T) {
	t.Parallel()
	f := newFake(worked()...)
	handler := openai.New(openai.Options{Hub: f})
	for _, r := range openai.Routes() {
		for _, role := range []auth.Role{auth.Owner, auth.Viewer, auth.Auditor} {
			who := auth.Principal{Role: role}
			allowed := true
			for _, action := range r.Needs {
				allowed = allowed && who.May(action)
			}
			method, path, _ := strings.Cut(r.Pattern, " ")
			path = strings.NewReplacer("{id...}", "x", "{id}", "x", "{item}", "x", "{file}", "x").Replace(path)
			req, _ := http.NewRequestWithContext(auth.With(t.Context(), who), method, path, strings.NewReader("{"))
			w := &recorder{header: http.Header{}, status: 200}
			handler.ServeHTTP(w, req)
			if (w.status == 403) == allowed {
				t.Errorf("%s as %s: %d %s", r.Pattern, role, w.status, w.body.String())
			}
		}
	}
	if len(f.asked) > 0 {
		t.Error("a turn was begun")
	}
}
