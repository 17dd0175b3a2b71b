package kernel

// What a kernel says to the model whose code it runs (model_view.py, charts.py).
const (
	toldMIME  = "text/vnd.cove.told"
	chartMIME = "application/vnd.cove.chart+json"
	mostTold  = 16 << 10 // bytes; more than an honest kernel needs
	mostChart = 48 << 10
)

// Told is what a model is told of an object beside its picture and instead of its text/plain. It counts only with Request.Model, and comes from the sandbox as
// everything else does.
type Told struct {
	Text  string // the object in words; "" where text/plain serves both
	Chart []byte // what a figure shows, in the JSON of package chart; nil for other objects
}

// told takes what is for a model out of a bundle, which other readers get.
func (x *execution) told(data Bundle) Told {
	text, _ := data[toldMIME].(string)
	chart, _ := data[chartMIME].(string)
	delete(data, toldMIME)
	delete(data, chartMIME)
	told := Told{}
	if x.req.Model && len(text) <= mostTold {
		told.Text = text
	}
	if x.req.Model && chart != "" && len(chart) <= mostChart {
		told.Chart = []byte(chart)
	}
	return told
}
