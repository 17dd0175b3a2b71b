package problem_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"cove/internal/core/problem"
)

func TestErrorsInWords(t *testing.T) {
	t.Parallel()
	_, notNumber := strconv.ParseInt("many", 10, 64)
	_, tooLarge := strconv.ParseInt("99999999999999999999", 10, 64)
	var thing struct {
		Size int `json:"size"`
	}
	refused := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8700}, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	denied := &fs.PathError{Op: "open", Path: "/root/x", Err: syscall.EACCES}
	for want, test := range map[string]struct {
		err    error
		before string
	}{
		"/root/x: permission denied":                              {denied, ""},
		"permission denied":                                       {denied, "cannot use the folder /root/x"},
		"write the output: /root/x: permission denied":            {fmt.Errorf("write the output: %w", denied), ""},
		"/b: file exists":                                         {&os.LinkError{Op: "rename", Old: "/a", New: "/b", Err: syscall.EEXIST}, ""},
		"127.0.0.1:8700: connection refused":                      {refused, ""},
		"http://x/v1: 127.0.0.1:8700: connection refused":         {&url.Error{Op: "Get", URL: "http://x/v1", Err: refused}, ""},
		"there is no host no.example":                             {&net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "no.example", Server: "127.0.0.53:53", IsNotFound: true}}, ""},
		"the name of the host x.example cannot be looked up now":  {&net.DNSError{Err: "server misbehaving", Name: "x.example", IsTemporary: true}, ""},
		`"many" is not a number`:                                  {notNumber, ""},
		`"99999999999999999999" is too large a number`:            {tooLarge, ""},
		`its field "size" may not be a string`:                    {json.Unmarshal([]byte(`{"size":"x"}`), &thing), ""},
		"a JSON value of another kind was expected, not a number": {json.Unmarshal([]byte(`1`), &thing), ""},
		"/root/x: permission denied\n\"many\" is not a number":    {errors.Join(denied, notNumber), ""},
		"as it is": {errors.New("as it is"), ""},
	} {
		if got := problem.InWords(test.err, test.before); got != want {
			t.Errorf("%v is %q, want %q", test.err, got, want)
		}
	}
	if got := problem.InWords(json.Unmarshal([]byte(`{`), &thing), ""); !strings.HasPrefix(got, "it is not JSON (at byte 1: ") {
		t.Errorf("broken JSON is %q", got)
	}
}
