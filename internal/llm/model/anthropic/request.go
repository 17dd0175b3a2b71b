package anthropic

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"cove/internal/llm/model"
)

func (a *adapter) params(req model.Request) sdk.MessageNewParams {
	params := sdk.MessageNewParams{Model: a.opts.Model, MaxTokens: DefaultMaxTokens}
	if req.MaxTokens > 0 {
		params.MaxTokens = int64(req.MaxTokens)
	}
	if req.System != "" {
		params.System = []sdk.TextBlockParam{{Text: req.System}}
	}
	for _, m := range req.Messages {
		blocks := a.blocks(m)
		switch {
		case len(blocks) == 0:
		case m.Role == model.RoleAssistant:
			params.Messages = append(params.Messages, sdk.NewAssistantMessage(blocks...))
		default:
			params.Messages = append(params.Messages, sdk.NewUserMessage(blocks...))
		}
	}
	for _, t := range req.Tools {
		params.Tools = append(params.Tools, sdk.ToolUnionParam{OfTool: &sdk.ToolParam{
			Name: t.Name, Description: param.NewOpt(t.Description), InputSchema: schema(t.Schema),
		}})
	}
	if len(req.Tools) > 0 {
		params.ToolChoice = choice(req)
	}
	sampling(&params, req)
	params.StopSequences = req.Stop
	return params
}

// sampling caps the temperature at 1, the highest that the service takes where others go to 2. Newer models refuse top_p beside a
// temperature, so it is sent alone only.
func sampling(params *sdk.MessageNewParams, req model.Request) {
	if req.Temperature != nil {
		params.Temperature = param.NewOpt(min(*req.Temperature, 1))
	} else if req.TopP != nil {
		params.TopP = param.NewOpt(*req.TopP)
	}
}

// choice says which tool the model has to call, and whether it may call several at once, which the service has as a part of the choice.
func choice(req model.Request) sdk.ToolChoiceUnionParam {
	single := param.Opt[bool]{}
	if req.Parallel != nil && !*req.Parallel {
		single = param.NewOpt(true)
	}
	switch {
	case req.Choice.Name != "":
		return sdk.ToolChoiceUnionParam{OfTool: &sdk.ToolChoiceToolParam{Name: req.Choice.Name, DisableParallelToolUse: single}}
	case req.Choice.Mode == "none":
		return sdk.ToolChoiceUnionParam{OfNone: &sdk.ToolChoiceNoneParam{}}
	case req.Choice.Mode == "required":
		return sdk.ToolChoiceUnionParam{OfAny: &sdk.ToolChoiceAnyParam{DisableParallelToolUse: single}}
	case req.Choice.Mode != "" || single.Value:
		return sdk.ToolChoiceUnionParam{OfAuto: &sdk.ToolChoiceAutoParam{DisableParallelToolUse: single}}
	}
	return sdk.ToolChoiceUnionParam{}
}

// schema keeps every keyword of the schema; the type "object" is the SDK's own.
func schema(raw json.RawMessage) sdk.ToolInputSchemaParam {
	var object map[string]any
	_ = json.Unmarshal(raw, &object)
	delete(object, "type")
	return sdk.ToolInputSchemaParam{ExtraFields: object}
}

// blocks leaves out empty texts, which the service refuses.
func (a *adapter) blocks(m model.Message) []sdk.ContentBlockParamUnion {
	var out []sdk.ContentBlockParamUnion
	for _, c := range m.Content {
		switch c := c.(type) {
		case model.Text:
			if c.Text != "" {
				out = append(out, sdk.NewTextBlock(c.Text))
			}
		case model.Image:
			if a.sees {
				out = append(out, sdk.ContentBlockParamUnion{OfImage: picture(c)})
			}
		case model.ToolCall:
			out = append(out, sdk.NewToolUseBlock(toolID(c.ID), json.RawMessage(model.ArgumentsObject(c.Arguments)), c.Name))
		case model.ToolResult:
			out = append(out, a.result(c))
		}
	}
	return out
}

// toolID is the id of a call in the characters that the service takes; other models' ids may have others.
func toolID(id string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || ('0' <= r && r <= '9') || ('a' <= r && r <= 'z') || ('A' <= r && r <= 'Z') {
			return r
		}
		return '_'
	}, id)
}

func (a *adapter) result(r model.ToolResult) sdk.ContentBlockParamUnion {
	block := sdk.ToolResultBlockParam{ToolUseID: toolID(r.CallID), IsError: param.NewOpt(r.IsError)}
	if r.Text != "" {
		block.Content = append(block.Content, sdk.ToolResultBlockParamContentUnion{OfText: &sdk.TextBlockParam{Text: r.Text}})
	}
	if a.sees {
		for _, image := range r.Images {
			block.Content = append(block.Content, sdk.ToolResultBlockParamContentUnion{OfImage: picture(image)})
		}
	}
	return sdk.ContentBlockParamUnion{OfToolResult: &block}
}

func picture(i model.Image) *sdk.ImageBlockParam {
	return &sdk.ImageBlockParam{Source: sdk.ImageBlockParamSourceUnion{OfBase64: &sdk.Base64ImageSourceParam{
		Data: base64.StdEncoding.EncodeToString(i.Data), MediaType: sdk.Base64ImageSourceMediaType(i.MIME),
	}}}
}
