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
// has a test, or InWords of package problem does, or meant.py does in a sandbox, whose hints are these.
var foreign = map[string]error{
	"no such file or directory":                           syscall.ENOENT,
	"permission denied":                                   syscall.EACCES,
	"operation not permitted":                             syscall.EPERM,
	"connection refused":                                  syscall.ECONNREFUSED,
	"connection reset by peer":                            syscall.ECONNRESET,
	"connection timed out":                                syscall.ETIMEDOUT,
	"network is unreachable":                              syscall.ENETUNREACH,
	"no route to host":                                    syscall.EHOSTUNREACH,
	"address already in use":                              syscall.EADDRINUSE,
	"broken pipe":                                         syscall.EPIPE,
	"no space left on device":                             syscall.ENOSPC,
	"disk quota exceeded":                                 syscall.EDQUOT,
	"read-only file system":                               syscall.EROFS,
	"file exists":                                         syscall.EEXIST,
	"is a directory":                                      syscall.EISDIR,
	"not a directory":                                     syscall.ENOTDIR,
	"directory not empty":                                 syscall.ENOTEMPTY,
	"file name too long":                                  syscall.ENAMETOOLONG,
	"file too large":                                      syscall.EFBIG,
	"too many open files":                                 syscall.EMFILE,
	"cannot allocate memory":                              syscall.ENOMEM,
	"input/output error":                                  syscall.EIO,
	"exec format error":                                   syscall.ENOEXEC,
	"text file busy":                                      syscall.ETXTBSY,
	"device or resource busy":                             syscall.EBUSY,
	"context deadline exceeded":                           context.DeadlineExceeded,
	"context canceled":                                    context.Canceled,
	"unexpected EOF":                                      io.ErrUnexpectedEOF,
	"i/o timeout":                                         os.ErrDeadlineExceeded,
	"file already exists":                                 fs.ErrExist,
	"file does not exist":                                 fs.ErrNotExist,
	"unexpected argument %s":                              nil,
	"unknown flag %s":                                     nil,
	"%s, did you mean %s?":                                nil,
	"%s, did you mean one of %s?":                         nil,
	"missing flags: %s":                                   nil,
	"expected %s":                                         nil,
	"expected one of %s":                                  nil,
	"%s must be one of %s but got %q":                     nil,
	"--%s and --%s can't be used together":                nil,
	"expected a valid %d bit int but got %q":              nil,
	"expected a float but got %q (%T)":                    nil,
	"missing positional arguments %s":                     nil,
	"%q is too large a number":                            nil,
	"%q is not a number":                                  nil,
	"it is not JSON (at byte %d: %s)":                     nil,
	"its field %q may not be a %s":                        nil,
	"a JSON value of another kind was expected, not a %s": nil,
	"%s is not imported: %s":                              nil,
	"%s is not imported: import %s":                       nil,
	"the file is in the working directory: open it as %s": nil,
	"code runs in a sandbox, which does not see the folders of your machine: put the file into the working directory (cove run -f FILE, or an upload) and open it as %s": nil,
	"Did you mean %s? The columns are: %s": nil,
	"The columns are: %s":                  nil,
	"Did you mean %s? The keys are: %s":    nil,
	"The keys are: %s":                     nil,
	"Did you mean %s? The sheets are: %s":  nil,
	"The sheets are: %s":                   nil,
	"%s is not here; %s; whoever runs cove brings it with packages.system = [%s]": nil,
	"%s is not here; %s": nil,
	"the sandbox has no network, and %s's data %s is not here; whoever runs cove brings it with: cove data add %s":                                                                                                 nil,
	"%s is a library of the system, which the sandbox has from the machine that it runs on; install it there":                                                                                                      nil,
	"%s is a library of the system, which the sandbox has from the machine that it runs on; whoever runs cove brings it with packages.system = [%s]":                                                               nil,
	"%s belongs to NVIDIA's drivers, and the sandbox has no GPU: use the package's build for CPUs":                                                                                                                 nil,
	"line %s has %s fields, and the first ones %s: look at the first lines of the file. skiprows= leaves out what stands above the table, sep= names another separator, on_bad_lines='skip' leaves such lines out": nil,
	"the fonts of PDF itself have Latin letters alone: pdf.add_font('CJK', fname='cjk.ttf') and pdf.set_font('CJK') have those of Chinese, Japanese and Korean, and by them those of other scripts, too":           nil,
	"there is no program %q":                          nil,
	"there is no host %s":                             nil,
	"the name of the host %s cannot be looked up now": nil,
}

func TestForeignTextsAreStillMade(t *testing.T) {
	t.Parallel()
	for text, from := range foreign {
		if from != nil && from.Error() != text {
			t.Errorf("%q is %q now", text, from)
		}
	}
}
