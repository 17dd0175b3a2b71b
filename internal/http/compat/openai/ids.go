package openai

import (
	"encoding/base32"
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"cove/internal/core/ident"
)

// The prefixes of OpenAI's ids.
const (
	responsePrefix     = "resp_"
	conversationPrefix = "conv_"
	containerPrefix    = "cntr_"
	filePrefix         = "file-"
)

func responseID(turn string) string             { return responsePrefix + ident.Body(turn) }
func conversationID(conversation string) string { return conversationPrefix + ident.Body(conversation) }
func fileID(file string) string                 { return filePrefix + ident.Body(file) }

func containerID(session string) string {
	if session == "" {
		return ""
	}
	return containerPrefix + ident.Body(session)
}

// own returns cove's id for one of OpenAI's, and whether it has the form.
func own(kind, prefix, foreign string) (string, bool) {
	body, ok := strings.CutPrefix(foreign, prefix)
	if !ok {
		return "", false
	}
	id := kind + "_" + body
	return id, ident.Valid(kind, id)
}

func ownResponse(id string) (string, error) {
	if turn, ok := own(ident.Turn, responsePrefix, id); ok {
		return turn, nil
	}
	return "", noResponse(id)
}

func ownConversation(id string) (string, error) {
	if conversation, ok := own(ident.Conversation, conversationPrefix, id); ok {
		return conversation, nil
	}
	return "", noConversation(id)
}

func ownContainer(id string) (string, error) {
	if session, ok := own(ident.Session, containerPrefix, id); ok {
		return session, nil
	}
	return "", noContainer(id)
}

// ownFile takes "file-x", and "file_x" as some clients write it.
func ownFile(id string) (string, error) {
	if file, ok := own(ident.File, filePrefix, strings.Replace(id, "file_", filePrefix, 1)); ok {
		return file, nil
	}
	return "", noFile(id)
}

func noResponse(id string) *fault { return absent("Response with id '" + short(id) + "' not found.") }
func noConversation(id string) *fault {
	return absent("Conversation with id '" + short(id) + "' not found.")
}
func noContainer(id string) *fault { return absent("Container with id '" + short(id) + "' not found.") }
func noItem(id string) *fault      { return absent("Item with id '" + short(id) + "' not found.") }

func noFile(id string) *fault {
	f := absent("No such File object: " + short(id))
	f.param = "id"
	return f
}

// itemID names the output item at an index of a response. It is made from the response's id, so that the response can be found by it.
func itemID(prefix, turn string, index int) string {
	return fmt.Sprintf("%s_%s%04x", prefix, ident.Body(turn), index)
}

// ownItem returns the turn that an output item belongs to.
func ownItem(id string) (turn string, ok bool) {
	_, body, found := strings.Cut(id, "_")
	if !found || len(body) < 5 {
		return "", false
	}
	if _, err := strconv.ParseUint(body[len(body)-4:], 16, 32); err != nil {
		return "", false
	}
	turn = ident.Turn + "_" + body[:len(body)-4]
	return turn, ident.Valid(ident.Turn, turn)
}

const (
	mounted         = "/mnt/data/"
	containerFileID = "cfile_"
	longestPath     = 1024
)

// pathLetters encode a path in an id. The id says the path and nothing else: it is looked up in the container that the request names, and the
// workspace refuses paths that lead out of it.
func pathLetters() *base32.Encoding {
	return base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)
}

func cfileID(file string) string { return containerFileID + pathLetters().EncodeToString([]byte(file)) }

// cfilePath returns the path, relative to the workspace, that an id of a container file stands for.
func cfilePath(id string) (string, bool) {
	body, ok := strings.CutPrefix(id, containerFileID)
	if !ok || len(body) > longestPath*2 {
		return "", false
	}
	text, err := pathLetters().DecodeString(body)
	file := string(text)
	if err != nil || file == "" || !utf8.ValidString(file) || path.IsAbs(file) || path.Clean(file) != file || file == ".." || strings.HasPrefix(file, "../") {
		return "", false
	}
	return file, true
}
