package gemini

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"cove/internal/core/ident"
	"cove/internal/llm/model"
)

// Bounds of a request's contents.
const (
	mostContents  = 5000
	mostParts     = 1000
	largestImage  = 20 << 20  // bytes
	largestText   = 256 << 10 // of a file that a model without Python reads
	mostAttached  = 100
	recalledImage = 4 // pictures of one execution that are sent back to the model
)

// attached is a file that the client sent within a request.
type attached struct {
	name   string
	data   []byte
	stored string // in the place of data: cove's id of a stored file
	runs   int    // executions in the conversation before it
}

// input is what "contents" says.
type input struct {
	history
	python  bool
	peek    func(name string, text bool) (peeked, error)
	seen    map[string]peeked // stored files, by their addresses
	held    int64             // bytes of them in memory, of which there may be most
	most    int64
	prompt  []string // the user's words
	files   []attached
	session string // where the last code of the conversation ran, as far as its id says; or ""
	placed  int    // executions until that one, which found the files that came before it
}

func (in *input) read(o object) {
	contents := o.objects("contents", mostContents)
	if len(contents) == 0 {
		o.fail(invalid("contents is not specified"))
	}
	for _, c := range contents {
		c.only("role", "parts")
		role := c.text("role")
		switch role {
		case "", "user", "function", "tool", "model":
		default:
			c.fail(invalid("Please use a valid role: user, model."))
		}
		in.prompt = in.contentOf(c, role == "model", in.prompt)
	}
	if o.err == nil && len(in.open) > 0 {
		o.fail(invalid("The call of the function '%s' has no functionResponse. Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.",
			short(in.open[0].Name)))
	}
}

// contentOf reads the parts of one content.
func (in *input) contentOf(c object, ofModel bool, prompt []string) []string {
	var said []model.Content // of the user
	for _, p := range c.objects("parts", mostParts) {
		if p.yes("thought") || p.err != nil {
			continue // models do not want to read their old thoughts
		}
		for _, name := range []string{"thoughtSignature", "videoMetadata", "partMetadata", "mediaResolution", "thought"} {
			delete(p.fields, name)
		}
		if len(p.fields) > 1 {
			p.fail(invalid("'%s' must have one field with data.", short(p.at)))
		}
		switch {
		case ofModel:
			in.ofModel(p)
		case p.has("functionResponse"):
			in.functionResponse(p.object("functionResponse"))
		default:
			said = append(said, in.ofUser(p)...)
		}
	}
	if len(said) == 0 {
		return prompt
	}
	in.add(model.RoleUser, said...)
	for _, s := range said {
		if t, ok := s.(model.Text); ok {
			prompt = append(prompt, t.Text)
		}
	}
	return prompt
}

func (in *input) ofUser(p object) []model.Content {
	switch {
	case p.has("text"):
		if text := p.text("text"); text != "" {
			return []model.Content{model.Text{Text: text}}
		}
	case p.has("inlineData"):
		return in.inline(p.object("inlineData"))
	case p.has("fileData"):
		return in.uploaded(p.object("fileData"))
	default:
		p.only("text", "inlineData", "fileData", "functionResponse")
	}
	return nil
}

func (in *input) ofModel(p object) {
	switch {
	case p.has("text"):
		if text := p.text("text"); text != "" {
			in.add(model.RoleAssistant, model.Text{Text: text})
		}
	case p.has("executableCode"):
		e := p.object("executableCode")
		e.only("language", "code", "id")
		in.ran(e.text("code"))
		if session, ok := sessionOf(e.text("id")); ok {
			in.session, in.placed = session, in.runs
		}
	case p.has("codeExecutionResult"):
		e := p.object("codeExecutionResult")
		e.only("outcome", "output", "id")
		output := e.text("output")
		if output == "" {
			output = noOutput
		}
		if !in.result(func(r *model.ToolResult) { r.Text = output }) {
			e.fail(invalid("'%s' does not follow an executableCode.", short(e.at)))
		}
	case p.has("inlineData"): // a figure
		if picture, ok := asImage(p.object("inlineData").bytes("data")); ok {
			in.result(func(r *model.ToolResult) {
				if len(r.Images) < recalledImage {
					r.Images = append(r.Images, picture)
				}
			})
		}
	case p.has("functionCall"):
		e := p.object("functionCall")
		e.only("id", "name", "args")
		arguments := "{}"
		if e.has("args") {
			e.object("args")
			arguments = string(e.fields["args"])
		}
		in.called(e.text("id"), e.needed("name"), arguments)
	default:
		p.only("text", "executableCode", "codeExecutionResult", "inlineData", "functionCall")
	}
}

func (in *input) functionResponse(f object) {
	f.only("id", "name", "response", "parts", "willContinue", "scheduling")
	result := model.ToolResult{Text: "{}"}
	if f.has("response") {
		f.object("response")
		result.Text = string(f.fields["response"])
	}
	for _, p := range f.objects("parts", recalledImage) {
		picture, ok := asImage(p.object("inlineData").bytes("data"))
		if !ok {
			p.fail(invalid("'%s' is not a PNG, JPEG, GIF or WebP image of at most 20 MiB.", short(p.at)))
		}
		result.Images = append(result.Images, picture)
	}
	if name := f.needed("name"); f.err == nil && !in.answered(f.text("id"), name, result) {
		f.fail(invalid("'%s' answers no functionCall of the contents before it.", short(f.at)))
	}
}

// inline takes a file that the client sends within the request: an image for the model, and any file for the code.
func (in *input) inline(o object) []model.Content {
	o.only("mimeType", "data", "displayName")
	kind, data := o.text("mimeType"), o.bytes("data")
	if o.err != nil {
		return nil
	}
	if len(data) == 0 {
		o.fail(invalid("'%s' is required.", o.path("data")))
		return nil
	}
	picture, seen := asImage(data)
	name := fmt.Sprintf("input_file_%d%s", len(in.files), ending(kind, data))
	in.files = append(in.files, attached{name: name, data: data, runs: in.runs})
	switch {
	case len(in.files) > mostAttached:
		o.fail(invalid("There are more than %d files in the contents.", mostAttached))
	case seen:
		return []model.Content{picture}
	case in.python:
		return []model.Content{model.Text{Text: "[The file that is attached here is " + name + " in the working directory.]"}}
	case len(data) <= largestText && utf8.Valid(data) && bytes.IndexByte(data, 0) < 0:
		return []model.Content{model.Text{Text: "File " + name + ":\n" + string(data)}}
	}
	o.fail(lacking(o.path("mimeType"), "Without the tool codeExecution a file is an image or a text of at most 256 KiB."))
	return nil
}

// ending is how the name of a file ends, ".csv".
func ending(kind string, data []byte) string {
	kind, _, _ = mime.ParseMediaType(kind)
	switch kind {
	case "image/jpeg":
		return ".jpeg"
	case "text/plain":
		return ".txt"
	case "text/csv":
		return ".csv"
	case "text/x-python", "application/x-python", "text/x-python-script":
		return ".py"
	case "application/json":
		return ".json"
	case "text/markdown":
		return ".md"
	case "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet":
		return ".xlsx"
	}
	if picture, ok := asImage(data); ok {
		return "." + strings.TrimPrefix(picture.MIME, "image/")
	}
	if _, sub, ok := strings.Cut(kind, "/"); ok && len(sub) <= 8 && !strings.ContainsFunc(sub, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }) {
		return "." + sub
	}
	return ".bin"
}

// asImage trusts the bytes, not what a client calls them.
func asImage(data []byte) (model.Image, bool) {
	kind := http.DetectContentType(data)
	switch kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return model.Image{MIME: kind, Data: data}, len(data) <= largestImage
	}
	return model.Image{}, false
}

// codeID names an execution: the session where it ran, the turn, and its number there.
func codeID(session, turn string, step int) string {
	return fmt.Sprintf("%s-%s-%d", ident.Body(session), ident.Body(turn), step)
}

// sessionOf is the session that an execution's id names. Whether there is such a session, and whose it is, the hub knows.
func sessionOf(id string) (string, bool) {
	body, _, found := strings.Cut(id, "-")
	session := ident.Session + "_" + body
	return session, found && ident.Valid(ident.Session, session)
}
