package cli

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"

	"cove/internal/core/lang"
	"cove/internal/core/problem"
)

// spoken is message in the language of the process. What programs read has message.
func spoken(err error) string {
	text, cause := wordsOf(err)
	if cause == "" {
		return strings.TrimSpace(lang.Text(text))
	}
	return lang.Text(text) + lang.Joint(": ") + strings.TrimSpace(lang.Text(cause))
}

// message is what a person is told: for a problem its sentence and its cause, without the way it took.
func message(err error) string {
	text, cause := wordsOf(err)
	if cause == "" {
		return strings.TrimSpace(text)
	}
	return strings.TrimSpace(text + ": " + cause)
}

// wordsOf is an error's sentence, and what is behind it or "".
func wordsOf(err error) (text, cause string) {
	p, ok := errors.AsType[*problem.Error](err)
	switch {
	case !ok && isFull(err):
		return problem.New(problem.DiskFull, "there is no room left on the disk ("+problem.InWords(err, "")+")").Message, ""
	case !ok:
		return problem.InWords(err, ""), ""
	case p.Cause == nil, problem.Has(p, problem.DiskFull): // of a full disk, nobody needs to know which of cove's files it was
		return p.Message, ""
	}
	return p.Message, problem.InWords(p.Cause, p.Message)
}

// isFull says whether it was a disk that had no room.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// usualStep is what to do about an error that no package has a hint for, in the language of the process, or "".
func usualStep(err error) string {
	if _, unknown := errors.AsType[*net.DNSError](err); unknown {
		return lang.Text("check the name, and that this machine has a network")
	}
	switch {
	case isFull(err):
		return lang.Text("make room on the disk, or use another one")
	case errors.Is(err, syscall.EROFS):
		return lang.Text("choose a place that can be written to")
	case errors.Is(err, fs.ErrPermission) && isOfFile(err):
		return lang.Text("choose a place that you may read and write, or have its owner let you")
	case errors.Is(err, syscall.ECONNREFUSED):
		return lang.Text("check the address, and that something listens there")
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.ETIMEDOUT), errors.Is(err, os.ErrDeadlineExceeded):
		return lang.Text("check the address, and that this machine's network reaches it")
	case errors.Is(err, syscall.EMFILE):
		return lang.Text("raise the limit of open files: ulimit -n")
	}
	return ""
}

// isOfFile says whether an error is about a file or a folder, not about a port, a socket or a device.
func isOfFile(err error) bool {
	if _, network := errors.AsType[*net.OpError](err); network {
		return false
	}
	if _, linked := errors.AsType[*os.LinkError](err); linked {
		return true
	}
	at, ok := errors.AsType[*fs.PathError](err)
	if !ok || strings.HasPrefix(at.Path, "/dev/") {
		return false
	}
	info, err := os.Stat(at.Path)
	return err != nil || info.IsDir() || info.Mode().IsRegular() // of what cannot even be looked at, a folder does not let
}
