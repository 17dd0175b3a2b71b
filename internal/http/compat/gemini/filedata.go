package gemini

import (
	"bytes"
	"fmt"
	"io"
	"path"
	"unicode/utf8"

	"cove/internal/core/problem"
	"cove/internal/llm/model"
	"cove/internal/server/hub"
)

// sniffed is how much of a file says of what kind it is.
const sniffed = 512

// peeked is a stored file, with its bytes where the model itself looks at them.
type peeked struct {
	hub.File
	data  []byte
	whole bool
}

// peek looks at a stored file. Pictures are read, and with text what may be one.
func (s *server) peek(c *call, name string, text bool) (peeked, error) {
	id, ok := storedID(name)
	if !ok {
		return peeked{}, noFile(name)
	}
	f, content, err := s.Hub.OpenFile(c.Context(), c.who, id)
	if err != nil {
		if problem.Of(err).Kind == problem.NotFound {
			err = noFile(name)
		}
		return peeked{}, err
	}
	defer func() { _ = content.Close() }()
	data, err := io.ReadAll(io.LimitReader(content, sniffed))
	_, picture := asImage(data)
	if err == nil && (picture && f.Size <= largestImage || text && f.Size <= largestText) {
		var rest []byte
		rest, err = io.ReadAll(io.LimitReader(content, f.Size-int64(len(data))))
		data = append(data, rest...)
	}
	return peeked{f, data, int64(len(data)) == f.Size}, err
}

// uploaded takes a file that was uploaded before: as one that comes within the request, but it is not copied.
func (in *input) uploaded(o object) []model.Content {
	o.only("mimeType", "fileUri", "displayName")
	uri := o.needed("fileUri")
	if _, own := storedID(uri); o.err == nil && !own {
		o.fail(lacking(o.path("fileUri"), "It fetches no addresses. Upload the file, or send it as inlineData."))
	}
	if o.err != nil {
		return nil
	}
	if in.seen == nil {
		in.seen = map[string]peeked{}
	}
	f, ok := in.seen[uri]
	if !ok {
		if len(in.seen) >= mostAttached {
			o.fail(invalid("There are more than %d files.", mostAttached))
			return nil
		}
		var err error
		if f, err = in.peek(uri, !in.python); err != nil {
			o.fail(err)
			return nil
		}
		if in.held += int64(len(f.data)); in.held > in.most {
			o.fail(invalid("The files that the model looks at have more than %d bytes together.", in.most))
			return nil
		}
		in.seen[uri] = f
	}
	picture, seen := asImage(f.data)
	seen = seen && f.whole
	text := f.whole && len(f.data) <= largestText && utf8.Valid(f.data) && bytes.IndexByte(f.data, 0) < 0
	name := in.attach(f)
	switch {
	case seen:
		return []model.Content{picture}
	case in.python:
		return []model.Content{model.Text{Text: "[The file that is attached here is " + name + " in the working directory.]"}}
	case text:
		return []model.Content{model.Text{Text: "File " + f.Name + ":\n" + string(f.data)}}
	}
	o.fail(lacking(o.path("fileUri"), "Without the tool codeExecution a file is an image or a text of at most 256 KiB."))
	return nil
}

// attach has a stored file in the session, once, and returns its name there.
func (in *input) attach(f peeked) string {
	for _, one := range in.files {
		if one.stored == f.ID {
			return one.name
		}
	}
	name := fmt.Sprintf("input_file_%d%s", len(in.files), suffix(f))
	in.files = append(in.files, attached{name: name, stored: f.ID, runs: in.runs})
	return name
}

// suffix is how the name of a stored file ends.
func suffix(f peeked) string {
	if end := path.Ext(f.Name); end != "" && len(end) <= 9 {
		return end
	}
	return ending(typeOf(f.File), f.data)
}
