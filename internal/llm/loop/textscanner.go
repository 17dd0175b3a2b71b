package loop

import "strings"

// pieceKind says what a piece of a message's text is.
type pieceKind int

const (
	pieceText pieceKind = iota
	pieceReasoning
	pieceCode
)

// piece is a part of a message's text of one kind.
type piece struct {
	kind pieceKind
	text string
}

// scanState says which part of the text the scanner reads.
type scanState int

const (
	inBegin scanState = iota // nothing but white space so far
	inText
	inThink // <think>, which some servers leave in the text of reasoning models
	inBlock // a fenced block that is not Python
	inCode
	inCall // a <tool_call> element
	inRest // after the code or the call: ignored
)

const (
	thinkOpen, thinkClose = "<think>", "</think>"
	callOpen, callClose   = "<tool_call>", "</tool_call>"
	longestOpener         = 120 // bytes of a line that may still open a fence
)

// textScanner splits the streaming text of a message into words, reasoning and the first code to run. With fences, the
// code is a ```python block; in any case it may be a <tool_call> element.
type textScanner struct {
	fences bool
	plain  bool // code is not looked for
	state  scanState
	buf    string // text whose kind is not certain yet
	bol    bool   // buf begins at the beginning of a line
	final  bool   // nothing follows

	ticks, indent int // of the open fence
	isClosed      bool
	consumed      strings.Builder // everything up to the end of the code, as the model wrote it
	code          strings.Builder
	call          strings.Builder // content of the <tool_call> element
	callCode      codeStream
	out           []piece
}

func newTextScanner(fences bool) *textScanner {
	return &textScanner{fences: fences, bol: true, callCode: codeStream{nested: true}}
}

// write takes the next part of the text and returns the pieces whose kind is certain by now.
func (s *textScanner) write(delta string) []piece {
	s.buf += delta
	return s.scan()
}

// end says that nothing follows and returns the rest. When the message is not complete, a fence that has only just
// begun to close stays open: it may have been the beginning of another line.
func (s *textScanner) end(complete bool) []piece {
	if !complete && s.state == inCode {
		return nil
	}
	s.final = true
	return s.scan()
}

// closed says whether code or a call was read to its end.
func (s *textScanner) closed() bool { return s.isClosed }

// open says whether code or a call began and did not end.
func (s *textScanner) open() bool { return s.state == inCode || s.state == inCall }

// rest returns what followed the code.
func (s *textScanner) rest() string {
	if s.state != inRest {
		return ""
	}
	return s.buf
}

func (s *textScanner) scan() []piece {
	s.out = nil
	for s.buf != "" {
		if !s.step() {
			break
		}
	}
	return s.out
}

// step consumes something of buf and says whether to go on; false means that more text is needed.
func (s *textScanner) step() bool {
	switch s.state {
	case inBegin:
		return s.begin()
	case inText:
		return s.words()
	case inThink:
		return s.until(thinkClose, pieceReasoning, inBegin)
	case inBlock:
		return s.blockLine(pieceText)
	case inCode:
		return s.blockLine(pieceCode)
	case inCall:
		return s.callContent()
	}
	return false
}

func (s *textScanner) begin() bool {
	text := strings.TrimLeft(s.buf, " \t\r\n")
	switch {
	case strings.HasPrefix(text, thinkOpen):
		s.take(len(s.buf)-len(text)+len(thinkOpen), -1)
		s.state = inThink
	case !s.final && strings.HasPrefix(thinkOpen, text):
		return false
	default:
		s.state = inText
	}
	return true
}

func (s *textScanner) words() bool {
	if s.fences && s.bol {
		return s.lineStart()
	}
	at := strings.Index(s.buf, callOpen)
	if s.plain {
		at = -1
	}
	line := strings.IndexByte(s.buf, '\n')
	switch {
	case line >= 0 && (at < 0 || line < at):
		s.take(line+1, pieceText)
	case at >= 0:
		s.take(at, pieceText)
		s.take(len(callOpen), -1)
		s.state = inCall
	default:
		n := len(s.buf)
		if !s.final {
			n -= overlap(s.buf, callOpen)
		}
		s.take(n, pieceText)
		return false
	}
	return true
}

// lineStart decides whether the line opens a fence.
func (s *textScanner) lineStart() bool {
	line, whole := s.line()
	text := strings.TrimLeft(line, " ")
	indent := len(line) - len(text)
	ticks := len(text) - len(strings.TrimLeft(text, "`"))
	if indent > 3 || (ticks < 3 && ticks < len(text)) || len(line) > longestOpener ||
		strings.Contains(text[ticks:], "`") {
		s.bol = false
		return true
	}
	if !whole {
		return false
	}
	if ticks < 3 {
		s.bol = false
		return true
	}
	s.ticks, s.indent = ticks, indent
	if isPythonInfo(text[ticks:]) {
		s.take(s.lineLength(), -1)
		s.state = inCode
		return true
	}
	s.take(s.lineLength(), pieceText)
	s.state = inBlock
	return true
}

// blockLine consumes a line of a block, or a part of one that cannot close it.
func (s *textScanner) blockLine(kind pieceKind) bool {
	if !s.bol {
		n := s.lineLength()
		s.take(n, kind)
		return true
	}
	line, whole := s.line()
	text := strings.TrimSpace(line)
	if strings.Trim(text, "`") != "" {
		s.startLine(line, kind)
		return true
	}
	if !whole {
		return false
	}
	if len(text) < s.ticks {
		s.startLine(line, kind)
		return true
	}
	if kind == pieceText {
		s.take(s.lineLength(), kind)
		s.state = inText
		return true
	}
	s.take(s.lineLength(), -1)
	s.state, s.isClosed = inRest, true
	return false
}

// startLine consumes the indentation that the fence had and goes on in the line.
func (s *textScanner) startLine(line string, kind pieceKind) {
	if kind == pieceCode {
		n := min(s.indent, len(line)-len(strings.TrimLeft(line, " ")))
		s.take(n, -1)
	}
	if strings.HasPrefix(s.buf, "\n") {
		s.take(1, kind)
		return
	}
	s.bol = false
}

func (s *textScanner) callContent() bool {
	at := strings.Index(s.buf, callClose)
	n := at
	if at < 0 {
		n = len(s.buf)
		if !s.final {
			n -= overlap(s.buf, callClose)
		}
	}
	content := s.buf[:n]
	s.call.WriteString(content)
	if code := s.callCode.write(content); code != "" {
		s.out = append(s.out, piece{pieceCode, code})
	}
	s.take(n, -1)
	if at >= 0 {
		s.take(len(callClose), -1)
		s.state, s.isClosed = inRest, true
	}
	return false
}

// until consumes text up to and with the mark.
func (s *textScanner) until(mark string, kind pieceKind, next scanState) bool {
	if at := strings.Index(s.buf, mark); at >= 0 {
		s.take(at, kind)
		s.take(len(mark), -1)
		s.state, s.bol = next, true
		return true
	}
	n := len(s.buf)
	if !s.final {
		n -= overlap(s.buf, mark)
	}
	s.take(n, kind)
	return false
}

// line returns the first line of buf without its end, and whether it is whole.
func (s *textScanner) line() (string, bool) {
	if n := strings.IndexByte(s.buf, '\n'); n >= 0 {
		return strings.TrimSuffix(s.buf[:n], "\r"), true
	}
	return s.buf, s.final
}

// lineLength returns how much of buf is the first line with its end.
func (s *textScanner) lineLength() int {
	if n := strings.IndexByte(s.buf, '\n'); n >= 0 {
		return n + 1
	}
	return len(s.buf)
}

// take consumes n bytes of buf as a piece of the given kind; a negative kind shows nothing.
func (s *textScanner) take(n int, kind pieceKind) {
	if n == 0 {
		return
	}
	text := s.buf[:n]
	s.buf = s.buf[n:]
	s.bol = strings.HasSuffix(text, "\n") || (s.bol && kind < 0)
	if s.state != inThink && !strings.HasSuffix(text, thinkOpen) {
		s.consumed.WriteString(text)
	}
	if kind == pieceCode {
		s.code.WriteString(text)
	}
	if kind < 0 {
		return
	}
	if last := len(s.out) - 1; last >= 0 && s.out[last].kind == kind {
		s.out[last].text += text
		return
	}
	s.out = append(s.out, piece{kind, text})
}

// isPythonInfo says whether a fence's info string means Python that is to run.
func isPythonInfo(info string) bool {
	fields := strings.FieldsFunc(strings.ToLower(info), func(r rune) bool {
		return r == ' ' || r == '{' || r == '}' || r == '.' || r == '\t' || r == '\r'
	})
	if len(fields) == 0 {
		return false
	}
	switch fields[0] {
	case "python", "python3", "py", "ipython", "tool_code":
		return true
	}
	return false
}

// overlap returns how many bytes at the end of text could be the beginning of mark.
func overlap(text, mark string) int {
	for n := min(len(text), len(mark)-1); n > 0; n-- {
		if strings.HasPrefix(mark, text[len(text)-n:]) {
			return n
		}
	}
	return 0
}
