package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strconv"
	"strings"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// File is a stored file, beside any session.
type File struct {
	ID      string     `json:"id" example:"fil_06f1k3t3y4m0v8s2k5r7w9x1z4"`
	Name    string     `json:"name"`
	Size    int64      `json:"size" doc:"Bytes"`
	SHA256  string     `json:"sha256"`
	Purpose string     `json:"purpose"`
	Created time.Time  `json:"created_at"`
	Expires *time.Time `json:"expires_at,omitempty"`
	User    string     `json:"user"`
}

func fileOf(f hub.File) File {
	return File{ID: f.ID, Name: f.Name, Size: f.Size, SHA256: f.SHA256, Purpose: f.Purpose, Created: f.Created.UTC(), Expires: moment(f.Expires), User: f.User}
}

type (
	filePath struct {
		File string `path:"file" maxLength:"64" example:"fil_06f1k3t3y4m0v8s2k5r7w9x1z4"`
	}
	listFiles struct {
		Paging
		Purpose string `query:"purpose" maxLength:"64"`
	}
	uploadFile struct {
		Name    string `query:"name" maxLength:"255" doc:"Of a raw body; a form's file has its own"`
		Purpose string `query:"purpose" maxLength:"64"`
		Life    int64  `query:"life_seconds" minimum:"0" maximum:"315360000" doc:"For ever when left out"`
	}
)

func (s *server) addFiles() {
	const tag = "files"
	addRaw(s, operation{id: "file.create", method: http.MethodPost, path: "/files", tag: tag, action: auth.FilesWrite, raw: true, repeat: repeatKept, status: http.StatusCreated, summary: "Store a file",
		about:  "Either a form (`multipart/form-data`) with the field `file`, and before it `purpose` and `life_seconds` if you like; or the file itself as the body, with its `name` in the address.",
		errors: []problem.Code{problem.FileTooLarge, problem.QuotaDisk},
		example: `curl -H "Authorization: Bearer $KEY" -F file=@sales.csv $COVE/files
curl -H "Authorization: Bearer $KEY" -H "Content-Type: text/csv" --data-binary @sales.csv "$COVE/files?name=sales.csv"`}, s.storeFile)
	add(s, operation{id: "file.list", method: http.MethodGet, path: "/files", tag: tag, action: auth.FilesRead, summary: "List stored files", about: "The newest first.",
		example: `curl -H "Authorization: Bearer $KEY" $COVE/files`},
		func(ctx context.Context, who auth.Principal, in *listFiles) (List[File], error) {
			out, err := s.o.Hub.Files(ctx, who, in.Purpose, in.page())
			return listOf(out, fileOf), err
		})
	add(s, operation{id: "file.get", method: http.MethodGet, path: "/files/{file}", tag: tag, action: auth.FilesRead, summary: "Get a stored file's record", errors: []problem.Code{problem.FileNotFound},
		example: `curl -H "Authorization: Bearer $KEY" $COVE/files/$FILE`},
		func(ctx context.Context, who auth.Principal, in *filePath) (File, error) {
			out, err := s.o.Hub.File(ctx, who, in.File)
			return fileOf(out), err
		})
	addRaw(s, operation{id: "file.content", method: http.MethodGet, path: "/files/{file}/content", tag: tag, action: auth.FilesRead, summary: "Download a stored file",
		about: "With `Range` (one), `If-None-Match` and the like.", errors: []problem.Code{problem.FileNotFound}, example: `curl -H "Authorization: Bearer $KEY" -o sales.csv $COVE/files/$FILE/content`},
		func(w http.ResponseWriter, r *http.Request, who auth.Principal, in *filePath) error {
			f, content, err := s.o.Hub.OpenFile(r.Context(), who, in.File)
			if err != nil {
				return err
			}
			defer func() { _ = content.Close() }() // nothing was written
			s.serveContent(w, r, f.Name, strconv.Quote(f.SHA256), f.Created, content)
			return nil
		})
	addSilent(s, operation{id: "file.delete", method: http.MethodDelete, path: "/files/{file}", tag: tag, action: auth.FilesWrite, summary: "Delete a stored file", errors: []problem.Code{problem.FileNotFound},
		example: `curl -H "Authorization: Bearer $KEY" -X DELETE $COVE/files/$FILE`},
		func(ctx context.Context, who auth.Principal, in *filePath) error {
			return s.o.Hub.DeleteFile(ctx, who, in.File)
		})
}

func (s *server) storeFile(w http.ResponseWriter, r *http.Request, who auth.Principal, in *uploadFile) error {
	if r.ContentLength > s.o.MaxFile+maxJSON {
		return errTooLarge(nil)
	}
	n, content, err := incoming(w, r, s.o.MaxFile+maxJSON, in) // room for the form's other fields; the hub bounds the file
	if err != nil {
		return uploadFailed(r, err)
	}
	keep := func(w http.ResponseWriter, content io.Reader) error {
		f, err := s.o.Hub.AddFile(r.Context(), who, n, content)
		if err != nil {
			return err
		}
		w.Header().Set("Location", Prefix+"/files/"+f.ID)
		writeJSON(w, http.StatusCreated, fileOf(f))
		return nil
	}
	if ask := s.question(r); ask.word != "" {
		err = s.once.serveUpload(w, ask, fmt.Sprintf("%q %q %d", n.Name, n.Purpose, n.Life), content, keep)
	} else {
		err = keep(w, content)
	}
	if err != nil {
		return uploadFailed(r, err)
	}
	return nil
}

// incoming reads a request up to the content of the file that it brings.
func incoming(w http.ResponseWriter, r *http.Request, limit int64, in *uploadFile) (hub.NewFile, io.Reader, error) {
	n := hub.NewFile{Name: in.Name, Purpose: in.Purpose, Life: seconds(in.Life)}
	content := uploaded(w, r, limit)
	if kind, args, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == "multipart/form-data" {
		part, err := openForm(multipart.NewReader(content, args["boundary"]), &n)
		if err != nil {
			return n, nil, err
		}
		content = part
	}
	if n.Name == "" {
		return n, nil, problem.New(problem.InvalidRequest, "the file has no name (query.name)").WithHint("add ?name=sales.csv to the address")
	}
	return n, content, nil
}

// openForm reads a form's fields up to its file, whose content it returns.
func openForm(form *multipart.Reader, n *hub.NewFile) (io.Reader, error) {
	for range 16 {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, problem.New(problem.InvalidBody, "the form cannot be read").WithCause(err)
		}
		if part.FormName() == "file" {
			if name := part.FileName(); name != "" && n.Name == "" {
				n.Name = name
			}
			return part, nil
		}
		value, err := io.ReadAll(io.LimitReader(part, 1024))
		if err != nil {
			return nil, err
		}
		if err := setField(n, part.FormName(), strings.TrimSpace(string(value))); err != nil {
			return nil, err
		}
	}
	return nil, problem.New(problem.InvalidRequest, "the form has no field 'file' (body.file)").WithHint("curl -F file=@sales.csv")
}

func setField(n *hub.NewFile, name, value string) error {
	switch name {
	case "name":
		n.Name = value
	case "purpose":
		n.Purpose = value
	case "life_seconds":
		life, err := strconv.ParseInt(value, 10, 32)
		if err != nil || life < 0 {
			return problem.New(problem.InvalidRequest, "life_seconds must be a number of seconds (body.life_seconds)")
		}
		n.Life = seconds(life)
	default:
		return problem.New(problem.InvalidRequest, "the form has a field that is not known (body."+clip(name, 60)+")").WithHint("fields: purpose, life_seconds, name, file (last)")
	}
	return nil
}
