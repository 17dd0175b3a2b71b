package openai

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"cove/internal/llm/model"
)

func (a *adapter) params(req model.Request) openai.ChatCompletionNewParams {
	params := openai.ChatCompletionNewParams{Model: a.opts.Model}
	if req.System != "" {
		params.Messages = append(params.Messages, openai.SystemMessage(req.System))
	}
	for _, m := range req.Messages {
		params.Messages = append(params.Messages, a.messages(m)...)
	}
	tools := req.Tools
	if a.opts.Ollama {
		tools = chosen(req)
	}
	for _, t := range tools {
		function := shared.FunctionDefinitionParam{Name: t.Name, Description: param.NewOpt(t.Description), Parameters: schema(t.Schema)}
		if t.Strict && a.own {
			function.Strict = param.NewOpt(true)
		}
		params.Tools = append(params.Tools, openai.ChatCompletionFunctionTool(function))
	}
	if !a.quirks.noUsage.Load() {
		params.StreamOptions.IncludeUsage = param.NewOpt(true)
	}
	if req.MaxTokens > 0 && a.quirks.newTokenLimit.Load() {
		params.MaxCompletionTokens = param.NewOpt(int64(req.MaxTokens))
	} else if req.MaxTokens > 0 {
		params.MaxTokens = param.NewOpt(int64(req.MaxTokens))
	}
	if req.Temperature != nil {
		params.Temperature = param.NewOpt(*req.Temperature)
	}
	if req.TopP != nil {
		params.TopP = param.NewOpt(*req.TopP)
	}
	params.Stop.OfStringArray = req.Stop
	if !a.quirks.noEffort.Load() {
		params.ReasoningEffort = shared.ReasoningEffort(req.Effort)
	}
	if len(req.Extra) > 0 && !a.own {
		extra := make(map[string]any, len(req.Extra))
		for name, value := range req.Extra {
			extra[name] = value
		}
		params.SetExtraFields(extra)
	}
	// Servers that bind a model by a grammar would keep it from calling tools.
	if (a.own || len(params.Tools) == 0) && !a.quirks.noFormat.Load() {
		params.ResponseFormat = format(req.Format)
	}
	// Beside no tools the service refuses both.
	if len(params.Tools) > 0 && !a.opts.Ollama {
		params.ToolChoice = choice(req.Choice)
		if req.Parallel != nil && !a.quirks.noParallel.Load() {
			params.ParallelToolCalls = param.NewOpt(*req.Parallel)
		}
	}
	return params
}

func format(f model.Format) openai.ChatCompletionNewParamsResponseFormatUnion {
	switch {
	case !f.JSON:
		return openai.ChatCompletionNewParamsResponseFormatUnion{}
	case len(f.Schema) == 0:
		return openai.ChatCompletionNewParamsResponseFormatUnion{OfJSONObject: &shared.ResponseFormatJSONObjectParam{}}
	}
	schema := shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: f.Name, Schema: f.Schema, Strict: param.NewOpt(f.Strict)}
	return openai.ChatCompletionNewParamsResponseFormatUnion{OfJSONSchema: &shared.ResponseFormatJSONSchemaParam{JSONSchema: schema}}
}

func choice(c model.ToolChoice) openai.ChatCompletionToolChoiceOptionUnionParam {
	switch {
	case c.Name != "":
		return openai.ToolChoiceOptionFunctionToolChoice(openai.ChatCompletionNamedToolChoiceFunctionParam{Name: c.Name})
	case c.Mode != "":
		return openai.ChatCompletionToolChoiceOptionUnionParam{OfAuto: param.NewOpt(c.Mode)}
	}
	return openai.ChatCompletionToolChoiceOptionUnionParam{}
}

// chosen returns the tools that the choice leaves, for Ollama, which does not know tool_choice: a model cannot call what it is not offered.
// That it has to call something cannot be said there.
func chosen(req model.Request) []model.Tool {
	if req.Choice.Name == "" {
		if req.Choice.Mode == "none" {
			return nil
		}
		return req.Tools
	}
	for _, t := range req.Tools {
		if t.Name == req.Choice.Name {
			return []model.Tool{t}
		}
	}
	return req.Tools
}

// schema leaves a schema that is not an object to the service to complain about.
func schema(raw json.RawMessage) shared.FunctionParameters {
	var object shared.FunctionParameters
	_ = json.Unmarshal(raw, &object)
	return object
}

func (a *adapter) messages(m model.Message) []openai.ChatCompletionMessageParamUnion {
	switch m.Role {
	case model.RoleAssistant:
		return assistant(m)
	case model.RoleTool:
		return a.results(m)
	default:
		return a.user(m)
	}
}

// user sends plain text as a string, because small servers know nothing else.
func (a *adapter) user(m model.Message) []openai.ChatCompletionMessageParamUnion {
	var parts []openai.ChatCompletionContentPartUnionParam
	var texts []string
	seen := false
	for _, c := range m.Content {
		switch c := c.(type) {
		case model.Text:
			texts = append(texts, c.Text)
			parts = append(parts, openai.TextContentPart(c.Text))
		case model.Image:
			if a.sees {
				seen = true
				parts = append(parts, picture(c))
			}
		}
	}
	if seen {
		return []openai.ChatCompletionMessageParamUnion{openai.UserMessage(parts)}
	}
	return []openai.ChatCompletionMessageParamUnion{openai.UserMessage(strings.Join(texts, "\n\n"))}
}

func assistant(m model.Message) []openai.ChatCompletionMessageParamUnion {
	var message openai.ChatCompletionAssistantMessageParam
	var texts []string
	for _, c := range m.Content {
		switch c := c.(type) {
		case model.Text:
			texts = append(texts, c.Text)
		case model.ToolCall:
			message.ToolCalls = append(message.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{
				OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
					ID: c.ID,
					Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{
						Name: c.Name, Arguments: model.ArgumentsObject(c.Arguments),
					},
				},
			})
		}
	}
	// The content may be left out only beside calls.
	if text := strings.Join(texts, "\n\n"); text != "" || len(message.ToolCalls) == 0 {
		message.Content.OfString = param.NewOpt(text)
	}
	return []openai.ChatCompletionMessageParamUnion{{OfAssistant: &message}}
}

// results sends the pictures of a round in a user message after it: messages of tools carry only text.
func (a *adapter) results(m model.Message) []openai.ChatCompletionMessageParamUnion {
	var out []openai.ChatCompletionMessageParamUnion
	var pictures []openai.ChatCompletionContentPartUnionParam
	for _, c := range m.Content {
		result, ok := c.(model.ToolResult)
		if !ok {
			continue
		}
		out = append(out, openai.ToolMessage(result.Text, result.CallID))
		for _, image := range result.Images {
			pictures = append(pictures, picture(image))
		}
	}
	if a.sees && len(pictures) > 0 {
		intro := openai.TextContentPart("Images that the tool produced:")
		out = append(out, openai.UserMessage(append([]openai.ChatCompletionContentPartUnionParam{intro}, pictures...)))
	}
	return out
}

func picture(i model.Image) openai.ChatCompletionContentPartUnionParam {
	return openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{
		URL: "data:" + i.MIME + ";base64," + base64.StdEncoding.EncodeToString(i.Data),
	})
}
