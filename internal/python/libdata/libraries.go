package libdata

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"cove/internal/core/problem"
)

// recipe says where a library's data is and how an item of it is fetched.
type recipe struct {
	place string // the library's own; "": none that serves single items
	fetch func(a *adding) error
}

// libraries are those whose data is known. The places are those in the libraries' own sources.
var libraries = map[string]*recipe{
	"nltk":        {"https://raw.githubusercontent.com/nltk/nltk_data/gh-pages", fetchNLTK},        // nltk/downloader.py
	"seaborn":     {"https://raw.githubusercontent.com/mwaskom/seaborn-data/master", fetchSeaborn}, // seaborn/utils.py
	"spacy":       {"https://github.com/explosion/spacy-models/releases/download", fetchSpacy},     // spacy/about.py
	"huggingface": {"https://huggingface.co", fetchHuggingFace},                                    // huggingface_hub/constants.py
	"sklearn":     {"", fetchSklearn},
	"files":       {"", fetchFiles},
}

// Libraries returns the names of the libraries, sorted.
func Libraries() []string { return slices.Sorted(maps.Keys(libraries)) }

// nltkIndex is index.xml (nltk/downloader.py).
type nltkIndex struct {
	Packages struct {
		Package []struct {
			ID     string `xml:"id,attr"`
			Subdir string `xml:"subdir,attr"`
			Unzip  string `xml:"unzip,attr"`
			MD5    string `xml:"checksum,attr"`
			SHA256 string `xml:"sha256_checksum,attr"`
			URL    string `xml:"url,attr"`
		} `xml:"package"`
	} `xml:"packages"`
	Collections struct {
		Collection []struct {
			ID   string `xml:"id,attr"`
			Item []struct {
				Ref string `xml:"ref,attr"`
			} `xml:"item"`
		} `xml:"collection"`
	} `xml:"collections"`
}

func fetchNLTK(a *adding) error {
	text, err := a.text("index.xml")
	if err != nil {
		return err
	}
	var index nltkIndex
	if err := xml.Unmarshal(text, &index); err != nil {
		return problem.New(problem.DataDamaged, "the index of "+a.options.Place+" cannot be read").WithCause(err)
	}
	wanted := []string{a.item.Name}
	for _, c := range index.Collections.Collection {
		if c.ID == a.item.Name {
			wanted = wanted[:0]
			for _, i := range c.Item {
				wanted = append(wanted, i.Ref)
			}
		}
	}
	for _, p := range index.Packages.Package {
		if !slices.Contains(wanted, p.ID) {
			continue
		}
		if !plainName(p.ID) || !plainName(p.Subdir) {
			return problem.New(problem.DataDamaged, fmt.Sprintf("the index of %s has the odd name %.60q", a.options.Place, p.Subdir+"/"+p.ID))
		}
		archive := "nltk/" + p.Subdir + "/" + p.ID + ".zip"
		if err := a.file("packages/"+p.Subdir+"/"+p.ID+".zip", archive, sums{p.MD5, p.SHA256}); err != nil {
			return err
		}
		if p.Unzip != "1" {
			continue
		}
		if err := a.unzip(archive, "nltk/"+p.Subdir, func(name string) bool { return strings.HasPrefix(name, p.ID+"/") }); err != nil {
			return err
		}
		a.forget(archive)
	}
	return nil
}

func fetchSeaborn(a *adding) error {
	return a.file(a.item.Name+".csv", "seaborn/"+path.Base(a.item.Name)+".csv", sums{})
}

// fetchSpacy fetches a model's wheel, and unpacks it where Python looks for modules.
func fetchSpacy(a *adding) error {
	name, version := a.item.Name, a.item.Version
	if !plainName(name) {
		return problem.New(problem.DataInvalid, fmt.Sprintf("%.60q is no name of a model", name))
	}
	if _, isFolder := a.source.(folder); version == "" && isFolder {
		files, err := a.source.list(".")
		if err != nil {
			return err
		}
		for _, f := range files { // in order, so that the last is the newest of those with as many digits
			if v, ok := strings.CutPrefix(path.Base(f), name+"-"); ok && strings.HasSuffix(v, "-py3-none-any.whl") {
				version = strings.TrimSuffix(v, "-py3-none-any.whl")
			}
		}
	}
	if version == "" {
		return problem.New(problem.DataInvalid, "the version of "+name+" is not said").
			WithHint("write spacy:" + name + "==3.8.0, for example: the first two numbers are those of spaCy's version")
	}
	wheel := name + "-" + version + "-py3-none-any.whl"
	archive := "modules/" + wheel
	err := a.file(name+"-"+version+"/"+wheel, archive, sums{})
	if problem.Has(err, problem.DataUnknown) {
		err = a.file(wheel, archive, sums{}) // a folder of wheels
	}
	if err != nil {
		return err
	}
	own := func(at string) bool {
		return strings.HasPrefix(at, name+"/") || strings.HasPrefix(at, name+"-"+version+".dist-info/")
	}
	if err := a.unzip(archive, "modules", own); err != nil {
		return err
	}
	a.forget(archive)
	return nil
}

// fetchHuggingFace fetches a repository as the hub's client keeps it (huggingface_hub, "Understand caching"): refs/NAME and snapshots/COMMIT/FILE.
func fetchHuggingFace(a *adding) error {
	kind, repository := "models", a.item.Name
	for _, other := range []string{"datasets", "spaces"} {
		if rest, ok := strings.CutPrefix(repository, other+"/"); ok {
			kind, repository = other, rest
		}
	}
	ref, prefix := "main", ""
	if a.item.Version != "" {
		ref = a.item.Version
	}
	if kind != "models" {
		prefix = kind + "/"
	}
	text, err := a.text("api/" + kind + "/" + repository + "/revision/" + ref + "?blobs=true")
	if err != nil {
		return err
	}
	var said struct {
		SHA      string `json:"sha"`
		Siblings []struct {
			Name string `json:"rfilename"`
			LFS  *struct {
				SHA256 string `json:"sha256"`
			} `json:"lfs"`
		} `json:"siblings"`
	}
	if err := json.Unmarshal(text, &said); err != nil || !commitForm().MatchString(said.SHA) {
		return problem.New(problem.DataDamaged, "what "+a.options.Place+" says of "+repository+" cannot be read").WithCause(err)
	}
	base := "huggingface/" + kind + "--" + strings.ReplaceAll(repository, "/", "--")
	var names []string
	for _, f := range said.Siblings {
		names = append(names, f.Name)
	}
	for _, f := range said.Siblings {
		if superfluous(f.Name, names) {
			continue
		}
		want := sums{}
		if f.LFS != nil {
			want.sha256 = f.LFS.SHA256
		}
		if err := a.file(prefix+repository+"/resolve/"+said.SHA+"/"+f.Name, base+"/snapshots/"+said.SHA+"/"+f.Name, want); err != nil {
			return err
		}
	}
	return a.write(strings.NewReader(said.SHA), "refs", base+"/refs/"+ref, sums{})
}

var commitForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{40}$`) })

// superfluous says of a file of a model whether it is the same weights for another library, where there are safetensors.
func superfluous(name string, all []string) bool {
	if !slices.ContainsFunc(all, func(n string) bool { return strings.HasSuffix(n, ".safetensors") }) {
		return false
	}
	for _, end := range []string{".bin", ".h5", ".msgpack", ".ot", ".pt", ".pth", ".onnx", ".gguf", ".tflite"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return strings.HasPrefix(name, "onnx/") || strings.HasPrefix(name, "openvino/")
}

// sklearnFiles are what scikit-learn keeps of each data set in its folder (sklearn/datasets).
var sklearnFiles = map[string][]string{
	"20newsgroups": {"20news-bydate_py3.pkz"}, "20newsgroups_vectorized": {"20newsgroup_vectorized_py3.pkl"}, "california_housing": {"cal_housing_py3.pkz"},
	"covtype": {"covertype/samples_py3", "covertype/targets_py3"}, "kddcup99": {"kddcup99_10-py3"}, "lfw_pairs": {"lfw_home"}, "lfw_people": {"lfw_home"},
	"olivetti_faces": {"olivetti_py3.pkz"}, "openml": {"openml"}, "rcv1": {"RCV1"}, "species_distributions": {"species_coverage_py3.pkz"},
}

// fetchSklearn copies from a folder that scikit-learn has filled (~/scikit_learn_data): what it keeps it makes itself from what it downloads.
func fetchSklearn(a *adding) error {
	wanted := sklearnFiles[a.item.Name]
	if wanted == nil {
		return problem.New(problem.DataUnknown, "scikit-learn has no data "+a.item.Name+" that it downloads").WithHint("it downloads " + strings.Join(slices.Sorted(maps.Keys(sklearnFiles)), ", "))
	}
	for _, name := range wanted {
		if err := a.below(name, "sklearn"); err != nil {
			return err
		}
	}
	return nil
}

// fetchFiles copies a folder.
func fetchFiles(a *adding) error { return a.below(".", "files/"+a.item.Name) }

// below copies the files of a folder of the source, or the one file that it is.
func (a *adding) below(name, into string) error {
	files, err := a.source.list(name)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := a.file(f, path.Join(into, f), sums{}); err != nil {
			return err
		}
	}
	return nil
}

// plainName says whether a name can be a folder's.
func plainName(name string) bool {
	return name != "" && strings.Trim(name, ".") != "" && !strings.ContainsAny(name, "/\\\x00")
}
