package openai

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"cove/internal/model"
)

func (a *adapter) params(req model.Request) openai.ChatCompletionNewParams {
	params := openai.ChatCompletionNewParams{Model: a.opts.Model}
	if req.System != "" {
		params.Messages = append(params.Messages, openai.SystemMessage(req.System))
	}
	for _, m := range req.Messages {
		params.Messages = append(params.Messages, a.messages(m)...)
	}
	for _, t := range req.Tools {
		params.Tools = append(params.Tools, openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: t.Name, Description: param.NewOpt(t.Description), Parameters: schema(t.Schema),
		}))
	}
	if !a.quirks.noUsage.Load() {
		params.StreamOptions.IncludeUsage = param.NewOpt(true)
	}
	if req.MaxTokens > 0 && a.quirks.newTokenLimit.Load() {
		params.MaxCompletionTokens = param.NewOpt(int64(req.MaxTokens))
	} else if req.MaxTokens > 0 {
		params.MaxTokens = param.NewOpt(int64(req.MaxTokens))
	}
	return params
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

// results sends the pictures of a round in a user message behind it: messages of tools carry only text.
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
