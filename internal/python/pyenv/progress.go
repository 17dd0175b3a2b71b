package pyenv

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// lines collects a program's stderr and passes on each line of it.
type lines struct {
	text   bytes.Buffer
	rest   []byte
	follow func(line string)
}

func (l *lines) Write(p []byte) (int, error) {
	l.text.Write(p)
	if l.follow == nil {
		return len(p), nil
	}
	l.rest = append(l.rest, p...)
	for {
		at := bytes.IndexByte(l.rest, '\n')
		if at < 0 {
			return len(p), nil
		}
		l.follow(string(l.rest[:at]))
		l.rest = l.rest[at+1:]
	}
}

// bar tells a person how an installation goes, from what uv prints. On a terminal it
// redraws one line; elsewhere it prints a line at each stage.
type bar struct {
	out      io.Writer
	terminal bool
	begun    map[string]float64 // large packages and their sizes in MB
	done     map[string]bool
	drawn    bool
}

func newBar(out io.Writer, terminal bool) *bar {
	return &bar{out: out, terminal: terminal, begun: map[string]float64{}, done: map[string]bool{}}
}

// follow reads one line of uv's: "Resolved 110 packages in 1s", "Downloading scipy (34.1MiB)",
// " Downloaded scipy", "Prepared ...", "Installed ...".
func (b *bar) follow(line string) {
	words := strings.Fields(line)
	if len(words) < 2 {
		return
	}
	switch words[0] {
	case "Downloading":
		if len(words) == 3 {
			b.begun[words[1]] = megabytes(strings.Trim(words[2], "()"))
			b.draw(words[1])
		}
	case "Downloaded":
		b.done[words[1]] = true
		b.draw(words[1])
	case "Resolved", "Prepared", "Installed":
		b.clear()
		fmt.Fprintln(b.out, "  "+strings.TrimSpace(line))
	}
}

const barWidth = 30

func (b *bar) draw(name string) {
	if !b.terminal {
		return
	}
	var total, got float64
	for n, mb := range b.begun {
		total += mb
		if b.done[n] {
			got += mb
		}
	}
	filled := 0
	if total > 0 {
		filled = int(barWidth * got / total)
	}
	fmt.Fprintf(b.out, "\r\x1b[K  [%s%s] %.0f of %.0f MB  %s", strings.Repeat("#", filled), strings.Repeat(".", barWidth-filled), got, total, name)
	b.drawn = true
}

// clear removes the drawn line, so that something else can be printed.
func (b *bar) clear() {
	if b.drawn {
		fmt.Fprint(b.out, "\r\x1b[K")
		b.drawn = false
	}
}

// megabytes reads a size such as 34.1MiB or 812.5KiB.
func megabytes(s string) float64 {
	digits := strings.TrimRight(s, "KMGTiB")
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return 0
	}
	switch strings.TrimPrefix(s, digits) {
	case "KiB":
		return n / 1024
	case "GiB":
		return n * 1024
	}
	return n
}

// size writes a number of bytes for a person.
func size(bytes int64) string {
	if bytes >= 1e9 {
		return fmt.Sprintf("%.1f GB", float64(bytes)/1e9)
	}
	return fmt.Sprintf("%d MB", bytes/1e6)
}
