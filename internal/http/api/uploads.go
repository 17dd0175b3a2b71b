package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// Upload is a file that comes in pieces.
type Upload struct {
	ID      string    `json:"id" example:"upl_06f1k3t3y4m0v8s2k5r7w9x1z4"`
	Name    string    `json:"name"`
	Size    int64     `json:"size" doc:"Bytes of the whole file"`
	Offset  int64     `json:"offset" doc:"Bytes that have come and are on the disk: the next piece begins there"`
	Expires time.Time `json:"expires_at" doc:"When the upload is dropped if nothing comes until then; with a file, until when the upload tells it"`
	File    *File     `json:"file,omitempty" doc:"The stored file that the upload has become"`
}

func uploadOf(u hub.Upload) Upload {
	out := Upload{ID: u.ID, Name: u.Name, Size: u.Size, Offset: u.Received, Expires: u.Expires.UTC()}
	if u.Stored != nil {
		f := fileOf(*u.Stored)
		out.File = &f
	}
	return out
}

type (
	// UploadPath names an upload in an address.
	UploadPath struct {
		Upload string `path:"upload" maxLength:"64" example:"upl_06f1k3t3y4m0v8s2k5r7w9x1z4"`
	}
	beginUpload struct {
		Body struct {
			Name string `json:"name" minLength:"1" maxLength:"255"`
			Size int64  `json:"size" minimum:"0" doc:"Bytes of the whole file"`
		}
	}
	appendUpload struct {
		UploadPath
		Offset int64 `header:"Upload-Offset" minimum:"0" doc:"Where the piece begins in the file, which is the upload's offset; 0 when left out"`
	}
)

func (s *server) addUploads() {
	const tag = "files"
	add(s, operation{id: "upload.create", method: http.MethodPost, path: "/uploads", tag: tag, action: auth.FilesWrite, repeat: repeatKept, status: http.StatusCreated,
		summary: "Begin an upload", about: "For a large file that comes in pieces and goes on after a lost connection. The project's disk has room for it from now on. " +
			"It is dropped 24 hours after its last byte; a key has 20 at most.",
		errors: []problem.Code{problem.FileTooLarge, problem.QuotaDisk, problem.TooManyUploads},
		example: `SIZE=$(stat -c %s sales.csv)
UPLOAD=$(curl -s -H "Authorization: Bearer $KEY" $COVE/uploads -d '{"name":"sales.csv","size":'$SIZE'}' | field id)`},
		func(ctx context.Context, who auth.Principal, in *beginUpload) (Upload, error) {
			out, err := s.o.Hub.BeginUpload(ctx, who, hub.NewUpload{Name: in.Body.Name, Size: in.Body.Size})
			return uploadOf(out), err
		})
	addRaw(s, operation{id: "upload.append", method: http.MethodPatch, path: "/uploads/{upload}", tag: tag, action: auth.FilesWrite, raw: true,
		summary: "Send a piece of an upload", about: "The body is the file from `Upload-Offset` on, or a part of it. What came before the connection broke is kept. When nothing is missing any more, " +
			"the answer has the stored `file`. A request that sends anew ends the one before it.",
		errors: []problem.Code{problem.UploadNotFound, problem.UploadOffset, problem.UploadExceeded, problem.UploadInUse, problem.UploadElsewhere},
		example: `head -c 10 sales.csv |
  curl -H "Authorization: Bearer $KEY" -H "Upload-Offset: 0" -X PATCH -T - $COVE/uploads/$UPLOAD
tail -c +11 sales.csv |
  curl -H "Authorization: Bearer $KEY" -H "Upload-Offset: 10" -X PATCH -T - $COVE/uploads/$UPLOAD`}, s.appendUpload)
	add(s, operation{id: "upload.get", method: http.MethodGet, path: "/uploads/{upload}", tag: tag, action: auth.FilesWrite, summary: "Get an upload",
		about: "Its `offset` is where to go on. The `file` is told for an hour after it was made.", errors: []problem.Code{problem.UploadNotFound},
		example: `curl -H "Authorization: Bearer $KEY" $COVE/uploads/$UPLOAD`},
		func(ctx context.Context, who auth.Principal, in *UploadPath) (Upload, error) {
			out, err := s.o.Hub.Upload(ctx, who, in.Upload)
			return uploadOf(out), err
		})
	addSilent(s, operation{id: "upload.delete", method: http.MethodDelete, path: "/uploads/{upload}", tag: tag, action: auth.FilesWrite, summary: "Drop an upload",
		about: "A file that it has become stays.", errors: []problem.Code{problem.UploadNotFound, problem.UploadInUse},
		example: `curl -H "Authorization: Bearer $KEY" -X DELETE $COVE/uploads/$UPLOAD`},
		func(ctx context.Context, who auth.Principal, in *UploadPath) error {
			return s.o.Hub.DropUpload(ctx, who, in.Upload)
		})
}

func (s *server) appendUpload(w http.ResponseWriter, r *http.Request, who auth.Principal, in *appendUpload) error {
	control := http.NewResponseController(w)
	u, err := s.o.Hub.AppendUpload(r.Context(), who, in.Upload, hub.Piece{
		Offset: in.Offset, Length: r.ContentLength, Body: uploaded(w, r, s.o.MaxFile),
		Stop: func() { _ = control.SetReadDeadline(time.Now()) }, // where that is not possible, the wait ends with the stall
	})
	if u.ID != "" {
		w.Header().Set("Upload-Offset", strconv.FormatInt(u.Received, 10))
	}
	if err != nil {
		return uploadFailed(r, err)
	}
	writeJSON(w, http.StatusOK, uploadOf(u))
	return nil
}
