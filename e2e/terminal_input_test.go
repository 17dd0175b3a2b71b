package e2e_test

import (
	"strings"
	"testing"

	"cove/internal/testkit/testneeds"
)

// TestInputOnATerminalOfCodeOnAServer answers input() and getpass() of code on a server on the terminal, ends the input, and interrupts code that waits for it.
func TestInputOnATerminalOfCodeOnAServer(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	s := startServer(t, "", testKey(t))
	const code = `import getpass
name, word = input("Name: "), getpass.getpass()
try: input("More: ")
except EOFError: print("\nHello", name, len(word))
input("Wait: ")`
	c := newTerminal(t, "run", "--server", s.base, "--key", s.key, "--timeout", "1m", "-c", code)
	c.begin(t)
	c.types(t, "Name: ", "Ada\r")
	c.types(t, "Password: ", "sesame\r")
	c.types(t, "More: ", "\x04")
	c.types(t, "Wait: ", "\x03")
	c.left(t, 130)
	if shown := c.shown.String(); !strings.Contains(shown, "Name: Ada") || !strings.Contains(shown, "Hello Ada 6") || strings.Contains(shown, "sesame") {
		t.Errorf("the terminal shows:\n%s", shown)
	}

	c = newTerminal(t, "repl", "--server", s.base, "--key", s.key)
	c.begin(t)
	c.types(t, "In [1]: ", "name = input('Na' + 'me: ')\r")
	c.types(t, "Name: ", "Ada\r")
	c.types(t, "In [2]: ", "import getpass; word = getpass.getpass()\r")
	c.types(t, "Password: ", "sesame\r")
	c.types(t, "In [3]: ", "input('Mo' + 're: ')\r")
	c.types(t, "More: ", "\x04")
	c.types(t, "In [4]: ", "input('Wa' + 'it: ')\r")
	c.types(t, "Wait: ", "\x03")
	c.types(t, "In [5]: ", "name, len(word), 6*1000+7\r")
	c.types(t, "6007", "exit()\r")
	c.left(t, 0)
	if shown := c.shown.String(); !strings.Contains(shown, "('Ada', 6, 6007)") || !strings.Contains(shown, "EOFError") || strings.Contains(shown, "sesame") {
		t.Errorf("the terminal shows:\n%s", shown)
	}
}
