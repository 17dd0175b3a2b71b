package cove_test

import (
	"context"
	"io"
	"io/fs"
	"os"
	"syscall"
	"testing"
)

// foreign are texts that others make and the program shows, with the error that has them; nil where the parser of the command line makes them, of which package cli
// has a test.
var foreign = map[string]error{
	"no such file or directory":              syscall.ENOENT,
	"permission denied":                      syscall.EACCES,
	"operation not permitted":                syscall.EPERM,
	"connection refused":                     syscall.ECONNREFUSED,
	"connection reset by peer":               syscall.ECONNRESET,
	"connection timed out":                   syscall.ETIMEDOUT,
	"network is unreachable":                 syscall.ENETUNREACH,
	"no route to host":                       syscall.EHOSTUNREACH,
	"address already in use":                 syscall.EADDRINUSE,
	"broken pipe":                            syscall.EPIPE,
	"no space left on device":                syscall.ENOSPC,
	"disk quota exceeded":                    syscall.EDQUOT,
	"read-only file system":                  syscall.EROFS,
	"file exists":                            syscall.EEXIST,
	"is a directory":                         syscall.EISDIR,
	"not a directory":                        syscall.ENOTDIR,
	"directory not empty":                    syscall.ENOTEMPTY,
	"file name too long":                     syscall.ENAMETOOLONG,
	"file too large":                         syscall.EFBIG,
	"too many open files":                    syscall.EMFILE,
	"cannot allocate memory":                 syscall.ENOMEM,
	"input/output error":                     syscall.EIO,
	"exec format error":                      syscall.ENOEXEC,
	"text file busy":                         syscall.ETXTBSY,
	"device or resource busy":                syscall.EBUSY,
	"context deadline exceeded":              context.DeadlineExceeded,
	"context canceled":                       context.Canceled,
	"unexpected EOF":                         io.ErrUnexpectedEOF,
	"i/o timeout":                            os.ErrDeadlineExceeded,
	"file already exists":                    fs.ErrExist,
	"file does not exist":                    fs.ErrNotExist,
	"unexpected argument %s":                 nil,
	"unknown flag %s":                        nil,
	"%s, did you mean %s?":                   nil,
	"%s, did you mean one of %s?":            nil,
	"missing flags: %s":                      nil,
	"expected %s":                            nil,
	"expected one of %s":                     nil,
	"%s must be one of %s but got %q":        nil,
	"--%s and --%s can't be used together":   nil,
	"expected a valid %d bit int but got %q": nil,
	"expected a float but got %q (%T)":       nil,
	"missing positional arguments %s":        nil,
}

func TestForeignTextsAreStillMade(t *testing.T) {
	t.Parallel()
	for text, from := range foreign {
		if from != nil && from.Error() != text {
			t.Errorf("%q is %q now", text, from)
		}
	}
}
