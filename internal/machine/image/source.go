package image

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"cove/internal/core/problem"
)

func platform() v1.Platform { return v1.Platform{OS: "linux", Architecture: runtime.GOARCH} }

// open returns the image that a reference means, of which nothing is unpacked yet. clean removes what was stored for it.
func (r Reference) open(ctx context.Context, o Get, scratch string) (img v1.Image, clean func(), err error) {
	clean = func() {}
	switch r.kind {
	case dockerArchive:
		img, err = tarball.ImageFromPath(r.path, nil)
	case ociLayout:
		img, err = inLayout(r.path)
	case ociArchive:
		dir, mkdirErr := os.MkdirTemp(scratch, tmpPrefix)
		if mkdirErr != nil {
			return nil, clean, unusable(scratch, mkdirErr)
		}
		clean = func() { _ = os.RemoveAll(dir) }
		if err = unpackLayout(ctx, r.path, dir); err == nil {
			img, err = inLayout(dir)
		}
	default:
		img, err = r.fetch(ctx, o)
	}
	if err != nil {
		return nil, clean, r.explain(ctx, err)
	}
	return img, clean, nil
}

func (r Reference) fetch(ctx context.Context, o Get) (v1.Image, error) {
	options := []remote.Option{remote.WithContext(ctx), remote.WithPlatform(platform()), remote.WithUserAgent("cove")}
	if o.Own {
		options = append(options, remote.WithAuthFromKeychain(authn.DefaultKeychain))
	}
	if o.Way != nil {
		options = append(options, remote.WithTransport(o.Way))
	}
	d, err := remote.Get(r.remote, options...)
	if err != nil {
		return nil, err
	}
	return d.Image()
}

// explain makes a problem of why an image cannot be had.
func (r Reference) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return problem.New(problem.GivenUp, "fetching the image was cancelled").WithCause(context.Cause(ctx))
	}
	if p, is := errors.AsType[*problem.Error](err); is {
		return p
	}
	said, denied := errors.AsType[*transport.Error](err)
	switch {
	case denied && (said.StatusCode == http.StatusUnauthorized || said.StatusCode == http.StatusForbidden):
		return problem.New(problem.ImageMissing, fmt.Sprintf("the registry of %s does not give it to you, or has none of that name", r)).
			WithHint("look at the name; a private image takes `docker login` on this machine, by the user who runs cove").WithCause(err)
	case denied && said.StatusCode == http.StatusNotFound, errors.Is(err, fs.ErrNotExist):
		return problem.New(problem.ImageMissing, fmt.Sprintf("there is no image %s", r)).WithHint("look at the name and the tag").WithCause(err)
	case strings.Contains(err.Error(), "no child with platform"):
		return problem.New(problem.ImageUnfit, fmt.Sprintf("the image %s is not made for linux/%s", r, runtime.GOARCH)).WithHint("choose one that is").WithCause(err)
	case r.kind == registry:
		return problem.New(problem.ImageUnreachable, fmt.Sprintf("the image %s cannot be fetched", r)).
			WithHint("see whether this machine reaches the registry; an image in a file is oci-archive:FILE").WithCause(err)
	}
	return damaged(fmt.Sprintf("%s is no image that cove reads", r)).WithCause(err)
}

// inLayout returns the image in a layout folder: the only one, or the one for this machine.
func inLayout(dir string) (v1.Image, error) {
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, err
	}
	const deepest = 3 // indexes in indexes
	for range deepest {
		m, err := index.IndexManifest()
		if err != nil {
			return nil, err
		}
		var images, indexes []v1.Descriptor
		for _, d := range m.Manifests {
			fits := d.Platform == nil || d.Platform.OS == "" || d.Platform.OS == "linux" && d.Platform.Architecture == runtime.GOARCH
			switch {
			case d.MediaType.IsImage() && fits:
				images = append(images, d)
			case d.MediaType.IsIndex():
				indexes = append(indexes, d)
			}
		}
		switch {
		case len(images) == 1:
			img, err := index.Image(images[0].Digest)
			if err != nil {
				return nil, err
			}
			if raw, err := img.RawManifest(); err != nil || digestOf(raw) != images[0].Digest.String() {
				return nil, damaged("its manifest is not what its digest says").WithCause(err)
			}
			return img, nil
		case len(images) > 1:
			return nil, problem.New(problem.ImageUnfit, fmt.Sprintf("there are %d images in %s, and not one", len(images), dir)).WithHint("make one with a single image")
		case len(indexes) != 1:
			return nil, problem.New(problem.ImageUnfit, "there is no image for linux/"+runtime.GOARCH+" in it").WithHint("choose one that is made for this machine")
		}
		if index, err = index.ImageIndex(indexes[0].Digest); err != nil {
			return nil, err
		}
		if raw, err := index.RawManifest(); err != nil || digestOf(raw) != indexes[0].Digest.String() {
			return nil, damaged("its index is not what its digest says").WithCause(err)
		}
	}
	return nil, damaged("its indexes are too deep")
}

// Bounds of an archive of a layout.
const (
	mostParts       = 1000
	mostIndexBytes  = 4 << 20
	mostArchiveSize = 64 << 30 // bytes, all together
)

// unpackLayout writes the files of a layout, which are few and have fixed names, from an archive to a folder. What else is in it is passed over.
func unpackLayout(ctx context.Context, file, dir string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if err := os.MkdirAll(filepath.Join(dir, "blobs", "sha256"), 0o700); err != nil {
		return unusable(dir, err)
	}
	left := int64(mostArchiveSize)
	t := tar.NewReader(&canceling{ctx, f})
	for parts := 0; ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return damaged(file + " is no archive of an image").WithCause(err)
		}
		name := strings.TrimPrefix(filepath.ToSlash(filepath.Clean(h.Name)), "./")
		hex, part := strings.CutPrefix(name, "blobs/sha256/")
		if h.Typeflag != tar.TypeReg || name != "oci-layout" && name != "index.json" && (!part || !isHex(hex)) {
			continue
		}
		if parts++; parts > mostParts || h.Size > left || !part && h.Size > mostIndexBytes {
			return tooLarge("the archive of the image has more than cove unpacks")
		}
		left -= h.Size
		to, err := os.OpenFile(filepath.Join(dir, filepath.FromSlash(name)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return unusable(dir, err)
		}
		_, err = io.Copy(to, t)
		if err = errors.Join(err, to.Close()); err != nil {
			return unusable(dir, err)
		}
	}
}

// canceling is a reader that ends with a context.
type canceling struct {
	ctx context.Context
	r   io.Reader
}

// Read implements io.Reader.
func (c *canceling) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.r.Read(p)
}

func damaged(how string) *problem.Error {
	return problem.New(problem.ImageDamaged, "the image is damaged: "+how).WithHint("fetch or make it again")
}

func tooLarge(why string) *problem.Error {
	return problem.New(problem.ImageTooLarge, why).WithHint("use a smaller image; the operator can set images.size")
}
