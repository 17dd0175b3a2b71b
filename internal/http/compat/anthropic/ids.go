package anthropic

import (
	"strings"

	"cove/internal/core/ident"
)

// The prefixes of Anthropic's ids.
const (
	messagePrefix   = "msg_"
	containerPrefix = "container_"
	filePrefix      = "file_"
	codePrefix      = "srvtoolu_"
	callPrefix      = "toolu_"
)

// newID is an id of something that the server does not find again.
func newID(prefix string) string { return prefix + ident.Body(ident.New("msg")) }

func messageID(turn string) string { return messagePrefix + ident.Body(turn) }
func fileID(file string) string    { return filePrefix + ident.Body(file) }

// own returns cove's id for one of Anthropic's, and whether it has the form.
func own(kind, prefix, foreign string) (string, bool) {
	body, ok := strings.CutPrefix(foreign, prefix)
	id := kind + "_" + body
	return id, ok && ident.Valid(kind, id)
}

func ownFile(id string) (string, error) {
	if file, ok := own(ident.File, filePrefix, id); ok {
		return file, nil
	}
	return "", noFile(id)
}

func noFile(id string) *fault      { return absent("File not found: " + short(id)) }
func noContainer(id string) *fault { return absent("Container not found: " + short(id)) }
func noModel(name string) *fault   { return absent("model: " + short(name)) }
