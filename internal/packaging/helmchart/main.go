// Command helmchart checks the Helm chart, for `make chart`: helm lints and renders it with each of the values in its folder ci, and every object that comes of it has to be one that three releases
// of Kubernetes and the operator of Prometheus take, without a field that they do not know. What these take comes from their Go modules; no cluster is asked.
//
//	helmchart HELM     # in the root of the repository; HELM is the program
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

const folder = "deploy/helm/cove"

// releases are those of Kubernetes that the chart is checked against: the newest one, and two before it.
func releases() []string { return []string{"v1.37.2", "v1.36.3", "v1.35.4"} }

const operator = "github.com/prometheus-operator/prometheus-operator@v0.85.0"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: helmchart HELM")
		os.Exit(2)
	}
	if err := check(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

func check(ctx context.Context, helm string) error {
	rendered, err := render(ctx, helm)
	if err != nil {
		return err
	}
	custom, err := customKinds(ctx)
	if err != nil {
		return err
	}
	var wrong []error
	for _, release := range releases() {
		kinds, err := kubernetesKinds(ctx, release)
		if err != nil {
			return err
		}
		maps.Copy(kinds, custom)
		objects := 0
		for _, values := range slices.Sorted(maps.Keys(rendered)) {
			n, err := validate(kinds, rendered[values])
			if objects += n; err != nil {
				wrong = append(wrong, fmt.Errorf("with %s, Kubernetes %s: %w", values, release, err))
			}
		}
		fmt.Printf("chart: %d objects of %d sets of values checked against Kubernetes %s\n", objects, len(rendered), release)
	}
	return errors.Join(wrong...)
}

// render returns what the chart makes of each set of values, and of none.
func render(ctx context.Context, helm string) (map[string][]byte, error) {
	files, err := filepath.Glob(filepath.Join(folder, "ci/*-values.yaml"))
	if err != nil || len(files) == 0 {
		return nil, errors.Join(errors.New("the chart's folder ci has no values"), err)
	}
	rendered := map[string][]byte{}
	for _, file := range append([]string{""}, files...) {
		name, args := "its own values", []string{}
		if file != "" {
			name, args = filepath.Base(file), []string{"--values", file}
		}
		if out, err := exec.CommandContext(ctx, helm, append([]string{"lint", "--strict", folder}, args...)...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("helm lint with %s: %w\n%s", name, err, out)
		}
		var stderr bytes.Buffer
		cmd := exec.CommandContext(ctx, helm, append([]string{"template", "release", folder, "--namespace", "cove"}, args...)...)
		cmd.Stderr = &stderr
		if rendered[name], err = cmd.Output(); err != nil {
			return nil, fmt.Errorf("helm template with %s: %w\n%s", name, err, &stderr)
		}
	}
	for _, value := range []string{"seccomp.type=Nothing", "replicas=2", "secrets[0].variable=lower"} {
		if exec.CommandContext(ctx, helm, "template", "release", folder, "--set", value).Run() == nil {
			return nil, fmt.Errorf("the values' schema lets %s pass", value)
		}
	}
	return rendered, nil
}

// kinds has the schema of each kind of object, by its API version and its name: "apps/v1 StatefulSet".
type kinds map[string]*jsonschema.Schema

// validate checks each object of a stream of YAML documents.
func validate(known kinds, stream []byte) (objects int, err error) {
	var wrong []error
	for d := yaml.NewDecoder(bytes.NewReader(stream)); ; {
		var object map[string]any
		if err := d.Decode(&object); errors.Is(err, io.EOF) {
			return objects, errors.Join(wrong...)
		} else if err != nil {
			return objects, err
		}
		if object == nil {
			continue
		}
		objects++
		kind := fmt.Sprint(object["apiVersion"], " ", object["kind"])
		schema := known[kind]
		if schema == nil {
			wrong = append(wrong, fmt.Errorf("there is no %s", kind))
			continue
		}
		value, err := plain(object)
		if err == nil {
			err = schema.Validate(value)
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", kind, err))
		}
	}
}

// plain returns a value as a decoder of JSON would.
func plain(v any) (any, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(text))
}

// moduleFolder returns where Go has the sources of a module, downloading it when it is not there.
func moduleFolder(ctx context.Context, module string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "mod", "download", "-json", module).Output()
	if err != nil {
		return "", fmt.Errorf("download %s: %w\n%s", module, err, out)
	}
	var m struct{ Dir string }
	return m.Dir, json.Unmarshal(out, &m)
}

// kubernetesKinds reads the description that a release of Kubernetes has of its API.
func kubernetesKinds(ctx context.Context, release string) (kinds, error) {
	dir, err := moduleFolder(ctx, "k8s.io/kubernetes@"+release)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(dir, "api/openapi-spec/swagger.json"))
	if err != nil {
		return nil, err
	}
	read, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	whole, _ := read.(map[string]any)
	definitions, _ := whole["definitions"].(map[string]any)
	named := map[string]string{}
	for name, d := range definitions {
		definition, _ := d.(map[string]any)
		groups, _ := definition["x-kubernetes-group-version-kind"].([]any)
		for _, g := range groups {
			group, _ := g.(map[string]any)
			version := strings.TrimPrefix(fmt.Sprint(group["group"], "/", group["version"]), "/")
			named[version+" "+fmt.Sprint(group["kind"])] = name
		}
	}
	// These two are written as strings or numbers, which the description says in words.
	for _, name := range []string{"io.k8s.apimachinery.pkg.util.intstr.IntOrString", "io.k8s.apimachinery.pkg.api.resource.Quantity"} {
		definitions[name] = map[string]any{"type": []any{"string", "number"}}
	}
	strict(definitions)
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("kubernetes.json", map[string]any{"definitions": definitions}); err != nil {
		return nil, err
	}
	out := kinds{}
	for _, kind := range used() {
		if named[kind] == "" {
			continue
		}
		if out[kind], err = compiler.Compile("kubernetes.json#/definitions/" + named[kind]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// used are the kinds of objects that the chart may make. Roles are not among them: cove asks Kubernetes nothing.
func used() []string {
	return []string{
		"v1 Service", "v1 ServiceAccount", "v1 ConfigMap", "apps/v1 StatefulSet", "apps/v1 DaemonSet", "networking.k8s.io/v1 Ingress", "networking.k8s.io/v1 NetworkPolicy", "policy/v1 PodDisruptionBudget",
	}
}

// customKinds reads those that the operator of Prometheus adds.
func customKinds(ctx context.Context) (kinds, error) {
	dir, err := moduleFolder(ctx, operator)
	if err != nil {
		return nil, err
	}
	out, compiler := kinds{}, jsonschema.NewCompiler()
	for _, name := range []string{"servicemonitors", "prometheusrules"} {
		text, err := os.ReadFile(filepath.Join(dir, "example/prometheus-operator-crd/monitoring.coreos.com_"+name+".yaml"))
		if err != nil {
			return nil, err
		}
		var definition struct {
			Spec struct {
				Group    string
				Names    struct{ Kind string }
				Versions []struct {
					Name   string
					Schema struct {
						Schema map[string]any `yaml:"openAPIV3Schema"`
					}
				}
			}
		}
		if err := yaml.Unmarshal(text, &definition); err != nil {
			return nil, err
		}
		for _, v := range definition.Spec.Versions {
			schema, err := plain(v.Schema.Schema)
			if err != nil {
				return nil, err
			}
			strict(schema)
			if err := compiler.AddResource(name+".json", schema); err != nil {
				return nil, err
			}
			if out[definition.Spec.Group+"/"+v.Name+" "+definition.Spec.Names.Kind], err = compiler.Compile(name + ".json"); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// strict has every object in a schema take the fields that it names and no others, and what says that it is a number or a string take both.
func strict(schema any) {
	switch s := schema.(type) {
	case map[string]any:
		if _, names := s["properties"].(map[string]any); names && s["additionalProperties"] == nil && s["x-kubernetes-preserve-unknown-fields"] != true {
			s["additionalProperties"] = false
		}
		if s["x-kubernetes-int-or-string"] == true {
			delete(s, "pattern")
		}
		for _, inner := range s {
			strict(inner)
		}
	case []any:
		for _, inner := range s {
			strict(inner)
		}
	}
}
