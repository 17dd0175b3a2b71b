package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cove/internal/commands/terminal/terminaltest"
	"cove/internal/testkit/testneeds"
)

// onTerminal is a command on a terminal of its own, as somebody's shell would start it.
type onTerminal struct {
	*command
	control *os.File
	shown   watched
	read    chan struct{} // closed when all that was shown is in shown, which is when nobody has the terminal any more
}

func newTerminal(t *testing.T, args ...string) *onTerminal {
	t.Helper()
	control, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := control.SyscallConn() // Fd would have a read wait where Close cannot end it
	if err != nil {
		t.Fatal(err)
	}
	var number int
	err = raw.Control(func(fd uintptr) {
		number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		err = errors.Join(err, unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0), unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 200}))
	})
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	c := &onTerminal{command: newCommand(t, args...), control: control}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = tty, tty, tty
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	c.setenv("COVE_HISTORY=false", "TERM=dumb")
	t.Cleanup(func() { _ = control.Close(); _ = tty.Close() })
	return c
}

// begin starts the command and collects what it shows.
func (c *onTerminal) begin(t *testing.T) {
	t.Helper()
	c.start()
	_ = c.cmd.Stdin.(*os.File).Close() // so that the terminal ends with its side here
	c.read = make(chan struct{})
	go func() {
		defer close(c.read)
		b := make([]byte, 4096)
		for {
			n, err := c.control.Read(b)
			_, _ = c.shown.Write(b[:n])
			if err != nil {
				return
			}
		}
	}()
}

// types presses keys once want is shown.
func (c *onTerminal) types(t *testing.T, want, keys string) {
	t.Helper()
	c.shown.until(t, want)
	if _, err := c.control.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

// left waits for the command and wants it to have been left with one of these codes.
func (c *onTerminal) left(t *testing.T, codes ...int) {
	t.Helper()
	r := c.wait()
	select {
	case <-c.read:
	case <-time.After(patience):
		t.Error("the terminal is still open")
	}
	if !slices.Contains(codes, r.code) {
		t.Errorf("exit code %d, want %d; the terminal shows:\n%s", r.code, codes, c.shown.String())
	}
}

// TestLeavingWithKeysTypedAhead leaves while there are keys that nobody is going to read.
func TestLeavingWithKeysTypedAhead(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	for name, keys := range map[string]string{
		"after the word":   "exit()\rabc\rdef",
		"after the end":    "\x04abc",
		"after Ctrl-Space": "\x00exit()\rabc",
		"in a line":        "1\x00+1\rexit()\rabc\rdef\rgh",
		"while code runs":  "import time; time.sleep(1)\r'a'\rexit()\rabc\rdef",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newTerminal(t, "repl")
			c.begin(t)
			c.types(t, "In [1]: ", keys)
			c.left(t, 0)
		})
	}
}

// TestALineGoesToWhoAsks types a line after the code that asked for one was ended: the next prompt gets it.
func TestALineGoesToWhoAsks(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	c := newTerminal(t, "repl")
	c.begin(t)
	c.types(t, "In [1]: ", "import _thread, threading; threading.Timer(2, _thread.interrupt_main).start(); input('name? ')\r")
	c.types(t, "In [2]: ", "6*1000+7\r")
	c.types(t, "6007\r\n", "exit()\r")
	c.left(t, 0)
}

// TestABlockComesBackWhole has the arrow key bring an input of several lines back as one, also in the next command, and edits Chinese in it.
func TestABlockComesBackWhole(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	home, _, _ := shopping(t)
	c := newTerminal(t, "repl")
	c.setenv("COVE_HOME=" + home)
	c.begin(t)
	c.types(t, "In [1]: ", "for 销售 in range(2):\r")
	c.types(t, "...: ", "    print(销售 * 6000 + 7)\r\r")
	c.types(t, "In [2]: ", "\x1b[A\x7f\x1b[D\x7f8\r\r") // the empty line at the end goes, and the 7 becomes an 8
	c.types(t, "In [3]: ", "exit()\r")
	c.left(t, 0)
	c = newTerminal(t, "repl")
	c.setenv("COVE_HOME=" + home)
	c.begin(t)
	c.types(t, "In [1]: ", "\x1b[A\x1b[A\r")
	c.types(t, "In [2]: ", "\x04")
	c.left(t, 0)
	if shown := c.shown.String(); !strings.Contains(shown, "\n6008\r\n") {
		t.Errorf("the block did not run again:\n%s", shown)
	}
}

// TestCtrlCWhileInstalling stops an installation: nothing was run, and the variables are still there.
func TestCtrlCWhileInstalling(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	home, index, _ := shopping(t)
	arrived, release := index.Hold("/simple/cowsay/")
	t.Cleanup(release)
	c := newTerminal(t, "repl")
	c.setenv("COVE_HOME="+home, "UV_DEFAULT_INDEX="+index.URL)
	c.begin(t)
	c.types(t, "In [1]: ", "kept = 6000\r")
	c.types(t, "In [2]: ", "import cowsay; print('ran')\r")
	<-arrived
	if _, err := c.control.WriteString("\x03"); err != nil {
		t.Fatal(err)
	}
	c.types(t, "In [3]: ", "kept + 7\r")
	c.types(t, "6007\r\n", "exit()\r")
	c.left(t, 0)
	if shown := c.shown.String(); !strings.Contains(shown, "stopped; nothing was run") || strings.Contains(shown, "\nran\r") {
		t.Errorf("the terminal shows:\n%s", shown)
	}
}

// TestAClosedTerminal closes the terminal of commands whose code has made files: before, and in the midst of it.
func TestAClosedTerminal(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	const making = "open('made.txt', 'w').write('made')"
	const busy = making + "; print('under ' + 'way', flush=True); import time; time.sleep(600)"
	for name, test := range map[string]struct {
		args []string
		keys []string
		last string
		want []int
	}{
		"between inputs": {[]string{"repl"}, []string{"In [1]: ", making + "\r"}, "In [2]: ", []int{129, 0}}, // the end of the input may come before the signal
		"in an input":    {[]string{"repl"}, []string{"In [1]: ", busy + "\r"}, "under way", []int{129}},
		"of a program":   {[]string{"run", "-c", busy}, nil, "under way", []int{129}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newTerminal(t, append(slices.Clone(test.args), "-o", "results")...)
			c.begin(t)
			for i := 0; i < len(test.keys); i += 2 {
				c.types(t, test.keys[i], test.keys[i+1])
			}
			c.shown.until(t, test.last)
			if err := c.control.Close(); err != nil {
				t.Fatal(err)
			}
			c.left(t, test.want...)
			if text, err := os.ReadFile(filepath.Join(c.cmd.Dir, "results", "made.txt")); string(text) != "made" {
				t.Errorf("made.txt has %q: %v", text, err)
			}
		})
	}
}

// TestInputsOnTerminals types at terminals of several widths as people do: blocks are indented and end with an empty line, a magic for cells with one, a code
// that says nothing is waited for with a sign of life, and a whole block comes back.
func TestInputsOnTerminals(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	for _, columns := range []int{40, 80, 140} {
		t.Run(fmt.Sprint(columns), func(t *testing.T) {
			t.Parallel()
			y := terminaltest.New(t, columns, 30)
			c := newCommand(t, "repl")
			c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = y.Device, y.Device, y.Device
			c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			c.setenv("COVE_HISTORY=false", "TERM=xterm", "NO_COLOR=")
			c.start()
			y.UntilEnds("In [1]: |")
			y.Types("for i in range(2):\rprint(i + 6000)\r\r")
			y.UntilEnds("In [1]: for i in range(2):\n   ...:     print(i + 6000)\n   ...:\n6000\n6001\nIn [2]: |")
			y.Types("%%time\rx = 6*1111\r\r")
			y.UntilEnds("In [3]: |")
			y.Types("import time; time.sleep(3); x\r")
			y.UntilShown("\nrunning")
			y.UntilEnds("time.sleep(3); x\n6666\nIn [4]: |")
			y.Types("\x10\x10\x10") // Ctrl-P: an arrow key goes through the lines of an input first
			y.UntilShown("In [4]: for i in range(2):\n   ...:     print(i + 6000)\n   ...:")
			y.Types("\x03")
			y.UntilEnds("In [4]: |")
			y.Types("%save made\r") // which is IPython's own
			y.UntilEnds("In [5]: |")
			y.Types("%save made.ipynb\r")
			y.UntilEnds("made.ipynb: 4 cells\nIn [5]: |")
			y.Types("\x04")
			c.wait().ended(t, 0)
			if text, err := os.ReadFile(c.path("made.ipynb")); err != nil || !strings.Contains(string(text), "6001") {
				t.Errorf("the notebook is %.200s: %v", text, err)
			}
		})
	}
}

// TestReplOnAServerAtATerminal types into a session of a server: it completes names and says where inputs end. An input is changed in an editor, too.
func TestReplOnAServerAtATerminal(t *testing.T) {
	t.Parallel()
	s := startServer(t, "", testKey(t))
	c := newTerminal(t, "repl", "--server", s.base, "--key", s.key)
	c.setenv("TERM=xterm", "NO_COLOR=1", "VISUAL=", "EDITOR=sed -i s/1/6010-1/")
	c.begin(t)
	c.types(t, "In [1]: ", "six_thousand = 6000\r")
	c.types(t, "In [2]: ", "six_th\t + 7\r")
	c.shown.until(t, "6007")
	c.types(t, "In [3]: ", "def f(a,\r")
	c.types(t, "...: ", "b): return a * b + 8\r")
	c.types(t, "In [4]: ", "f(60, 100)\r")
	c.shown.until(t, "6008")
	c.types(t, "In [5]: ", "1\x18\x05")
	c.types(t, "6010-1", "\r")
	c.shown.until(t, "6009")
	c.types(t, "In [6]: ", "\x04")
	c.left(t, 0)
}
