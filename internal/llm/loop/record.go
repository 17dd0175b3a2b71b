package loop

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"cove/internal/llm/model"
	"cove/internal/python/chart"
	"cove/internal/python/display"
	"cove/internal/python/kernel"
)

// Bounds of the output of an execution that is kept for the model.
const (
	recordLimit   = 1 << 20 // bytes of text kept before cutting
	imagesPerCall = 4
	imageLimit    = 4 << 20 // bytes of one image
	filesNamed    = 30
	chartChars    = 3000 // of the words for one figure, in bytes
)

// segment is a stretch of output in the order in which it came.
type segment struct {
	text   []byte
	stream bool
	id     string // of a display that may be updated
	figure int    // its number, or 0
}

// picture is an image for a model that takes images.
type picture struct {
	figure int
	image  model.Image
}

// record collects what an execution emits, in the form in which the model gets it.
type record struct {
	segments []segment
	size     int  // bytes of everything but streams
	hidden   int  // characters that were cut already
	clear    bool // clear the output before the next one
	failure  *kernel.Error
	files    []kernel.File
	installs []kernel.Install // that are over
	rollback *kernel.Rollback
	sees     bool // images are wanted
	pictures []picture
	figures  int // shown in the conversation so far
	done     *kernel.Done
}

func newRecord(figures int, sees bool) *record { return &record{figures: figures, sees: sees} }

func (r *record) add(event kernel.Event) {
	switch e := event.(type) {
	case kernel.Stream:
		r.stream(e)
	case kernel.Result:
		text, figure := r.describe(e.Data, e.Metadata, e.Told, 0)
		r.output(segment{text: text, figure: figure})
	case kernel.Display:
		r.display(e)
	case kernel.ClearOutput:
		r.clear = true
		if !e.Wait {
			r.clearNow()
		}
	case kernel.Error:
		r.failure = &e
	case kernel.File:
		r.files = append(r.files, e)
	case kernel.Install:
		if e.Progress == nil {
			r.installs = append(r.installs, e)
		}
	case kernel.Rollback:
		r.rollback = &e
	case kernel.Done:
		r.done = &e
	}
}

func (r *record) clearNow() {
	if r.clear {
		r.segments, r.size, r.hidden, r.clear = nil, 0, 0, false
	}
}

func (r *record) stream(e kernel.Stream) {
	r.clearNow()
	last := len(r.segments) - 1
	if last < 0 || !r.segments[last].stream {
		r.segments = append(r.segments, segment{stream: true})
		last++
	}
	r.segments[last].text = r.bounded(append(r.segments[last].text, e.Data...))
}

// bounded keeps the beginning and the end of very much output.
func (r *record) bounded(text []byte) []byte {
	if len(text) <= 2*recordLimit {
		return text
	}
	from, to := runeStart(text, recordLimit/2), runeStart(text, len(text)-recordLimit/2)
	r.hidden += utf8.RuneCount(text[from:to])
	return append(text[:from], text[to:]...)
}

func (r *record) output(s segment) {
	r.clearNow()
	if len(s.text) == 0 {
		return
	}
	if r.size > recordLimit {
		r.hidden += utf8.RuneCount(s.text)
		return
	}
	s.text = r.bounded(s.text)
	r.size += len(s.text)
	r.segments = append(r.segments, s)
}

func (r *record) display(e kernel.Display) {
	if e.Update && e.ID != "" {
		for n, s := range r.segments {
			if s.id == e.ID {
				r.segments[n].text, r.segments[n].figure = r.describe(e.Data, e.Metadata, e.Told, s.figure)
				return
			}
		}
	}
	text, figure := r.describe(e.Data, e.Metadata, e.Told, 0)
	r.output(segment{text: text, id: e.ID, figure: figure})
}

// describe returns what the model is told of an object, and takes its image, in the place of the figure that it replaces if that is not 0. It returns the
// figure's number, or 0 when the object is none.
func (r *record) describe(data kernel.Bundle, metadata map[string]any, told kernel.Told, replaces int) ([]byte, int) {
	for _, mime := range []string{"image/png", "image/jpeg", "image/svg+xml", "image/gif", "image/webp"} {
		if text, ok := data[mime].(string); ok {
			if replaces == 0 {
				r.figures++
				replaces = r.figures
			}
			note, seen := r.figure(replaces, mime, text, metadata[mime])
			if !seen {
				note += cmp.Or(chartWords(told.Chart), pictureWords(data))
			}
			return []byte(note), replaces
		}
	}
	if told.Text != "" {
		return []byte(told.Text), 0
	}
	return []byte(words(data) + chartWords(told.Chart)), 0
}

// chartWords tells in words, below the note on a figure, what it shows.
func chartWords(data []byte) string {
	if len(data) == 0 {
		return ""
	}
	c, err := chart.Parse(data)
	if err != nil {
		return ""
	}
	words := c.Words(chartChars)
	if words == "" {
		return ""
	}
	return " It shows:\n" + indent(words)
}

// pictureWords tells of a picture of Pillow's what Pillow says of it: its kind and size.
func pictureWords(data kernel.Bundle) string {
	if plain, _ := data["text/plain"].(string); strings.HasPrefix(plain, "<PIL.") && len(plain) < 200 {
		return " " + plain
	}
	return ""
}

// words returns the text form of an object, or the name of its type.
func words(data kernel.Bundle) string {
	for mime := range data {
		if strings.Contains(mime, "plotly") || strings.Contains(mime, "vega") {
			return "[interactive chart shown to the user]"
		}
	}
	page, ok := data["text/html"].(string)
	_, isJSON := data["application/json"]
	if !ok || page == "" || isJSON || !display.IsNameless(data) {
		return display.Text(data)
	}
	note := fmt.Sprintf("[HTML of %d bytes shown to the user]", len(page))
	if title := cmp.Or(display.HTMLTitle(page), display.TypeName(data)); title != "" {
		note = fmt.Sprintf("[HTML of %d bytes shown to the user: %s]", len(page), title)
	}
	if text := display.HTMLText(page); text != "" {
		note += "\n" + text
	}
	return note
}

// figure takes an image. It returns the note that stands for it, and whether the model sees it.
func (r *record) figure(number int, mime, encoded string, said any) (note string, seen bool) {
	note = fmt.Sprintf("[figure %d shown to the user]", number)
	if !r.sees || (mime != "image/png" && mime != "image/jpeg") {
		return note, false
	}
	r.pictures = slices.DeleteFunc(r.pictures, func(p picture) bool { return p.figure == number })
	image, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(encoded), ""))
	if size, ok := said.(json.RawMessage); err == nil && ok && mime == "image/png" {
		image = halved(image, size)
	}
	switch {
	case err != nil:
		return fmt.Sprintf("[figure %d could not be decoded]", number), false
	case len(image) > imageLimit:
		return note + " [too large to be shown to you]", false
	case len(r.pictures) >= imagesPerCall:
		return note + " [not shown to you: more than " + fmt.Sprint(imagesPerCall) + " figures]", false
	}
	r.pictures = append(r.pictures, picture{number, model.Image{MIME: mime, Data: image}})
	return note, true
}

var terminalCodes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("\x1b\\[[0-9;?]*[a-zA-Z]|\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)")
})

// printed returns the output as a terminal would show it: without colours, and only the last version of a line that was overwritten.
func (r *record) printed() string { return strings.TrimRight(r.shown(), "\n ") }

// shown is what printed returns, with the line breaks at its end.
func (r *record) shown() string {
	var b strings.Builder
	for _, s := range r.segments {
		text := string(s.text)
		if s.stream {
			text = screen(text)
		} else if b.Len() > 0 && !strings.HasSuffix(b.String(), "\n") {
			b.WriteByte('\n')
		}
		b.WriteString(text)
		if !s.stream && !strings.HasSuffix(text, "\n") {
			b.WriteByte('\n')
		}
	}
	return strings.ToValidUTF8(b.String(), "\uFFFD")
}

func screen(text string) string {
	text = terminalCodes().ReplaceAllString(text, "")
	if !strings.Contains(text, "\r") {
		return text
	}
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for n, line := range lines {
		line = strings.TrimRight(line, "\r")
		lines[n] = line[strings.LastIndexByte(line, '\r')+1:]
	}
	return strings.Join(lines, "\n")
}
