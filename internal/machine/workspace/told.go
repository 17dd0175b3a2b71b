package workspace

import (
	"encoding/json"
	"strings"
	"unicode"
)

// Told is what a model is told of a file before it reads it, as a program in the sandbox says. It is bounded, and has no control characters.
type Told struct {
	What  string   // one line: "1,200 rows × 5 columns, separated by tabs"; "" where nobody looked
	Lines []string // of the file, or about what is in it
}

// Bounds of what is told of one file, in characters; the program keeps to smaller ones.
const (
	// LargestTold is the length of what is told of one file, as JSON.
	LargestTold = 64 << 10

	longestWhat = 400
	mostTold    = 40
	longestTold = 1600
	wholeTold   = 5000
)

// ReadTold reads what the program has written of one file. What has not the form is taken for nothing.
func ReadTold(text []byte) Told {
	var said struct {
		What  string   `json:"what"`
		Lines []string `json:"lines"`
	}
	if len(text) > LargestTold || json.Unmarshal(text, &said) != nil {
		return Told{}
	}
	t := Told{What: strings.Join(strings.Fields(plainLine(said.What, longestWhat)), " ")}
	room := wholeTold
	for _, line := range said.Lines[:min(len(said.Lines), mostTold)] {
		line = plainLine(line, min(longestTold, room))
		if room -= len(line); line == "" && room < 100 {
			break
		}
		t.Lines = append(t.Lines, line)
	}
	return t
}

// plainLine makes one line of a text, with most bytes at most: tabs stay, and what has no shape becomes a space.
func plainLine(text string, most int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) > most {
		cut := max(most, 0)
		for cut > 0 && text[cut]&0xC0 == 0x80 {
			cut--
		}
		text = text[:cut] + "…"
	}
	return strings.Map(func(r rune) rune {
		if r != '\t' && !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
}
