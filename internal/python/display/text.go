// Package display gives what code shows to those who have no page to look at: objects in words, and the output of an execution as a page would have it in the end.
package display

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"cove/internal/python/kernel"
)

var (
	// objectName is what Python calls a value that has no text of its own.
	objectName  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^<([\w.]+)(?: object)?(?: at 0x[0-9a-fA-F]+)?>$`) })
	styleSheets = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?is)<style\b.*?</style\s*>`) })
)

// IsStyleSheet reports that a piece of HTML has nothing to look at: it changes how others look.
func IsStyleSheet(page string) bool {
	return strings.TrimSpace(styleSheets().ReplaceAllString(page, "")) == ""
}

// IsNameless reports that the text of an object says nothing of it, or only what it is made of: the object is meant to be looked at in one of its other forms.
func IsNameless(data kernel.Bundle) bool {
	plain, _ := data["text/plain"].(string)
	if page, ok := data["text/html"].(string); ok && page != "" && strings.Contains(plain, " object at 0x") {
		return true
	}
	return plain == "" || len(plain) < 200 && objectName().MatchString(plain)
}

// TypeName returns what Python calls the type of a nameless object, or "".
func TypeName(data kernel.Bundle) string {
	plain, _ := data["text/plain"].(string)
	if found := objectName().FindStringSubmatch(plain[:min(len(plain), 200)]); found != nil {
		return found[1]
	}
	return ""
}

// Text returns an object in words: its own text, or else its Markdown, LaTeX, JSON, or the words of its HTML; "" where it has none.
func Text(data kernel.Bundle) string {
	plain, _ := data["text/plain"].(string)
	if !IsNameless(data) {
		return plain
	}
	if value, ok := data["application/json"]; ok {
		if text, err := json.MarshalIndent(value, "", "  "); err == nil {
			return string(text)
		}
	}
	for _, kind := range []string{"text/markdown", "text/latex"} {
		if text, ok := data[kind].(string); ok && strings.TrimSpace(text) != "" {
			return text
		}
	}
	page, ok := data["text/html"].(string)
	if !ok || page == "" {
		return plain
	}
	text := HTMLText(page)
	if text == "" && !IsStyleSheet(page) {
		text = fmt.Sprintf("[HTML of %d bytes]", len(page))
	}
	return text
}
