package terminal

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/color/palette"
	"image/draw"
	_ "image/jpeg" // decoded
	"image/png"
	"strings"

	"golang.org/x/sys/unix"
)

// Protocol is how a terminal is sent a picture.
type Protocol string

// The protocols.
const (
	NoPictures Protocol = ""
	Kitty      Protocol = "kitty" // https://sw.kovidgoyal.net/kitty/graphics-protocol/
	ITerm      Protocol = "iterm" // https://iterm2.com/documentation-images.html
	Sixel      Protocol = "sixel" // https://vt100.net/docs/vt3xx-gp/chapter14.html
)

const (
	mostPoints = 16_000_000 // of a picture that is decoded
	mostSixel  = 1600       // columns of points that are sent as sixels
	kittyPiece = 4096       // characters of base64 in one sequence
	usualCell  = 8          // points of a column where the terminal does not say
)

// Detect returns what the terminal is known to understand by its environment's variables, without asking it. A multiplexer in between passes nothing on.
func Detect(getenv func(string) string) Protocol {
	kind, program := getenv("TERM"), getenv("TERM_PROGRAM")
	switch {
	case getenv("TMUX") != "" || getenv("STY") != "" || strings.HasPrefix(kind, "screen") || strings.HasPrefix(kind, "tmux"):
		return NoPictures
	case getenv("KITTY_WINDOW_ID") != "" || kind == "xterm-kitty" || kind == "xterm-ghostty" || program == "ghostty":
		return Kitty
	case program == "iTerm.app" || getenv("LC_TERMINAL") == "iTerm2" || program == "WezTerm":
		return ITerm
	case strings.HasPrefix(kind, "foot") || strings.HasPrefix(kind, "mlterm") || kind == "yaft-256color":
		return Sixel
	}
	return NoPictures
}

// Picture returns what has a terminal show a PNG or JPEG file, that many points wide (0: as it is), and end the line; "" for what is no such file and
// for one that is too large. What is sent is encoded anew: the terminal gets no byte that came from elsewhere.
func Picture(w any, p Protocol, file []byte, points int) string {
	about, _, err := image.DecodeConfig(bytes.NewReader(file))
	if err != nil || p == NoPictures || about.Width < 1 || about.Height < 1 || about.Width > mostPoints/about.Height {
		return ""
	}
	picture, _, err := image.Decode(bytes.NewReader(file))
	if err != nil {
		return ""
	}
	columns, _ := Size(w)
	cell := cellWidth(w)
	wide := max(1, min(max(columns, 20)-1, (min(cmp.Or(max(points, 0), about.Width), about.Width)+cell-1)/cell))
	if p == Sixel {
		return sixels(scaled(picture, min(wide*cell, about.Width, mostSixel))) + "\n"
	}
	var encoded bytes.Buffer
	if err := png.Encode(&encoded, picture); err != nil {
		return ""
	}
	text := base64.StdEncoding.EncodeToString(encoded.Bytes())
	if p == ITerm {
		return fmt.Sprintf("\x1b]1337;File=inline=1;width=%d;preserveAspectRatio=1;size=%d:%s\a\n", wide, encoded.Len(), text)
	}
	var b strings.Builder
	head := fmt.Sprintf("a=T,f=100,q=2,c=%d,", wide)
	for text != "" {
		n := min(len(text), kittyPiece)
		more := 0
		if n < len(text) {
			more = 1
		}
		fmt.Fprintf(&b, "\x1b_G%sm=%d;%s\x1b\\", head, more, text[:n])
		head, text = "", text[n:]
	}
	return b.String() + "\n"
}

// cellWidth is how many points wide a column of the terminal is.
func cellWidth(w any) int {
	fd, ok := Descriptor(w)
	if !ok {
		return usualCell
	}
	size, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
	if err != nil || size.Xpixel == 0 || size.Col == 0 || int(size.Xpixel) < int(size.Col) {
		return usualCell
	}
	return int(size.Xpixel) / int(size.Col)
}

// scaled is a picture with so many points in a row, each the mean of those that it stands for, on white.
func scaled(from image.Image, wide int) *image.RGBA {
	flat := image.NewRGBA(image.Rect(0, 0, from.Bounds().Dx(), from.Bounds().Dy()))
	draw.Draw(flat, flat.Bounds(), image.White, image.Point{}, draw.Src)
	draw.Draw(flat, flat.Bounds(), from, from.Bounds().Min, draw.Over)
	size := flat.Bounds().Size()
	high := max(1, size.Y*wide/size.X)
	out := image.NewRGBA(image.Rect(0, 0, wide, high))
	for y := range high {
		for x := range wide {
			var sum [3]int
			n := 0
			for v := y * size.Y / high; v < max((y+1)*size.Y/high, y*size.Y/high+1); v++ {
				for u := x * size.X / wide; u < max((x+1)*size.X/wide, x*size.X/wide+1); u++ {
					c := flat.RGBAAt(u, v)
					sum[0], sum[1], sum[2], n = sum[0]+int(c.R), sum[1]+int(c.G), sum[2]+int(c.B), n+1
				}
			}
			out.SetRGBA(x, y, color.RGBA{uint8(sum[0] / n), uint8(sum[1] / n), uint8(sum[2] / n), 255})
		}
	}
	return out
}

// sixels is a picture in the colours of a palette, in bands of six rows.
func sixels(from *image.RGBA) string {
	size := from.Bounds().Size()
	in := image.NewPaletted(from.Bounds(), palette.Plan9)
	draw.FloydSteinberg.Draw(in, in.Bounds(), from, image.Point{})
	var b strings.Builder
	fmt.Fprintf(&b, "\x1bPq\"1;1;%d;%d", size.X, size.Y)
	for i, c := range palette.Plan9 {
		r, g, bl, _ := c.RGBA()
		fmt.Fprintf(&b, "#%d;2;%d;%d;%d", i, r*100/0xffff, g*100/0xffff, bl*100/0xffff)
	}
	for top := 0; top < size.Y; top += 6 {
		var used [256]bool
		for y := top; y < min(top+6, size.Y); y++ {
			for x := range size.X {
				used[in.ColorIndexAt(x, y)] = true
			}
		}
		for i, is := range used {
			if is {
				fmt.Fprintf(&b, "#%d", i)
				band(&b, in, top, uint8(i))
				b.WriteByte('$')
			}
		}
		b.WriteByte('-')
	}
	b.WriteString("\x1b\\")
	return b.String()
}

// band writes where six rows have a colour, repeated signs shortened.
func band(b *strings.Builder, in *image.Paletted, top int, c uint8) {
	last, n := byte(0), 0
	flush := func() {
		switch {
		case n > 3:
			fmt.Fprintf(b, "!%d%c", n, last)
		default:
			b.WriteString(strings.Repeat(string(last), n))
		}
	}
	for x := range in.Bounds().Dx() {
		sign := byte(0)
		for k := range 6 {
			if y := top + k; y < in.Bounds().Dy() && in.ColorIndexAt(x, y) == c {
				sign |= 1 << k
			}
		}
		if sign += 63; sign != last {
			flush()
			last, n = sign, 0
		}
		n++
	}
	flush()
}
