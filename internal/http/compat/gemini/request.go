package gemini

import (
	"encoding/json"
	"strings"

	"cove/internal/llm/model"
)

// mostStops is how many texts may end an answer, as at Google.
const mostStops = 5

// request is POST models/MODEL:generateContent, read and checked.
type request struct {
	toolbox
	model    string
	in       input
	system   string
	max      int
	temp     *float64
	topP     *float64
	format   model.Format
	effort   string
	stop     []string // texts that end the answer
	thoughts bool     // the model's visible reasoning is sent
}

func (s *server) readRequest(c *call, o object, name string) (*request, error) {
	o.only("contents", "systemInstruction", "generationConfig", "tools", "toolConfig", "safetySettings", "cachedContent", "model", "labels", "serviceTier", "store")
	if o.has("cachedContent") {
		o.fail(lacking("cachedContent", "Send the contents with each request."))
	}
	r := &request{model: name, toolbox: readTools(o)}
	if o.has("systemInstruction") {
		r.system = instruction(o.object("systemInstruction"))
	}
	if o.has("generationConfig") {
		r.configure(o.object("generationConfig"))
	}
	r.in.python = r.python
	r.in.most = s.MaxBody
	r.in.peek = func(name string, text bool) (peeked, error) { return s.peek(c, name, text) }
	r.in.read(o)
	return r, o.err
}

func instruction(o object) string {
	o.only("role", "parts")
	var out []string
	for _, p := range o.objects("parts", mostParts) {
		p.only("text")
		out = append(out, p.text("text"))
	}
	return strings.Join(out, "\n\n")
}

// configure reads "generationConfig". What would change the answer and cannot be passed on is refused; what tunes it is not.
func (r *request) configure(o object) {
	o.only("maxOutputTokens", "temperature", "topP", "responseMimeType", "responseSchema", "responseJsonSchema", "thinkingConfig", "candidateCount",
		"topK", "seed", "presencePenalty", "frequencyPenalty", "mediaResolution", "stopSequences", "responseLogprobs", "logprobs", "responseModalities", "speechConfig", "imageConfig",
		"enableEnhancedCivicAnswers", "audioTimestamp", "routingConfig", "modelSelectionConfig", "enableAffectiveDialog", "responseFormat")
	if n, ok := o.integer("maxOutputTokens"); ok {
		if n < 1 {
			o.fail(invalid("'%s' must be above 0.", o.path("maxOutputTokens")))
		}
		r.max = int(min(n, 1<<30))
	}
	r.temp, r.topP = o.decimal("temperature", 2), o.decimal("topP", 1)
	if n, ok := o.integer("candidateCount"); ok && n != 1 {
		o.fail(lacking(o.path("candidateCount"), "It gives one candidate."))
	}
	r.stop = o.texts("stopSequences")
	switch {
	case len(r.stop) > mostStops:
		o.fail(invalid("'%s' has %d elements; at most %d are supported.", o.path("stopSequences"), len(r.stop), mostStops))
	case len(r.stop) > 0 && r.python:
		o.fail(lacking(o.path("stopSequences"), "With the tool codeExecution it would end code in the middle. Leave one of them out."))
	}
	for _, name := range []string{"speechConfig", "imageConfig", "logprobs", "responseFormat"} {
		if o.has(name) {
			o.fail(lacking(o.path(name), "Leave it out."))
		}
	}
	if o.yes("responseLogprobs") {
		o.fail(lacking(o.path("responseLogprobs"), "Leave it out."))
	}
	for _, m := range o.texts("responseModalities") {
		if m != "TEXT" && m != "MODALITY_UNSPECIFIED" {
			o.fail(lacking(o.path("responseModalities"), "Answers are TEXT; figures of code come as inlineData."))
		}
	}
	if o.has("thinkingConfig") {
		r.think(o.object("thinkingConfig"))
	}
	r.form(o)
}

func (r *request) think(o object) {
	o.only("includeThoughts", "thinkingBudget", "thinkingLevel")
	r.thoughts = o.yes("includeThoughts")
	switch level := o.text("thinkingLevel"); level {
	case "", "THINKING_LEVEL_UNSPECIFIED":
	case "MINIMAL", "LOW", "MEDIUM", "HIGH", "minimal", "low", "medium", "high":
		r.effort = strings.ToLower(level)
	default:
		o.fail(invalid("Invalid value at '%s': \"%s\". Levels are MINIMAL, LOW, MEDIUM and HIGH.", o.path("thinkingLevel"), short(level)))
	}
}

// form reads what the answer's words are to look like. It is asked for in words too: not every model can be bound to a form.
func (r *request) form(o object) {
	const jsonOnly = "Your final answer is one JSON value and nothing else: no words around it and no code fence."
	var schema json.RawMessage
	switch {
	case o.has("responseJsonSchema"):
		o.object("responseJsonSchema")
		schema = o.fields["responseJsonSchema"]
	case o.has("responseSchema"):
		schema = o.schema("responseSchema")
	}
	switch kind := o.text("responseMimeType"); kind {
	case "", "text/plain":
		if schema != nil {
			o.fail(invalid("'%s' must be application/json with a schema.", o.path("responseMimeType")))
		}
		return
	case "application/json":
	default:
		o.fail(lacking(o.path("responseMimeType"), "Types are text/plain and application/json."))
		return
	}
	words := jsonOnly
	r.format = model.Format{JSON: true}
	if schema != nil {
		r.format.Schema, r.format.Name = schema, "answer"
		words += " It fits this JSON Schema: " + string(schema)
	}
	r.system = strings.TrimSpace(r.system + "\n\n" + words)
}
