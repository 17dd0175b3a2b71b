package anthropic

import (
	"errors"
	"io"
	"mime/multipart"
	"os"
	"path"
	"strings"

	"cove/internal/http/bodybudget"
)

const (
	mostFields   = 32
	largestField = 64 << 10
)

// upload is a multipart form with one file in transit. Clients send fields after the file as often as before it, and the hub wants to know them
// first, so the file waits on the disk, without a name.
type upload struct {
	file    *os.File // nil: none came
	name    string
	size    int64
	expires string // seconds
}

func (u *upload) close() {
	if u.file != nil {
		_ = u.file.Close()
	}
}

// receive reads the form. The caller closes the upload, also after an error.
func (s *server) receive(c *call) (*upload, error) {
	u := &upload{}
	c.Body = bodybudget.Bounded(c.w, c.Body, s.MaxFile+1<<20)
	parts, err := c.MultipartReader()
	if err != nil {
		return u, invalid("Expected a request with Content-Type 'multipart/form-data'.")
	}
	for n := 0; ; n++ {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return u, nil
		}
		if err == nil && n >= mostFields {
			err = invalid("The multipart form has too many fields.")
		}
		if err == nil {
			err = s.receivePart(u, part)
		}
		if errors.Is(err, io.ErrUnexpectedEOF) || err != nil && strings.HasPrefix(err.Error(), "multipart:") {
			err = invalid("The multipart form broke off or could not be read.")
		}
		if err != nil {
			return u, err
		}
	}
}

func (s *server) receivePart(u *upload, part *multipart.Part) error {
	if part.FormName() != "file" {
		text, err := io.ReadAll(io.LimitReader(part, largestField+1))
		if err == nil && len(text) > largestField {
			err = invalid("The field '" + short(part.FormName()) + "' of the form is too long.")
		}
		if part.FormName() == "expires_in_seconds" {
			u.expires = string(text)
		}
		return err
	}
	if u.file != nil {
		return invalid("Expected one file in the form, but got more.")
	}
	if u.name = fileName(part.FileName()); u.name == "" {
		u.name = "upload"
	}
	var err error
	if u.file, err = os.CreateTemp(s.Spool, "cove-upload-*"); err != nil {
		return err
	}
	if err = os.Remove(u.file.Name()); err == nil { // it is gone when it is closed, however the process ends
		u.size, err = io.Copy(u.file, part)
	}
	if err == nil {
		_, err = u.file.Seek(0, io.SeekStart)
	}
	return err
}

// fileName is the last part of what a client calls a file, or "" where that is no name.
func fileName(name string) string {
	name = path.Base(strings.ReplaceAll(name, `\`, "/"))
	if name == "." || name == ".." || name == "/" || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) || len(name) > 255 {
		return ""
	}
	return name
}
