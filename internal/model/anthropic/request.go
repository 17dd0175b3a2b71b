package anthropic

import (
	"encoding/base64"
	"encoding/json"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"cove/internal/model"
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
	return params
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
			out = append(out, sdk.NewToolUseBlock(c.ID, json.RawMessage(model.ArgumentsObject(c.Arguments)), c.Name))
		case model.ToolResult:
			out = append(out, a.result(c))
		}
	}
	return out
}

func (a *adapter) result(r model.ToolResult) sdk.ContentBlockParamUnion {
	block := sdk.ToolResultBlockParam{ToolUseID: r.CallID, IsError: param.NewOpt(r.IsError)}
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
