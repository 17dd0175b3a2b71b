package model

import (
	"encoding/json"
	"strings"
)

// Sight says whether a model sees images.
type Sight int

// The kinds of sight. SightAuto goes by the model's name.
const (
	SightAuto Sight = iota
	SightOn
	SightOff
)

// Sees decides for the model with the given name, as the provider knows it. An unknown name is taken as blind: a
// picture that is left out costs less than a request that is refused.
func (s Sight) Sees(name string) bool {
	if s != SightAuto {
		return s == SightOn
	}
	name = strings.ToLower(name)
	last := name[strings.LastIndex(name, "/")+1:]
	if strings.HasPrefix(last, "o1") || strings.HasPrefix(last, "o3") || strings.HasPrefix(last, "o4") {
		return true
	}
	return anyIn(name,
		"gpt-4o", "gpt-4.1", "gpt-4-turbo", "gpt-5", "gpt-6", "chatgpt", "claude", "gemini", "gemma3", "gemma-3", "gemma4", "grok-4", "vision", "-vl", "vl:", "2.5vl", "qwen3vl", "qvq", "omni",
		"llava", "pixtral", "llama4", "llama-4", "minicpm-v", "internvl", "glm-4v", "glm-4.5v", "kimi-k2.5", "moondream", "mistral-small3", "bakllava")
}

// ArgumentsObject returns the arguments of a call in a form that may be sent back to a provider: as they are where
// they are a JSON object, else wrapped in one. Servers refuse a conversation with anything else in it.
func ArgumentsObject(arguments string) string {
	var object map[string]any
	if json.Unmarshal([]byte(arguments), &object) == nil && object != nil {
		return arguments
	}
	if strings.TrimSpace(arguments) == "" {
		return "{}"
	}
	wrapped, _ := json.Marshal(map[string]string{"invalid_arguments": arguments})
	return string(wrapped)
}

// HasImages reports whether a request carries a picture.
func HasImages(req Request) bool {
	for _, m := range req.Messages {
		for _, c := range m.Content {
			switch c := c.(type) {
			case Image:
				return true
			case ToolResult:
				if len(c.Images) > 0 {
					return true
				}
			}
		}
	}
	return false
}
