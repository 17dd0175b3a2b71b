package display

import (
	"encoding/base64"
	"slices"
	"strings"

	"cove/internal/python/kernel"
)

// Picture is an image that code has shown.
type Picture struct {
	MIME string // "image/png", "image/jpeg", "image/gif" or "image/webp"
	Data []byte
}

// Screen gathers what an execution writes and shows, for clients that get it when it is over: as a page would have it then. What code clears is gone, and what it updates is there once, where it was first shown.
type Screen struct {
	// Room bounds the texts, in bytes, PictureRoom the pictures, and Pictures their number.
	Room, PictureRoom int64
	Pictures          int

	parts       []part
	used, drawn int64
	shown       int // pictures
	clear       bool
	// Cut says that texts were longer than the room for them, and LeftOut how many pictures found no room.
	Cut     bool
	LeftOut int
}

// mostParts bounds the texts between which something else came, and pictures.
const mostParts = 10_000

// stream says what a text is.
type stream int

const (
	stdout  stream = iota
	stderr         // what was written there, and what the session has lost
	object         // what code has shown, in words
	failure        // an exception's traceback
)

type part struct {
	of      stream
	text    []byte
	picture *Picture
	id      string // of a display that may be updated
}

// Add takes what an event says.
func (s *Screen) Add(e kernel.Event) {
	switch e := e.(type) {
	case kernel.Stream:
		of := stdout
		if e.Name == "stderr" {
			of = stderr
		}
		s.write(of, e.Data)
	case kernel.Result:
		s.show(e.Data, "", false)
	case kernel.Display:
		s.show(e.Data, e.ID, e.Update)
	case kernel.Error:
		text := strings.Join(e.Traceback, "\n") + "\n"
		if e.Hint != "" {
			text += e.Hint + "\n"
		}
		s.write(failure, []byte(text))
	case kernel.Rollback:
		s.write(stderr, []byte(e.String()+"\n"))
	case kernel.ClearOutput:
		if s.clear = true; !e.Wait {
			s.begin()
		}
	}
}

// begin clears what is to be cleared before the next output.
func (s *Screen) begin() {
	if s.clear {
		*s = Screen{Room: s.Room, PictureRoom: s.PictureRoom, Pictures: s.Pictures}
	}
}

// write adds text to the last part, where that goes on.
func (s *Screen) write(of stream, text []byte) {
	if len(text) == 0 {
		return
	}
	s.begin()
	if room := max(s.Room-s.used, 0); int64(len(text)) > room {
		text, s.Cut = text[:room], true
	}
	if len(text) == 0 {
		return
	}
	s.used += int64(len(text))
	if n := len(s.parts) - 1; n >= 0 && s.parts[n].of == of && s.parts[n].picture == nil && s.parts[n].id == "" {
		s.parts[n].text = append(s.parts[n].text, text...)
		return
	}
	if s.hasPlace() {
		s.parts = append(s.parts, part{of: of, text: slices.Clone(text)})
	}
}

// hasPlace reports that there may be one more part.
func (s *Screen) hasPlace() bool {
	s.Cut = s.Cut || len(s.parts) >= mostParts
	return len(s.parts) < mostParts
}

// show takes an object as a picture, or else in words.
func (s *Screen) show(data kernel.Bundle, id string, update bool) {
	p := part{of: object, id: id}
	if p.picture = PictureOf(data); p.picture == nil {
		if text := Text(data); text != "" {
			p.text = []byte(text + "\n")
		}
	}
	if p.picture == nil && p.text == nil {
		return
	}
	s.begin()
	if update && id != "" {
		for n := range s.parts {
			if s.parts[n].id == id {
				s.replace(n, p)
				return
			}
		}
	}
	if p.picture == nil && id == "" {
		s.write(object, p.text)
		return
	}
	if s.hasPlace() && s.fits(&p) {
		s.parts = append(s.parts, p)
	}
}

// replace puts a part in the place of another one that was shown.
func (s *Screen) replace(n int, p part) {
	s.count(s.parts[n], -1)
	if s.fits(&p) {
		s.parts[n] = p
	} else {
		s.count(s.parts[n], 1)
	}
}

func (s *Screen) count(p part, times int64) {
	s.used += times * int64(len(p.text))
	if p.picture != nil {
		s.shown += int(times)
		s.drawn += times * int64(len(p.picture.Data))
	}
}

// fits counts a part that there is room for.
func (s *Screen) fits(p *part) bool {
	if p.picture != nil && (s.shown >= s.Pictures || s.drawn+int64(len(p.picture.Data)) > s.PictureRoom) {
		s.LeftOut++
		return false
	}
	if room := max(s.Room-s.used, 0); int64(len(p.text)) > room {
		p.text, s.Cut = p.text[:room], true
	}
	s.count(*p, 1)
	return true
}

// Stdout is what code wrote there, with objects in words.
func (s *Screen) Stdout() string { return s.text(stdout, object) }

// Stderr is what code wrote there, with tracebacks and what the session has lost.
func (s *Screen) Stderr() string { return s.text(stderr, failure) }

// Written is what code itself wrote to its two streams.
func (s *Screen) Written() (out, err string) { return s.text(stdout), s.text(stderr) }

// All is all text, in the order in which it came.
func (s *Screen) All() string { return s.text(stdout, stderr, object, failure) }

func (s *Screen) text(of ...stream) string {
	var b strings.Builder
	for _, p := range s.parts {
		if slices.Contains(of, p.of) {
			b.Write(p.text)
		}
	}
	return strings.ToValidUTF8(b.String(), "\ufffd")
}

// Shown are the pictures, in the order in which they were first shown.
func (s *Screen) Shown() (all []Picture) {
	for _, p := range s.parts {
		if p.picture != nil {
			all = append(all, *p.picture)
		}
	}
	return all
}

// PictureOf is the picture of an object, or nil.
func PictureOf(data kernel.Bundle) *Picture {
	for _, kind := range []string{"image/png", "image/jpeg", "image/gif", "image/webp"} {
		text, ok := data[kind].(string)
		if !ok || text == "" {
			continue
		}
		if image, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), "")); err == nil && len(image) > 0 {
			return &Picture{kind, image}
		}
	}
	return nil
}
