package toolserver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"golang.org/x/time/rate"
)

const (
	// mostMessage bounds one message of a server, in bytes. A result may have its 4 MiB twice: as text, and as a value.
	mostMessage = 9 << 20
	// writePatience is how long a server may not take what it is told.
	writePatience = 10 * time.Second
	// exitPatience is how long a warden has to end, beyond what it gives its server.
	exitPatience = 10 * time.Second
	longestLine  = 500 // bytes of a line in the log
	linesAtOnce  = 50  // of the log
	linesASecond = 5
)

var (
	errTooLarge   = fmt.Errorf("it sent a message of more than %d MiB", mostMessage>>20)
	errUnreadable = errors.New("it sent a message that is no JSON")
)

// unreadable is the code of an error that stands for an answer which cannot be read.
const unreadable = -32098

// program is a server on standard input and output, in a process of its own. It implements the SDK's Connection: a message is a line.
type program struct {
	in       *os.File
	out      *bufio.Reader
	lifeline *os.File
	log      *slog.Logger
	printed  *rate.Limiter // lines of its standard output that are no messages
	noted    *rate.Limiter // and of its standard error
	writing  sync.Mutex
	messages chan said
	over     chan struct{} // closed when the connection is
	closing  sync.Once
	ended    chan struct{} // closed when no process is left
}

// said is a message of a server, or why there is none.
type said struct {
	message jsonrpc.Message
	err     error
}

// start starts a server.
func start(c Config, getenv func(string) string, log *slog.Logger) (*program, error) {
	var files []*os.File
	pipe := func() (r, w *os.File, err error) {
		if r, w, err = os.Pipe(); err == nil {
			files = append(files, r, w)
		}
		return r, w, err
	}
	undo := func(err error) (*program, error) {
		for _, f := range files {
			_ = f.Close()
		}
		return nil, err
	}
	inRead, inWrite, err := pipe()
	if err != nil {
		return undo(err)
	}
	outRead, outWrite, err := pipe()
	if err != nil {
		return undo(err)
	}
	errRead, errWrite, err := pipe()
	if err != nil {
		return undo(err)
	}
	lifelineRead, lifelineWrite, err := pipe()
	if err != nil {
		return undo(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = append([]string{wardenName, c.Command}, c.Args...)
	cmd.Env, cmd.Dir = environment(c, getenv), c.Dir
	if cmd.Dir == "" {
		cmd.Dir = "/"
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = inRead, outWrite, errWrite, []*os.File{lifelineRead}
	if err := cmd.Start(); err != nil {
		return undo(err)
	}
	for _, f := range []*os.File{inRead, outWrite, errWrite, lifelineRead} {
		_ = f.Close()
	}
	p := &program{
		in: inWrite, out: bufio.NewReader(outRead), lifeline: lifelineWrite, log: log, printed: rate.NewLimiter(linesASecond, linesAtOnce), noted: rate.NewLimiter(linesASecond, linesAtOnce),
		messages: make(chan said), over: make(chan struct{}), ended: make(chan struct{}),
	}
	go p.note(errRead)
	go p.read(outRead)
	go func() {
		defer close(p.ended)
		err := cmd.Wait()
		log.Info("a tool server has ended", "exit", fmt.Sprint(err))
		_ = p.Close()
	}()
	return p, nil
}

// environment is all that a server sees of this process's.
func environment(c Config, getenv func(string) string) []string {
	var out []string
	for _, key := range []string{"PATH", "HOME", "LANG"} {
		if _, own := c.Env[key]; !own && getenv(key) != "" {
			out = append(out, key+"="+getenv(key))
		}
	}
	for key, value := range c.Env {
		out = append(out, key+"="+value)
	}
	return out
}

// read takes in what the server says until it says no more. Lines that are no messages are dropped: many programs print some. One that looks like an answer and cannot be read fails the call that
// it is for, and where that is not to be seen, the connection.
func (p *program) read(from *os.File) {
	defer func() { _ = from.Close() }()
	for {
		line, err := readLine(p.out, mostMessage)
		if err != nil {
			p.hand(said{err: err})
			return
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		message, err := jsonrpc.DecodeMessage(line)
		if err != nil {
			p.tell(p.printed, "a tool server printed what is no message", line)
			if !isAnswer(line) {
				continue
			}
			instead, known := failed(line, err)
			if !known {
				p.hand(said{err: errUnreadable})
				return
			}
			message = instead
		}
		if !p.hand(said{message: message}) {
			return
		}
	}
}

// failed returns an error that stands for an answer which cannot be read, where it shows which request it is for.
func failed(answer []byte, why error) (instead *jsonrpc.Response, known bool) {
	id, known := idOf(answer)
	return &jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: unreadable, Message: cut(why.Error(), longestLine)}}, known
}

// isAnswer says whether a line that cannot be read was meant as an answer.
func isAnswer(line []byte) bool {
	has := func(key string) bool { return bytes.Contains(line, []byte(key)) }
	return bytes.HasPrefix(line, []byte("{")) && has(`"jsonrpc"`) && (has(`"result"`) || has(`"error"`))
}

// idPattern is how a message names the request that it answers; requests of the SDK have numbers.
var idPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`"id"\s*:\s*(\d{1,18})\s*[,}]`) })

// idOf returns the request that a line answers which is no JSON.
func idOf(line []byte) (id jsonrpc.ID, known bool) {
	found := idPattern().FindAllSubmatch(line, 2)
	if len(found) != 1 { // a result may have one, too
		return id, false
	}
	n, err := strconv.ParseInt(string(found[0][1]), 10, 64)
	if err != nil {
		return id, false
	}
	id, err = jsonrpc.MakeID(float64(n))
	return id, err == nil
}

func (p *program) hand(s said) bool {
	select {
	case p.messages <- s:
		return true
	case <-p.over:
		return false
	}
}

// readLine returns a line, without its end.
func readLine(r *bufio.Reader, most int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > most {
			return nil, errTooLarge
		}
		line = append(line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil:
			return nil, io.EOF // an unfinished line is no message
		default:
			return line, nil
		}
	}
}

// note puts what the server prints on its standard error into the log.
func (p *program) note(from *os.File) {
	defer func() { _ = from.Close() }()
	r := bufio.NewReaderSize(from, longestLine)
	for {
		line, more, err := r.ReadLine()
		if err != nil {
			return
		}
		p.tell(p.noted, "a tool server says", line)
		for more && err == nil {
			_, more, err = r.ReadLine()
		}
	}
}

func (p *program) tell(pace *rate.Limiter, message string, line []byte) {
	if pace.Allow() {
		p.log.Info(message, "line", string(bytes.ToValidUTF8(line[:min(len(line), longestLine)], nil)))
	}
}

// Read implements the SDK's Connection.
func (p *program) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case s := <-p.messages:
		return s.message, s.err
	case <-p.over:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write implements the SDK's Connection. A server that does not read is given up.
func (p *program) Write(_ context.Context, m jsonrpc.Message) error {
	text, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	p.writing.Lock()
	defer p.writing.Unlock()
	if err = p.in.SetWriteDeadline(time.Now().Add(writePatience)); err == nil {
		_, err = p.in.Write(append(text, '\n'))
	}
	if err != nil {
		_ = p.Close() // a part of a message may be written
	}
	return err
}

// Close implements the SDK's Connection. It has the server read the end of its input; what has not ended a little later is killed.
func (p *program) Close() error {
	p.closing.Do(func() {
		close(p.over)
		_ = p.in.Close()
		_ = p.lifeline.Close()
	})
	return nil
}

// SessionID implements the SDK's Connection.
func (*program) SessionID() string { return "" }

// wait waits until no process is left.
func (p *program) wait() bool {
	select {
	case <-p.ended:
		return true
	case <-time.After(parting + exitPatience):
		return false
	}
}
