package openai

import (
	"cmp"
	"encoding/json"
	"strings"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/llm/model"
	"cove/internal/server/hub"
)

// request is POST /v1/responses, read and checked.
type request struct {
	echo
	toolbox
	stream   bool
	store    bool
	previous string // a turn
	talk     string // a conversation
	input    json.RawMessage
	text     string // instructions, with what text.format asks for
	format   model.Format
	includes []string
	effort   string
	extra    map[string]json.RawMessage
}

// echo are the parameters that a response object repeats.
type echo struct {
	Instructions       *string           `json:"instructions"`
	Metadata           map[string]string `json:"metadata"`
	Model              string            `json:"model"`
	ParallelToolCalls  bool              `json:"parallel_tool_calls"`
	Temperature        *float64          `json:"temperature"`
	ToolChoice         json.RawMessage   `json:"tool_choice"`
	Tools              []json.RawMessage `json:"tools"`
	TopP               *float64          `json:"top_p"`
	Background         bool              `json:"background"`
	Conversation       *reference        `json:"conversation"`
	MaxOutputTokens    *int64            `json:"max_output_tokens"`
	MaxToolCalls       *int64            `json:"max_tool_calls"`
	PreviousResponseID *string           `json:"previous_response_id"`
	PromptCacheKey     *string           `json:"prompt_cache_key"`
	Reasoning          json.RawMessage   `json:"reasoning"`
	SafetyIdentifier   *string           `json:"safety_identifier"`
	ServiceTier        string            `json:"service_tier"`
	Store              bool              `json:"store"`
	Text               json.RawMessage   `json:"text"`
	TopLogprobs        int64             `json:"top_logprobs"`
	Truncation         string            `json:"truncation"`
	PresencePenalty    float64           `json:"presence_penalty"`  // always 0; clients of Open Responses want it
	FrequencyPenalty   float64           `json:"frequency_penalty"` // the same
	User               *string           `json:"user"`
}

type reference struct {
	ID string `json:"id"`
}

// kept is what this surface keeps with a turn, as hub.Turn.Foreign.
type kept struct {
	Echo      echo              `json:"echo"`
	Include   []string          `json:"include,omitempty"`
	Input     []json.RawMessage `json:"input,omitempty"`
	Developer []string          `json:"developer,omitempty"` // messages of the developer in this and the turns before it
	Pending   int               `json:"pending,omitempty"`   // of Input, the first ones, which had been added to the conversation
	Named     []namedFile       `json:"named,omitempty"`     // the files of this and the turns before it
}

// added are the items that had been added to the conversation before the request.
func (k kept) added() []json.RawMessage { return k.Input[:min(max(k.Pending, 0), len(k.Input))] }

func keptOf(t hub.Turn) kept {
	var k kept
	_ = json.Unmarshal(t.Foreign, &k)
	return k
}

// readRequest reads everything but the input, which takes the hub.
func (s *server) readRequest(f *form) (request, error) {
	r := request{store: true}
	r.extra = f.extra("background", "instructions", "max_output_tokens", "max_tool_calls", "parallel_tool_calls", "previous_response_id", "prompt_cache_key",
		"safety_identifier", "store", "temperature", "top_logprobs", "top_p", "user", "context_management", "conversation", "include", "metadata",
		"moderation", "prompt", "prompt_cache_retention", "service_tier", "stream_options", "truncation", "access_programs", "input", "model",
		"prompt_cache_options", "reasoning", "text", "tool_choice", "tools", "stream")
	r.stream, r.input = f.yes("stream"), f.raw["input"]
	r.Model = f.needed("model")
	if !f.has("input") {
		f.fail(missing("input"))
	}
	if f.has("prompt") {
		f.fail(unsupported("prompt", "Unsupported parameter: 'prompt'. This server keeps no prompt templates; send 'instructions' and 'input'."))
	}
	if f.has("moderation") {
		f.fail(unsupported("moderation", noModeration))
	}
	if b := f.boolean("store"); b != nil {
		r.store = *b
	}
	r.Store, r.Background = r.store, f.yes("background")
	if r.Background && !r.store {
		f.fail(invalid("background", "invalid_value", "Background mode requires 'store' to be true."))
	}
	r.readSampling(f)
	r.readRest(f)
	r.toolbox = s.readTools(f)
	r.Tools, r.ToolChoice = r.rawTools, r.rawChoice
	r.readState(f)
	return r, f.err
}

func (r *request) readSampling(f *form) {
	r.Temperature, r.TopP = f.decimal("temperature", 2), f.decimal("top_p", 1)
	r.MaxOutputTokens, r.MaxToolCalls = f.integer("max_output_tokens", 16), f.integer("max_tool_calls", 1)
	if n := f.integer("top_logprobs", 0); n != nil && *n > 0 {
		f.fail(unsupported("top_logprobs", noLogprobs))
	}
	r.ParallelToolCalls = true
	if b := f.boolean("parallel_tool_calls"); b != nil {
		r.ParallelToolCalls = *b
	}
	r.Truncation = f.choice("truncation", "auto", "disabled")
	if r.Truncation == "" {
		r.Truncation = "disabled"
	}
}

func (r *request) readRest(f *form) {
	r.Metadata = f.metadata("metadata")
	if r.Metadata == nil {
		r.Metadata = map[string]string{}
	}
	r.ServiceTier = "default"
	r.Reasoning = json.RawMessage(`{"effort":null,"summary":null}`)
	if f.has("reasoning") {
		inner := f.object("reasoning", f.raw["reasoning"])
		r.effort = inner.short("effort")
		f.take(inner)
		r.Reasoning = f.raw["reasoning"]
	}
	for name, into := range map[string]**string{"instructions": &r.Instructions, "user": &r.User,
		"safety_identifier": &r.SafetyIdentifier, "prompt_cache_key": &r.PromptCacheKey} {
		if s := f.text(name); f.has(name) {
			*into = &s
		}
	}
	if r.Instructions != nil {
		r.text = *r.Instructions
	}
	r.readFormat(f)
	r.includes = f.includes("include")
}

// readFormat reads "text".
func (r *request) readFormat(f *form) {
	text := map[string]json.RawMessage{"format": json.RawMessage(`{"type":"text"}`), "verbosity": json.RawMessage(`"medium"`)}
	if f.has("text") {
		outer := f.object("text", f.raw["text"])
		outer.choice("verbosity", "low", "medium", "high")
		for name := range text {
			if outer.has(name) {
				text[name] = outer.raw[name]
			}
		}
		if outer.has("format") {
			inner := outer.object("format", outer.raw["format"])
			if r.format = inner.format(); r.format.JSON && inner.text("type") == "json_schema" && r.format.Schema == nil {
				inner.fail(missing(inner.path("schema")))
			}
			outer.take(inner)
		}
		f.take(outer)
	}
	r.Text, _ = json.Marshal(text)
	r.text = join(r.text, inWords(r.format))
}

// format reads the form of an answer. Chat Completions has what belongs to a schema in an object of its own.
func (f *form) format() model.Format {
	kind := f.choice("type", "text", "json_object", "json_schema")
	out := model.Format{JSON: kind == "json_object" || kind == "json_schema"}
	if kind != "json_schema" {
		return out
	}
	of := f
	if f.has("json_schema") {
		of = f.object("json_schema", f.raw["json_schema"])
	}
	out.Name, out.Strict = of.needed("name"), of.yes("strict")
	if of.has("schema") {
		of.object("schema", of.raw["schema"])
		out.Schema = of.raw["schema"]
	}
	f.take(of)
	return out
}

// inWords asks for a form of the answer: not every model can be bound to one.
func inWords(f model.Format) string {
	const jsonOnly = "Your final answer is one JSON value and nothing else: no words around it and no code fence."
	switch {
	case !f.JSON:
		return ""
	case f.Schema == nil:
		return jsonOnly
	}
	return jsonOnly + " It fits this JSON Schema: " + string(f.Schema)
}

func join(parts ...string) string {
	var out []string
	for _, p := range parts {
		if strings.TrimSpace(p) != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, "\n\n")
}

// withOutputs is what makes OpenAI send what code printed and showed.
const withOutputs = "code_interpreter_call.outputs"

// What is refused by name, because leaving it out would be another answer.
const (
	withLogprobs = "message.output_text.logprobs"
	noLogprobs   = "Unsupported parameter: this server does not know the probabilities of tokens. Leave out 'top_logprobs' and '" + withLogprobs + "'."
	noModeration = "Unsupported parameter: 'moderation' is not supported by this server."
)

func includables() []string {
	return []string{withOutputs, "file_search_call.results", "web_search_call.results", "web_search_call.action.sources",
		"message.input_image.image_url", "computer_call_output.output.image_url", "reasoning.encrypted_content", withLogprobs}
}

func (f *form) includes(name string) []string {
	list := f.texts(name)
	for _, value := range list {
		if err := includable(value); err != nil {
			f.fail(err)
		}
		if value == withLogprobs {
			f.fail(unsupported(name, noLogprobs))
		}
	}
	return list
}

func includable(value string) error {
	for _, known := range includables() {
		if value == known {
			return nil
		}
	}
	return notOneOf("include", value, includables())
}

func (r *request) readState(f *form) {
	previous := f.text("previous_response_id")
	talk := ""
	if f.has("conversation") {
		if kindOf(f.raw["conversation"]) == "a string" {
			talk = f.text("conversation")
		} else {
			inner := f.object("conversation", f.raw["conversation"])
			talk = inner.needed("id")
			f.take(inner)
		}
	}
	if previous != "" && talk != "" {
		f.fail(invalid("previous_response_id", "mutually_exclusive_parameters",
			"Mutually exclusive parameters. Ensure you are only providing one of: 'previous_response_id' or 'conversation'."))
	}
	if previous != "" {
		var ok bool
		if r.previous, ok = own(ident.Turn, responsePrefix, previous); !ok {
			f.fail(noPrevious(previous))
		}
		r.PreviousResponseID = &previous
	}
	if talk != "" {
		var err error
		if r.talk, err = ownConversation(talk); err != nil {
			f.fail(err)
		}
		r.Conversation = &reference{ID: talk}
	}
}

func noPrevious(id string) error {
	return invalid("previous_response_id", "previous_response_not_found", "Previous response with id '"+short(id)+"' not found.")
}

// before is what a request goes on from.
type before struct {
	conversation string
	session      string
	developer    []string
	named        []namedFile       // the files that were put into the workspace
	pending      []json.RawMessage // items that were added to the conversation and are not in what the model is sent yet
}

// goesOnFrom looks up the response or the conversation that a request names.
func (s *server) goesOnFrom(c *call, r *request) (before, error) {
	switch {
	case r.previous != "":
		t, err := s.Hub.Turn(c.Context(), c.who, r.previous)
		if err == nil && t.Hidden {
			err = noPrevious(*r.PreviousResponseID)
		}
		if err != nil {
			if problem.Of(err).Kind == problem.NotFound {
				err = noPrevious(*r.PreviousResponseID)
			}
			return before{}, err
		}
		k := keptOf(t)
		return before{conversation: t.Conversation, session: t.Session, developer: k.Developer, named: k.Named}, nil
	case r.talk != "":
		talk, err := s.Hub.Conversation(c.Context(), c.who, r.talk)
		if err != nil {
			return before{}, named(err, noConversation(r.Conversation.ID))
		}
		turns, err := s.allTurns(c.Context(), c.who, talk.ID)
		b := before{conversation: talk.ID, session: talk.Session, pending: append(unused(turns), pendingItems(talk)...)}
		for _, t := range turns {
			b.session = cmp.Or(t.Session, b.session)
			if !spoiled(t) {
				k := keptOf(t)
				b.developer, b.named = k.Developer, k.Named
			}
		}
		return b, err
	}
	return before{}, nil
}
