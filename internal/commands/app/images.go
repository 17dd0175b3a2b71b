package app

import (
	"context"
	"io"
	"path/filepath"

	"cove/internal/core/config"
	"cove/internal/core/problem"
	"cove/internal/machine/guest/program"
	"cove/internal/machine/image"
	"cove/internal/machine/snapshot"
	"cove/internal/python/pyenv"
	"cove/internal/server/hub"
)

// images is the store of images of this machine's user or server.
func images(c config.Config) image.Store {
	return image.Store{
		Dir: filepath.Join(c.Folders.Data, "images"), Size: int64(c.Images.Size), Total: int64(c.Images.Total),
		Needed: func() (digests []string) {
			for _, store := range sessionStores(c) {
				sessions, _ := store.List() // what cannot be read cannot be used either
				for _, s := range sessions {
					if _, digest := image.CutKey(s.Environment); digest != "" {
						digests = append(digests, digest)
					}
				}
			}
			return digests
		},
		Removed: func(family string) {
			made, _ := filepath.Glob(filepath.Join(templates(c), family+"-*")) // the pattern is well-formed
			for _, dir := range made {
				_ = snapshot.Remove(dir) // what cannot be removed now takes room until its environment's are made anew
			}
		},
	}
}

// callersImages are the images that callers of a server may have sessions begin from.
type callersImages struct {
	store   image.Store
	allowed image.Allowed
	way     *image.Way // to what the operator has named
	public  *image.Way // to the rest
}

var _ hub.Images = (*callersImages)(nil)

func newCallersImages(c config.Config) (*callersImages, error) {
	allowed, err := image.ParseAllowed(c.Images.Allow)
	if err != nil {
		return nil, err
	}
	return &callersImages{store: images(c), allowed: allowed, way: allowed.Way(), public: image.Allowed{}.Way()}, nil
}

// May implements hub.Images.
func (i *callersImages) May(reference string) (named bool, err error) {
	r, err := i.allowed.Parse(reference)
	return err == nil && i.allowed.Names(r), err
}

// Here implements hub.Images. What the operator has not named is asked of its registry each time: what is on this machine may have been fetched with the operator's keys.
func (i *callersImages) Here(reference string) string {
	r, err := i.allowed.Parse(reference)
	if err != nil || !i.allowed.Names(r) {
		return ""
	}
	return i.store.Here(r)
}

// Fetch implements hub.Images. The operator's keys and private hosts are for what the operator has named: another registry must not send on to these.
func (i *callersImages) Fetch(ctx context.Context, reference string) (string, error) {
	r, err := i.allowed.Parse(reference)
	if err != nil {
		return "", err
	}
	get := image.Get{Anew: true, Way: i.public}
	if i.allowed.Names(r) {
		get = image.Get{Own: true, Way: i.way}
	}
	found, err := i.store.Ensure(ctx, r, get)
	switch {
	case problem.Has(err, problem.ImageMissing):
		return "", problem.Of(err).WithHint("look at the name and the tag; keys of its registry are for the server's operator to set")
	case problem.Has(err, problem.ImageUnreachable):
		return "", problem.Of(err).WithHint("look at the name of the registry; the operator can see whether the server reaches it")
	case err != nil:
		return "", err
	}
	return found.Digest, nil
}

// inImage returns an environment as it is used in the image that its key names. Where there is no key yet, it is the image that the command was told to begin from. What has begun elsewhere
// does not come into an image later.
func inImage(ctx context.Context, c config.Config, env *pyenv.Environment, key, digest string, progress io.Writer) (*pyenv.Environment, error) {
	store := images(c)
	var i *image.Image
	if c.Image != "" {
		r, err := image.Parse(c.Image)
		if err == nil {
			i, err = store.Ensure(ctx, r, image.Told(progress))
		}
		if err != nil {
			return nil, err
		}
		if key != "" && i.Digest != digest {
			return nil, problem.New(problem.SessionImage, "the session did not begin from this image, and cannot go on in it").WithHint("leave --image out, or use another session")
		}
	} else {
		var err error
		if i, err = store.Open(digest); err != nil {
			return nil, err
		}
		i.Touch()
	}
	launcher, err := program.Install(shared(c))
	if err != nil {
		return nil, err
	}
	return store.In(env, i, launcher)
}

// ofImage says of a kernel that does not start in the Python of an image that it is the image's.
func ofImage(env *pyenv.Environment, err error) error {
	if env.Image == nil || !env.Image.Own || !problem.Has(err, problem.KernelStartFailed) {
		return err
	}
	return problem.Of(err).WithHint("it is the image's own Python, " + env.Image.Python + ": see that it starts in the image, and that the libraries which it needs are there")
}
