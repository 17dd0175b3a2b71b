package terminal_test

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"image/png"
	"regexp"
	"strings"
	"testing"

	"cove/internal/commands/terminal"
)

func chart(t *testing.T, wide, high int) []byte {
	t.Helper()
	picture := image.NewRGBA(image.Rect(0, 0, wide, high))
	for x := range wide {
		for y := range high {
			picture.SetRGBA(x, y, color.RGBA{uint8(x * y), uint8(x), uint8(y), 255})
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, picture); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestPictures(t *testing.T) {
	t.Parallel()
	file := chart(t, 320, 200)
	kitty := terminal.Picture(nil, terminal.Kitty, file, 160)
	pieces := regexp.MustCompile("\x1b_G([^;]*);([^\x1b]*)\x1b\\\\").FindAllStringSubmatch(kitty, -1)
	text := ""
	for i, p := range pieces {
		if last := i == len(pieces)-1; strings.HasSuffix(p[1], "m=1") == last || len(p[2]) > 4096 {
			t.Errorf("piece %d of %d is %s with %d bytes", i, len(pieces), p[1], len(p[2]))
		}
		text += p[2]
	}
	if !strings.HasPrefix(pieces[0][1], "a=T,f=100,q=2,c=19,") { // 160 points of 8 are 20 columns; there is room for 19
		t.Errorf("the first piece says %s", pieces[0][1])
	}
	for _, text := range []string{text, strings.TrimSuffix(regexp.MustCompile(`^.*:`).ReplaceAllString(terminal.Picture(nil, terminal.ITerm, file, 0), ""), "\a\n")} {
		raw, err := base64.StdEncoding.DecodeString(text)
		if err == nil {
			_, err = png.Decode(bytes.NewReader(raw))
		}
		if err != nil {
			t.Error(err)
		}
	}
	sixel := terminal.Picture(nil, terminal.Sixel, file, 0)
	if !regexp.MustCompile("^\x1bPq\"1;1;152;95(#[0-9]+;2;[0-9]+;[0-9]+;[0-9]+){256}[#0-9!?-~$-]+\x1b\\\\\n$").MatchString(sixel) {
		t.Errorf("sixels: %.200q ... %q", sixel, sixel[max(0, len(sixel)-40):])
	}
}

// TestPicturesThatAreNone sends nothing of what is no picture, or one that is too large, and no byte of a file that is not of the picture.
func TestPicturesThatAreNone(t *testing.T) {
	t.Parallel()
	good := chart(t, 10, 10)
	huge := bytes.Clone(good)
	copy(huge[16:], []byte{0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff})
	for _, file := range [][]byte{nil, []byte("\x1b[2J"), good[:40], huge} {
		for _, p := range []terminal.Protocol{terminal.Kitty, terminal.ITerm, terminal.Sixel} {
			if got := terminal.Picture(nil, p, file, 0); got != "" {
				t.Errorf("%.20q is shown as %.40q", file, got)
			}
		}
	}
	behind := terminal.Picture(nil, terminal.ITerm, append(good, "\x1b]0;owned\a"...), 0)
	if raw, _ := base64.StdEncoding.DecodeString(strings.TrimSuffix(behind[strings.Index(behind, ":")+1:], "\a\n")); bytes.Contains(raw, []byte("owned")) {
		t.Error("what comes behind a picture is sent")
	}
}

func TestDetect(t *testing.T) {
	t.Parallel()
	for variables, want := range map[string]terminal.Protocol{
		"TERM=xterm-kitty": terminal.Kitty, "TERM=xterm-256color KITTY_WINDOW_ID=1": terminal.Kitty, "TERM=xterm-kitty TMUX=/tmp/x": terminal.NoPictures,
		"TERM=xterm-256color TERM_PROGRAM=iTerm.app": terminal.ITerm, "TERM=screen-256color LC_TERMINAL=iTerm2": terminal.NoPictures, "TERM=foot": terminal.Sixel, "TERM=xterm-256color": terminal.NoPictures, "": terminal.NoPictures,
	} {
		if got := terminal.Detect(func(name string) string {
			for _, pair := range strings.Fields(variables) {
				if value, ok := strings.CutPrefix(pair, name+"="); ok {
					return value
				}
			}
			return ""
		}); got != want {
			t.Errorf("%s: %q, want %q", variables, got, want)
		}
	}
}
