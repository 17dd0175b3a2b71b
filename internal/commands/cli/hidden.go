package cli

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"cove/internal/core/lang"
	"cove/internal/python/kernel"
)

// hiddenModule is the module that a program hides by its own name, as qrcode.py does with import qrcode, where it failed for that, or "". A folder of that name among the inputs
// goes before the program.
func hiddenModule(req kernel.Request, inputs []input, failed kernel.Error) string {
	name, isPython := strings.CutSuffix(req.Filename, ".py")
	if req.Mode != kernel.Script || !isPython || name == "" || slices.ContainsFunc(inputs, func(in input) bool { return strings.HasPrefix(in.name, name+"/") }) {
		return ""
	}
	word := "'" + regexp.QuoteMeta(name) + "'"
	said := map[string]string{
		"AttributeError":      `^(?:partially initialized )?module ` + word + ` has no attribute `,
		"ImportError":         `^cannot import name '[^']*' from (?:partially initialized module )?` + word,
		"ModuleNotFoundError": `; ` + word + ` is not a package`,
	}[failed.Name]
	if said == "" {
		return ""
	}
	if is, err := regexp.Compile(said); err != nil || !is.MatchString(failed.Value) {
		return ""
	}
	return name
}

// tellHidden says that a program failed because it hides the module that it imports: whatever Python says of that, it does not say what to do.
func (c *runCmd) tellHidden(v *runView, req kernel.Request, inputs []input) {
	if v.json || v.quiet || v.broken || v.done.Outcome != kernel.OutcomeError {
		return
	}
	if name := hiddenModule(req, inputs, v.last); name != "" {
		fmt.Fprint(v.p.Err, hintLine(kernel.Error{Hint: lang.Sprintf("the file %s hides the module %s, which it imports: give the file another name", oneLine(filepath.Base(c.Program)), name)}))
	}
}
