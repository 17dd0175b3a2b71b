package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/machine/image"
)

type imageCmd struct {
	Pull imagePull `cmd:"" help:"Fetch an image and unpack it, before a session begins from it."`
	Ls   imageLs   `cmd:"" help:"List the images that are unpacked on this machine, the one used last first."`
	Rm   imageRm   `cmd:"" help:"Remove images from this machine."`
}

// Help is the long help.
func (imageCmd) Help() string {
	return `A session can begin from the file system of an OCI image instead of this machine's: cove run --image IMAGE, also with ask, chat and
repl. No Docker is needed. IMAGE is

    python:3.12-slim              from a registry, with the keys of docker login on this machine, which never come into a sandbox
    oci-archive:FILE              a tar file of an OCI layout, as skopeo and buildah write it
    docker-archive:FILE           what docker save wrote
    oci:FOLDER                    a folder with an OCI layout

It is unpacked once. Code runs in the image's Python where that is 3.11 to 3.14, with the packages that the image has; else in cove's own Python,
which stands beside the image. The image's variables and the folder of its programs count; its entry point is not run. With --server the server
fetches the image from its registry, where its operator allows that (images.allow). See docs/images.md.

Examples:

    cove image pull python:3.12-slim
    cove run --image python:3.12-slim -c 'import sys; print(sys.version)'
    cove image ls
    cove image rm python:3.12-slim`
}

type imagePull struct {
	Image string `arg:"" help:"The image; see cove image --help."`
	Quiet bool   `short:"q" help:"Print nothing but the digest."`
	JSON  bool   `name:"json" help:"Print what is there then as one JSON object."`
}

func (c *imagePull) run(ctx context.Context, p *Program) (int, error) {
	s, err := p.images()
	if err != nil {
		return 0, err
	}
	r, err := image.Parse(c.Image)
	if err != nil {
		return 0, err
	}
	get := image.Get{Own: true, Anew: true}
	if !c.Quiet {
		get = image.Told(p.Err)
		get.Anew = true
	}
	i, err := s.Ensure(ctx, r, get)
	if err != nil {
		return 0, err
	}
	if c.JSON {
		return 0, p.printJSON(imageRowOf(i))
	}
	_, err = fmt.Fprintln(p.Out, i.Digest)
	return 0, err
}

type imageLs struct {
	JSON bool `name:"json" help:"Print them as one JSON array."`
}

// imageRow is an image as it is shown.
type imageRow struct {
	Digest     string    `json:"digest"`
	References []string  `json:"references"`
	Size       int64     `json:"size_bytes"`
	Entries    int       `json:"entries"`
	LeftOut    int       `json:"left_out"`
	Python     string    `json:"python"` // "": it has none that is used
	Unpacked   time.Time `json:"unpacked"`
	Used       time.Time `json:"used"`
}

func imageRowOf(i *image.Image) imageRow {
	r := imageRow{Digest: i.Digest, References: notNone(i.References), Size: i.Size, Entries: i.Entries, LeftOut: i.LeftOut, Unpacked: i.Made, Used: i.Used}
	if i.UsesOwnPython() {
		r.Python = fmt.Sprintf("3.%d", i.Python.Minor)
	}
	return r
}

func (c *imageLs) run(_ context.Context, p *Program) (int, error) {
	s, err := p.images()
	if err != nil {
		return 0, err
	}
	all, err := s.List()
	if err != nil {
		return 0, err
	}
	rows := make([]imageRow, 0, len(all))
	for _, i := range all {
		rows = append(rows, imageRowOf(i))
	}
	if c.JSON {
		return 0, p.printJSON(rows)
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintln(p.Out, lang.Text("no images; `cove image pull IMAGE` fetches one"))
		return 0, err
	}
	w := newRows(p.Out, false)
	w.head("DIGEST", "SIZE", "PYTHON", "LAST USED", "IMAGE")
	for _, r := range rows {
		python := "cove's"
		if r.Python != "" {
			python = r.Python
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", image.ShortDigest(r.Digest), decimalSize(r.Size), python, dateTime(r.Used), oneLine(strings.Join(r.References, ", ")))
	}
	return 0, w.Flush()
}

type imageRm struct {
	Images []string `arg:"" name:"image" help:"Images, by what they were asked for by or by the beginning of their digest."`
	Force  bool     `short:"f" help:"Remove those that saved sessions need, too, which cannot go on then."`
}

func (c *imageRm) run(_ context.Context, p *Program) (int, error) {
	s, err := p.images()
	if err != nil {
		return 0, err
	}
	for _, what := range c.Images {
		found, err := s.Find(what)
		if err != nil {
			return 0, err
		}
		if len(found) > 1 {
			return 0, problem.New(problem.Usage, fmt.Sprintf("%q means %d images", what, len(found))).WithHint("write more of the digest")
		}
		if !c.Force && s.IsNeeded(found[0]) {
			return 0, problem.New(problem.ImageUsed, "a saved session needs the image "+image.ShortDigest(found[0].Digest)).
				WithHint("remove the session first (cove session ls), or add --force: the session cannot go on then")
		}
		if err := s.Remove(found[0]); err != nil {
			return 0, err
		}
		fmt.Fprintln(p.Out, found[0].Digest)
	}
	return 0, nil
}

func (p *Program) images() (image.Store, error) {
	if p.ConfigErr != nil {
		return image.Store{}, p.ConfigErr
	}
	return p.Images(p.Config), nil
}
