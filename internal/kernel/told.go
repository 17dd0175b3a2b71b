package kernel

// What a kernel says to the model whose code it runs (told.py).
const (
	toldMIME = "text/vnd.cove.told"
	mostTold = 16 << 10 // bytes; more than an honest kernel needs
)

// told takes the words for a model out of a bundle, which other readers get. They count only where they were asked for.
func (x *execution) told(data Bundle) string {
	text, _ := data[toldMIME].(string)
	delete(data, toldMIME)
	if !x.req.Model || len(text) > mostTold {
		return ""
	}
	return text
}
