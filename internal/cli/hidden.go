package cli

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"cove/internal/kernel"
	"cove/internal/lang"
)

// hiddenModule is the module that a program imports and hides by its own name, as qrcode.py does with import qrcode, or "". A folder of that name among the inputs goes before the program.
func hiddenModule(req kernel.Request, inputs []input) string {
	name, isPython := strings.CutSuffix(req.Filename, ".py")
	if req.Mode != kernel.Script || !isPython || name == "" {
		return ""
	}
	word := regexp.QuoteMeta(name)
	imports, err := regexp.Compile(`(?m)^[ \t]*(?:import[ \t]+(?:[\w., \t]+,[ \t]*)?` + word + `(?:[ \t]*[.,;#\r]|[ \t]+as[ \t]|[ \t]*$)|from[ \t]+` + word + `(?:\.[\w.]+)?[ \t]+import\b)`)
	if err != nil || !imports.MatchString(req.Code) || slices.ContainsFunc(inputs, func(in input) bool { return strings.HasPrefix(in.name, name+"/") }) {
		return ""
	}
	return name
}

// tellHidden says that a program hides the module that it imports: whatever Python says of that, it does not say what to do.
func (c *runCmd) tellHidden(p *Program, req kernel.Request, inputs []input) {
	name := hiddenModule(req, inputs)
	if name == "" || c.JSON || c.Quiet {
		return
	}
	fmt.Fprint(p.Err, hintLine(kernel.Error{Hint: lang.Sprintf("the file %s hides the module %s, which it imports: give the file another name", oneLine(filepath.Base(c.Program)), name)}))
}
