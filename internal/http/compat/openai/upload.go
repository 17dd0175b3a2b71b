package openai

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"strings"

	"cove/internal/http/bodybudget"
)

const (
	mostFields   = 32
	largestField = 64 << 10
)

// upload is a multipart form: short fields, and at most one file in transit. Clients send the fields after the file as often as before it, and
// the hub wants to know them first, so the file waits on the disk, without a name.
type upload struct {
	fields map[string][]string
	part   string   // the name of the field with the file
	file   *os.File // nil: none came
	name   string
	size   int64
}

func (u *upload) field(name string) string {
	if v := u.fields[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

func (u *upload) close() {
	if u.file != nil {
		_ = u.file.Close()
	}
}

// isMultipart says whether a request carries a form with a file.
func isMultipart(c *call) bool {
	kind, _, err := mime.ParseMediaType(c.Header.Get("Content-Type"))
	return err == nil && kind == "multipart/form-data"
}

// receive reads a multipart request with a file. The caller closes the upload, also after an error.
func (s *server) receive(c *call) (*upload, error) {
	return s.receiveForm(c, &upload{fields: map[string][]string{}, part: "file"}, s.MaxFile)
}

// receivePartOf reads a multipart request with a part of a file.
func (s *server) receivePartOf(c *call) (*upload, error) {
	return s.receiveForm(c, &upload{fields: map[string][]string{}, part: "data"}, largestPart)
}

func (s *server) receiveForm(c *call, u *upload, most int64) (*upload, error) {
	if !isMultipart(c) {
		return u, invalid("", "", "Expected a request with Content-Type 'multipart/form-data'.")
	}
	c.Body = bodybudget.Bounded(c.w, c.Body, most+1<<20)
	parts, err := c.MultipartReader()
	if err != nil {
		return u, invalid("", "", "The multipart form could not be read.")
	}
	for n := 0; ; n++ {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return u, nil
		}
		if err == nil && n >= mostFields {
			err = invalid("", "", "The multipart form has too many fields.")
		}
		if err == nil {
			err = s.receivePart(u, part)
		}
		if err != nil {
			return u, uploadFault(err)
		}
	}
}

func uploadFault(err error) error {
	if f := faultOf(err); f.status != http.StatusInternalServerError {
		return f
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || strings.Contains(err.Error(), "multipart") {
		return invalid("", "", "The multipart form broke off or could not be read.")
	}
	return err
}

func (s *server) receivePart(u *upload, part *multipart.Part) error {
	if part.FormName() != u.part || part.FileName() == "" && u.file != nil {
		text, err := io.ReadAll(io.LimitReader(part, largestField+1))
		if err == nil && len(text) > largestField {
			err = invalid(part.FormName(), "", "The field '"+short(part.FormName())+"' of the form is too long.")
		}
		name := strings.TrimSuffix(part.FormName(), "[]")
		u.fields[name] = append(u.fields[name], string(text))
		return err
	}
	if u.file != nil {
		return invalid(u.part, "", "Expected one file in the form, but got more.")
	}
	u.name = fileName(part.FileName())
	if u.name == "" {
		u.name = "upload"
	}
	var err error
	if u.file, err = spool(s.Spool); err != nil {
		return err
	}
	u.size, err = io.Copy(u.file, part)
	if err == nil {
		_, err = u.file.Seek(0, io.SeekStart)
	}
	return err
}

// spool opens a file that is gone when it is closed, however the process ends.
func spool(folder string) (*os.File, error) {
	f, err := os.CreateTemp(folder, "cove-upload-*")
	if err != nil {
		return nil, err
	}
	return f, os.Remove(f.Name())
}
