package openai

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"cove/internal/llm/model"
	"cove/internal/server/hub"
)

const (
	largestImage = 20 << 20
	largestText  = 256 << 10 // of a file that the model reads itself
	largestKept  = 64 << 10  // of a data: URL within a kept item
	transient    = 24 * time.Hour
)

// content reads a message's content: a string, or parts. It returns what the model gets and what is kept.
func (in *input) content(f *form) ([]model.Content, []any, error) {
	if !f.has("content") {
		return nil, nil, missing(f.path("content"))
	}
	kind := "input_text"
	if f.text("role") == "assistant" {
		kind = "output_text"
	}
	if kindOf(f.raw["content"]) == "a string" {
		text := f.text("content")
		part := map[string]any{"type": kind, "text": text}
		if kind == "output_text" {
			part["annotations"], part["logprobs"] = []any{}, []any{}
		}
		return []model.Content{model.Text{Text: text}}, []any{part}, f.err
	}
	var content []model.Content
	var parts []any
	for i, raw := range f.list("content") {
		part := f.object(fmt.Sprintf("content[%d]", i), raw)
		if f.err != nil {
			break
		}
		c, stored, err := in.part(part)
		if err != nil {
			return nil, nil, err
		}
		content, parts = append(content, c...), append(parts, stored)
	}
	return content, parts, f.err
}

func (in *input) part(f *form) ([]model.Content, any, error) {
	var content []model.Content
	var err error
	stored := map[string]json.RawMessage{}
	for name, value := range f.raw {
		stored[name] = value
	}
	switch kind := f.needed("type"); kind {
	case "input_text", "output_text", "text", "summary_text":
		content = []model.Content{model.Text{Text: f.text("text")}}
	case "refusal":
		content = []model.Content{model.Text{Text: f.text("refusal")}}
	case "input_image":
		content, err = in.image(f)
		in.elide(stored, "image_url")
	case "input_file":
		content, err = in.file(f, stored)
	default:
		err = notOneOf(f.path("type"), kind, []string{"input_text", "input_image", "input_file", "output_text", "refusal"})
	}
	if f.err != nil {
		err = f.err
	}
	return content, stored, err
}

// elide drops what is large from a kept item; OpenAI's clients ask for it with include, and get null otherwise.
func (in *input) elide(stored map[string]json.RawMessage, name string) {
	if len(stored[name]) > largestKept && !in.dry {
		stored[name] = json.RawMessage("null")
	}
}

func (in *input) image(f *form) ([]model.Content, error) {
	if id := f.text("file_id"); id != "" {
		return in.storedImage(f, id)
	}
	var url string
	if kindOf(f.raw["image_url"]) == "an object" { // as in Chat Completions
		url = f.object("image_url", f.raw["image_url"]).needed("url")
	} else {
		url = f.text("image_url")
	}
	switch {
	case url == "":
		return nil, missing(f.path("image_url"))
	case !strings.HasPrefix(url, "data:"):
		return nil, unsupported(f.path("image_url"), "This server does not fetch addresses. Send the image as a data: URL, or upload it and send its 'file_id'.")
	}
	image, ok := dataImage(url)
	if !ok {
		return nil, invalid(f.path("image_url"), "invalid_value", "Invalid '"+f.path("image_url")+"': expected a base64-encoded data: URL with a PNG, JPEG, GIF or WebP image "+
			"of at most 20 MiB.")
	}
	if in.inWorkspace() {
		name := fmt.Sprintf("image_%d.%s", len(in.files)+1, strings.TrimPrefix(image.MIME, "image/"))
		if _, err := in.upload(name, image.Data); err != nil {
			return nil, err
		}
	}
	return []model.Content{image}, nil
}

func (in *input) storedImage(f *form, id string) ([]model.Content, error) {
	file, err := ownFile(id)
	if err == nil {
		_, _, err = in.attach(f.path("file_id"), file)
	} else {
		err = invalid(f.path("file_id"), "", "No such File object: "+short(id))
	}
	if err != nil {
		return nil, err
	}
	data, whole, err := in.peek(file, largestImage)
	if err != nil {
		return nil, err
	}
	image, ok := asImage(data)
	if !ok || !whole {
		return nil, invalid(f.path("file_id"), "invalid_value", "The file is not a PNG, JPEG, GIF or WebP image of at most 20 MiB.")
	}
	return []model.Content{image}, nil
}

// peek reads the beginning of a stored file and says whether that is all.
func (in *input) peek(file string, limit int64) ([]byte, bool, error) {
	record, content, err := in.s.Hub.OpenFile(in.c.Context(), in.c.who, file)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = content.Close() }()
	data, err := io.ReadAll(io.LimitReader(content, limit))
	return data, record.Size <= limit, err
}

func dataImage(url string) (model.Image, bool) {
	_, data, ok := dataURL(url)
	if !ok || len(data) > largestImage {
		return model.Image{}, false
	}
	return asImage(data)
}

// asImage trusts the bytes, not what a client calls them.
func asImage(data []byte) (model.Image, bool) {
	kind := http.DetectContentType(data)
	switch kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return model.Image{MIME: kind, Data: data}, true
	}
	return model.Image{}, false
}

func dataURL(url string) (mime string, data []byte, ok bool) {
	head, text, found := strings.Cut(url, ",")
	mime, isData := strings.CutPrefix(head, "data:")
	mime, encoded := strings.CutSuffix(mime, ";base64")
	if !found || !isData || !encoded {
		return "", nil, false
	}
	data, err := base64.StdEncoding.DecodeString(text)
	return mime, data, err == nil
}

func (in *input) file(f *form, stored map[string]json.RawMessage) ([]model.Content, error) {
	switch {
	case f.has("file_url"):
		return nil, unsupported(f.path("file_url"), "This server does not fetch addresses. Upload the file and send its 'file_id', or send 'file_data'.")
	case f.has("file_id"):
		id := f.text("file_id")
		file, err := ownFile(id)
		if err != nil {
			return nil, invalid(f.path("file_id"), "", "No such File object: "+short(id))
		}
		record, name, err := in.attach(f.path("file_id"), file)
		if err != nil || in.python || in.dry {
			return savedAs(record.Name, name), err
		}
		data, whole, err := in.peek(file, largestText)
		if err != nil {
			return nil, err
		}
		return readable(f, record.Name, data, whole)
	case f.has("file_data"):
		return in.fileData(f, stored)
	}
	return nil, missing(f.path("file_id"))
}

func (in *input) fileData(f *form, stored map[string]json.RawMessage) ([]model.Content, error) {
	encoded := f.text("file_data")
	_, data, ok := dataURL(encoded)
	if !ok {
		var err error
		if data, err = base64.StdEncoding.DecodeString(encoded); err != nil {
			return nil, invalid(f.path("file_data"), "invalid_value", "Invalid '"+f.path("file_data")+"': expected base64-encoded data, or a data: URL with it.")
		}
	}
	name := fileName(f.text("filename"))
	if name == "" {
		return nil, missing(f.path("filename"))
	}
	in.elide(stored, "file_data")
	if in.dry {
		return nil, nil
	}
	if in.python {
		saved, err := in.upload(name, data)
		return savedAs(name, saved), err
	}
	return readable(f, name, data, len(data) <= largestText)
}

// fileName is the last part of what a client calls a file.
func fileName(name string) string {
	name = path.Base(strings.ReplaceAll(name, `\`, "/"))
	if name == "." || name == ".." || name == "/" || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) || len(name) > 255 {
		return ""
	}
	return name
}

// readable gives a text file to a model that has no interpreter to open it with.
func readable(f *form, name string, data []byte, whole bool) ([]model.Content, error) {
	if !whole || !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return nil, unsupported(f.at, "The file '"+short(name)+"' is not a text of at most 256 KiB. Add the code_interpreter tool, which can open it.")
	}
	return []model.Content{model.Text{Text: "File " + name + ":\n" + string(data)}}, nil
}

// savedAs is what the model is told of a file that could not have its name, if anything.
func savedAs(wanted, name string) []model.Content {
	if said := saidOf(wanted, name); said != "" && name != "" {
		return []model.Content{model.Text{Text: said}}
	}
	return nil
}

// upload stores what came within the request for as long as it takes to get into the workspace. It returns what it is called there.
func (in *input) upload(name string, data []byte) (string, error) {
	if int64(len(data)) > in.s.MaxFile {
		return "", invalid("", "file_too_large", fmt.Sprintf("The file '%s' is larger than the %d bytes that this server takes.", short(name), in.s.MaxFile))
	}
	record, err := in.s.Hub.AddFile(in.c.Context(), in.c.who, hub.NewFile{Name: name, Purpose: "user_data", Life: transient}, bytes.NewReader(data))
	if err != nil {
		return "", err
	}
	return in.put(record, false), nil
}
