package gemini

import (
	"net/http"
	"strconv"
	"strings"

	"cove/internal/llm/model"
	"cove/internal/server/hub"
)

// A page of the list of models.
const (
	usualPage = 50
	mostPage  = 1000
)

type modelInfo struct {
	Name        string   `json:"name"`
	BaseModelID string   `json:"baseModelId"`
	Version     string   `json:"version"`
	DisplayName string   `json:"displayName"`
	Description string   `json:"description"`
	Input       int64    `json:"inputTokenLimit,omitempty"`
	Methods     []string `json:"supportedGenerationMethods"`
}

func shownModel(m hub.ModelInfo) modelInfo {
	return modelInfo{Name: "models/" + m.ID, BaseModelID: m.ID, Version: m.ID, DisplayName: m.ID, Description: "A model of the provider " + m.Provider + ".", Input: m.About.Context,
		Methods: []string{"generateContent", "streamGenerateContent", "countTokens"}}
}

func (s *server) listModels(c *call) error {
	models, err := s.Hub.Models(c.Context(), c.who)
	if err != nil {
		return err
	}
	q := c.URL.Query()
	size, err := number(q.Get("pageSize"), usualPage)
	if err != nil || size < 1 {
		return invalid("'pageSize' must be a number above 0.")
	}
	from, err := number(q.Get("pageToken"), 0)
	if err != nil || from < 0 || from > len(models) {
		return invalid("'pageToken' is not one of this list.")
	}
	to := min(from+min(size, mostPage), len(models))
	out := struct {
		Models []modelInfo `json:"models"`
		Next   string      `json:"nextPageToken,omitempty"`
	}{Models: []modelInfo{}}
	for _, m := range models[from:to] {
		out.Models = append(out.Models, shownModel(m))
	}
	if to < len(models) {
		out.Next = strconv.Itoa(to)
	}
	return c.reply(out)
}

func number(text string, otherwise int) (int, error) {
	if text == "" {
		return otherwise, nil
	}
	return strconv.Atoi(text)
}

func (s *server) getModel(c *call) error {
	models, err := s.Hub.Models(c.Context(), c.who)
	if err != nil {
		return err
	}
	name := c.PathValue("name")
	for _, m := range models {
		if m.ID == name || m.ID == m.Provider+"/"+name { // a request may leave the provider out, and so may this one
			return c.reply(shownModel(m))
		}
	}
	return &fault{http.StatusNotFound, "models/" + short(name) + " is not found. Call ListModels to see the list of available models.", "NOT_FOUND", 0}
}

// What is counted for a message beside its words, for a picture, and for what the interpreter adds of itself, in tokens.
const (
	tokensOfMessage     = 4
	tokensOfImage       = 1000
	tokensOfInterpreter = 1000
)

// countTokens says how many tokens a request would take. Only the model's provider knows that: it is an estimate, and a header says so.
func (s *server) countTokens(c *call) error {
	o, err := s.readBody(c)
	if err != nil {
		return err
	}
	if o.has("generateContentRequest") {
		o.only("generateContentRequest")
		o = o.object("generateContentRequest")
		o.at = ""
	}
	r, err := s.readRequest(c, o, "")
	if err != nil {
		return err
	}
	n := tokensIn(r.system)
	for _, m := range r.in.messages {
		n += tokensOf(m)
	}
	for _, f := range r.functions {
		n += tokensIn(f.Name) + tokensIn(f.Description) + tokensIn(string(f.Schema)) + tokensOfMessage
	}
	if r.python {
		n += tokensOfInterpreter
	}
	c.w.Header().Set("X-Estimate", "true")
	return c.reply(map[string]int64{"totalTokens": n})
}

func tokensOf(m model.Message) int64 {
	n := int64(tokensOfMessage)
	for _, part := range m.Content {
		switch p := part.(type) {
		case model.Text:
			n += tokensIn(p.Text)
		case model.Image:
			n += tokensOfImage
		case model.ToolCall:
			n += tokensIn(p.Name) + tokensIn(p.Arguments)
		case model.ToolResult:
			n += tokensIn(p.Text) + int64(len(p.Images))*tokensOfImage
		}
	}
	return n
}

// tokensIn estimates: four letters of the Latin alphabet make a token, and one of any other script.
func tokensIn(text string) int64 {
	latin := int64(strings.Count(text, "")) - 1
	var other int64
	for _, r := range text {
		if r >= 0x250 {
			other++
		}
	}
	return (latin-other+3)/4 + other
}
